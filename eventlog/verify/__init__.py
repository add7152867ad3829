"""Whether what is stored is what this product writes: a conversation's keys, a partition's feed. Pure.

A ``LogCheck`` takes what the keys of one conversation held at one moment, then the log's entries in
order; a ``FeedCheck`` takes the entries of a partition's feed. Both yield every ``Fault`` they find.
Nothing here trusts a byte: what is stored may be anything.
"""

from eventlog.verify.fault import Fault
from eventlog.verify.feed import FeedCheck, check_feed_base, check_mark, feed_base
from eventlog.verify.log import LogCheck, LogSnapshot, check_meta, check_path

__all__ = [
    "Fault",
    "FeedCheck",
    "LogCheck",
    "LogSnapshot",
    "check_feed_base",
    "check_mark",
    "check_meta",
    "check_path",
    "feed_base",
]
