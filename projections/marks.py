"""Whether a mark of a view's reader still stands for what it passed."""

from __future__ import annotations

from eventlog.reader import Store
from eventlog.store.readers import Mark, ReaderStore
from eventlog.store.views import ViewId


async def mark_of(readers: ReaderStore, view: ViewId, partition: int) -> Mark:
    """Where the reader of a partition stands: where it began, when no mark was ever written. Raises ``GroupGone``."""
    place = await readers.place(view.group, partition)
    if place.mark is not None:
        return place.mark
    return (await readers.settings(view.group)).mark(partition)


async def has_passed(store: Store, partition: int, mark: Mark, end: int) -> bool:
    """Whether the mark is at ``end`` or behind it, in the feed that is there now.

    A number alone proves nothing: a server that lost entries uses their numbers again.
    """
    if mark.seq < end:
        return False
    if mark.seq == 0:
        return True
    newest = await store.read_feed(partition, mark.seq, 1)
    if newest and newest[0].seq == mark.seq:
        return newest[0].stamp == mark.stamp
    base = await store.feed_base(partition)
    return (base.seq, base.stamp) == mark
