"""The keys of a namespace. Pure.

    {<ns>:<p>}:log:<tenant>/<conversation>    stream; entry id <version>-<stamp>; one field, e: the event's document
    {<ns>:<p>}:head:<tenant>/<conversation>   hash: last, base, updated, state, evicted, rotated,
                                              confirmed, open, and for each open run run:<run> and
                                              answer:<call version>:<run>. Of a deleted conversation:
                                              last, state, why, deleted (when, in ms), confirmed
    {<ns>:<p>}:ops:<tenant>/<conversation>    hash: operation id -> first:count:stamp:digest
    {<ns>:<p>}:old-ops:<tenant>/<conversation>  the generation of operations before
    {<ns>:<p>}:feed                           stream; entry id 0-<seq>; c path, f first, n events, k kinds, s stamp
                                              of a deleted conversation: f last version + 1, n 0
    {<ns>:<p>}:feed-base                      hash: seq and stamp of the last trimmed entry; announced: entries
                                              below this number may be trimmed
    {<ns>:<p>}:conversations                  sorted set: path by the number of its first feed entry
    <ns>:meta                                 hash: layout, partitions

All keys of a partition share a hash tag, so that one script may touch them together on a cluster.
"""

from __future__ import annotations

from typing import NamedTuple

from eventlog.identity import LogId, check_namespace, partition_of

_REMEMBERED = 4096


class LogKeys(NamedTuple):
    """The keys that an append touches, in the order the script takes them."""

    log: str
    head: str
    ops: str
    old_ops: str
    feed: str
    conversations: str


class Keys:
    """The keys of one namespace with a fixed number of partitions."""

    def __init__(self, namespace: str, partitions: int) -> None:
        self.namespace = check_namespace(namespace)
        self.partitions = partitions
        self.meta = f"{namespace}:meta"
        self._recent: dict[LogId, LogKeys] = {}

    def of_log(self, log: LogId) -> LogKeys:
        """The keys of one conversation and of its partition."""
        keys = self._recent.get(log)
        if keys is None:
            keys = self._recent[log] = self._of_log(log)
            if len(self._recent) > _REMEMBERED:
                del self._recent[next(iter(self._recent))]
        return keys

    def _of_log(self, log: LogId) -> LogKeys:
        path = log.path
        partition = partition_of(path, self.partitions)
        base = f"{{{self.namespace}:{partition}}}:"
        return LogKeys(
            f"{base}log:{path}",
            f"{base}head:{path}",
            f"{base}ops:{path}",
            f"{base}old-ops:{path}",
            f"{base}feed",
            f"{base}conversations",
        )

    def feed(self, partition: int) -> str:
        return f"{{{self.namespace}:{partition}}}:feed"

    def feed_base(self, partition: int) -> str:
        return f"{{{self.namespace}:{partition}}}:feed-base"

    def conversations(self, partition: int) -> str:
        return f"{{{self.namespace}:{partition}}}:conversations"
