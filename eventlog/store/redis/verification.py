"""Has a conversation, or all of a namespace, checked while others go on writing.

The keys of one conversation are looked at in one transaction; a log's entries up to the last one
then seen never change. Of the feed, what was there before any log was read must be found in the
logs, and what the logs hold must be found in the feed as it is afterwards, or may have been
trimmed of it. A conversation that is deleted meanwhile is looked at once more. So a writer beside
it gives no false alarm.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable

import orjson

from eventlog.identity import LogId, partition_of
from eventlog.store.redis.audit import FAMILIES, Audit, Entry
from eventlog.verify import (
    Fault,
    FeedCheck,
    LogCheck,
    check_feed_base,
    check_mark,
    check_meta,
    check_path,
    feed_base,
)

_OTHERS = ("reader", "group", "groups", "view", "views")
"""Families of keys that are other files' own; not looked into."""


class Verification:
    """Verifies a conversation, or the whole namespace; counts what it has read."""

    def __init__(self, audit: Audit, progress: Callable[[Verification], None] = lambda _: None) -> None:
        self.conversations = 0
        self.events = 0
        self._audit = audit
        self._progress = progress
        self._partitions = 0
        self._bases: dict[int, tuple[int, int]] = {}
        """The last trimmed entry of each feed that was looked at."""
        self._readers: set[tuple[int, bytes, bytes]] = set()
        """(partition, key, group as the key names it) of all readers."""

    async def faults(self, conversation: LogId | None = None) -> AsyncIterator[Fault]:
        """Every fault, conversation by conversation, then those of the feed, partition by partition."""
        async for fault in self._meta():
            yield fault
        if not self._partitions:
            return
        if conversation is not None:
            path = conversation.path.encode()
            partition = partition_of(conversation.path, self._partitions)
            async for fault in self._partition(partition, {path}, path):
                yield fault
            return
        strict = {partition: await self._feed_end(partition) for partition in range(self._partitions)}
        paths: dict[int, set[bytes]] = {partition: set() for partition in range(self._partitions)}
        async for fault in self._keys(paths):
            yield fault
        for partition, found in paths.items():
            async for fault in self._partition(partition, found, None, strict[partition]):
                yield fault
        async for fault in self._marks():
            yield fault

    async def _meta(self) -> AsyncIterator[Fault]:
        audit, owner = self._audit, f"key {self._audit.meta_key.decode()!r}"
        found = await audit.type_of(audit.meta_key)
        if found == "none":
            async for _ in audit.keys():
                yield Fault("the namespace", "it is not there", "it should say layout and partitions", owner)
                return
        elif found != "hash":
            yield Fault("its type", f"it is a {found}", "it should be a hash", owner)
        else:
            meta = await audit.meta()
            faults = list(check_meta(meta))
            for fault in faults:
                yield fault._replace(owner=owner)
            if not any("partitions" in fault.where for fault in faults):
                self._partitions = int(meta[b"partitions"])

    async def _keys(self, paths: dict[int, set[bytes]]) -> AsyncIterator[Fault]:
        """Sorts the keys of the namespace into ``paths``, by partition. A key that fits nowhere is a fault."""
        told: set[bytes] = set()
        async for key in self._audit.keys():
            problem = self._place(key, paths)
            if problem and key not in told:
                told.add(key)
                yield Fault("its name", problem, "it should not be there", f"key {_text(key)!r}")

    def _place(self, key: bytes, paths: dict[int, set[bytes]]) -> str | None:
        match = re.fullmatch(rb"\{[^:}]*:(0|[1-9]\d{0,4})\}:([a-z-]+)(?::(.+))?", key, re.DOTALL)
        if key == self._audit.meta_key:
            return None
        if match is None or int(match[1]) not in paths:
            return "it fits no pattern of this layout"
        partition, family, path = int(match[1]), match[2].decode(), match[3]
        if family == "reader" and path and b":" not in path:
            self._readers.add((partition, key, path))
        if family in _OTHERS or (family in ("feed", "feed-base", "conversations") and path is None):
            return None
        if family not in FAMILIES or path is None:
            return "it fits no pattern of this layout"
        problem = check_path(path, partition, self._partitions)
        if problem is None:
            paths[partition].add(path)
        return problem

    async def _partition(
        self, partition: int, paths: set[bytes], only: bytes | None, strict: int | None = None
    ) -> AsyncIterator[Fault]:
        if strict is None:
            strict = await self._feed_end(partition)
        feed = FeedCheck(partition, self._partitions, strict, only)
        async for fault in self._index(partition, paths, only):
            yield fault
        for path in sorted(paths):
            async for fault in self._log(partition, path, feed):
                yield fault
        async for fault in self._feed(partition, feed):
            yield fault

    async def _index(self, partition: int, paths: set[bytes], only: bytes | None) -> AsyncIterator[Fault]:
        """Adds to ``paths`` what the set of conversations names, and says what it should not hold."""
        key = self._audit.key(partition, "conversations")
        found = await self._audit.type_of(key)
        if found not in ("zset", "none"):
            yield Fault("its type", f"it is a {found}", "it should be a zset", f"key {_text(key)!r}")
        elif only is None:
            told: set[bytes] = set()
            async for path in self._audit.listed(partition):
                problem = check_path(path, partition, self._partitions)
                if problem is None:
                    paths.add(path)
                elif path not in told:
                    told.add(path)
                    where = f"member {_text(path)!r}"
                    yield Fault(
                        where, problem, "it should be the path of a log of this partition", f"key {_text(key)!r}"
                    )

    async def _log(self, partition: int, path: bytes, feed: FeedCheck) -> AsyncIterator[Fault]:
        snapshot = await self._audit.snapshot(path, partition)
        check, faults = LogCheck(snapshot), list[Fault]()
        if snapshot.last_id is not None and not check.is_deleted:
            async for page in self._audit.entries(path, partition, snapshot.last_id):
                for entry_id, fields in page:
                    faults += check.take(entry_id, fields)
                self.events += len(page)
                self._progress(self)
        faults += check.end()
        if faults and not check.is_deleted:
            snapshot = await self._audit.snapshot(path, partition)
            again = LogCheck(snapshot)
            if again.is_deleted:  # while its log was read
                check, faults = again, list(again.end())
        for fault in faults:
            yield fault._replace(owner=_owner(path))
        if snapshot.unlike or check.is_deleted:
            feed.pass_over(path)
        else:
            feed.add(path, check)
        self.conversations += 1
        self._progress(self)

    async def _feed(self, partition: int, feed: FeedCheck) -> AsyncIterator[Fault]:
        owner = f"key {_text(self._audit.key(partition, 'feed'))!r}"
        found = await self._audit.type_of(self._audit.key(partition, "feed"))
        if found not in ("stream", "none"):
            yield Fault("its type", f"it is a {found}", "it should be a stream", owner)
            return
        async for fault in self._begin(partition, feed):
            yield fault
        async for page in self._audit.feed(partition):
            if (first := _number(page[0][0])) > feed.seq + 1:  # it may have been trimmed while it was read
                feed.begin(min(feed_base(await self._base_fields(partition))[0], first - 1))
            async for fault in self._unread(partition, page, feed):
                yield fault
            for entry_id, fields in page:
                for fault in feed.take(entry_id, fields):
                    yield fault._replace(owner=owner)
            if feed.is_done:
                break
        for path, fault in feed.end():
            yield fault._replace(owner=_owner(path))

    async def _begin(self, partition: int, feed: FeedCheck) -> AsyncIterator[Fault]:
        """Tells the check where the feed begins; yields what is wrong with what says so."""
        key = self._audit.key(partition, "feed-base")
        found, owner = await self._audit.type_of(key), f"key {_text(key)!r}"
        if found not in ("hash", "none"):
            yield Fault("its type", f"it is a {found}", "it should be a hash", owner)
        fields = await self._base_fields(partition)
        for fault in check_feed_base(fields, await self._feed_end(partition)):
            yield fault._replace(owner=owner)
        self._bases[partition] = feed_base(fields)
        feed.begin(self._bases[partition][0])

    async def _base_fields(self, partition: int) -> dict[bytes, bytes]:
        key = self._audit.key(partition, "feed-base")
        return await self._audit.fields(key) if await self._audit.type_of(key) == "hash" else {}

    async def _marks(self) -> AsyncIterator[Fault]:
        """Marks that lie where a feed was trimmed. They were read after it, and only move away from there."""
        for partition, key, group in sorted(self._readers):
            if base := self._bases.get(partition):
                mark = (await self._audit.fields(key)).get(b"mark")
                if mark is None:
                    mark = _start(await self._audit.fields(self._audit.key(0, "group", group)), partition)
                for fault in check_mark(mark, base) if mark else ():
                    yield fault._replace(owner=f"key {_text(key)!r}")

    async def _unread(self, partition: int, page: Iterable[Entry], feed: FeedCheck) -> AsyncIterator[Fault]:
        """Reads the logs that the feed names and no key or index did."""
        for entry_id, fields in page:
            path = fields[1] if fields[0] == b"c" else b""
            is_old = entry_id.startswith(b"0-") and int(entry_id[2:]) <= feed.strict
            if is_old and not feed.knows(path) and check_path(path, partition, self._partitions) is None:
                async for fault in self._log(partition, path, feed):
                    yield fault

    async def _feed_end(self, partition: int) -> int:
        key = self._audit.key(partition, "feed")
        return await self._audit.feed_end(partition) if await self._audit.type_of(key) == "stream" else 0


def _number(entry_id: bytes) -> int:
    seq = entry_id.partition(b"-")[2]
    return int(seq) if seq.isdigit() else 0


def _start(group: dict[bytes, bytes], partition: int) -> bytes | None:
    """Where a group without a mark stands; None for the beginning, which is read from the logs."""
    try:
        start = orjson.loads(group[b"settings"])["start"][partition].encode()
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        return None
    return None if start == b"0-0" else bytes(start)


def _text(value: bytes) -> str:
    return value.decode(errors="backslashreplace")


def _owner(path: bytes) -> str:
    log = LogId.of_path(_text(path))
    return f"conversation {log.conversation!r} of {log.tenant!r}"
