"""A place in one partition's feed: its mark, its holder until when, and the fence that proves it.

Whoever follows a partition for good (a consumer group, a projector, a rebuild, trimming) holds a
reader. Every fetch reads the entry it stands at again and compares the stamp; every step is one
fenced write. So nothing is skipped, and what the server lost is said as ``LogLost``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from eventlog.errors import ConversationDeleted, FeedLost, Gap, LogLost, Truncated
from eventlog.identity import Cursor, LogId, new_fence
from eventlog.store import refusals
from eventlog.store.port import Entry, FeedEntry, FeedStore, LogStore
from eventlog.store.readers import BEGINNING, Advance, Counts, Hold, Mark, Place, ReaderStore


class Store(LogStore, FeedStore, Protocol):
    """A store of logs and their feeds."""


Commit = Callable[[Hold, Advance, int], Awaitable[Counts]]
"""Takes a step of a reader and writes with it; the last is the lease in milliseconds."""


class Reader:
    """A held place in a partition's feed. Get one with ``acquire``."""

    def __init__(
        self, store: Store, readers: ReaderStore, hold: Hold, place: Place, start: Mark, lease: float, asked_at: float
    ) -> None:
        self.hold = hold
        self.generation = place.generation
        self.mark = place.stands(start)
        """The last entry passed; where the group began when no mark was ever written."""
        self.left = place.window
        """The last entry that a former holder handed over and did not settle; 0: there is none."""
        self._store = store
        self._readers = readers
        self._stored = place.mark
        self._lease_ms = int(lease * 1000)
        self._loop = asyncio.get_running_loop()
        self._until = asked_at + lease
        self._order = asyncio.Lock()
        self._clock = place.since_ms / 1000 - asked_at

    @classmethod
    async def acquire(
        cls, store: Store, readers: ReaderStore, group: str, partition: int, *, start: Mark, holder: str, lease: float
    ) -> Reader | None:
        """Take the place for ``lease`` seconds; None while another holds it. ``start`` stands for a missing mark."""
        hold = Hold(group, partition, new_fence())
        asked_at = asyncio.get_running_loop().time()
        place = await readers.acquire(hold, holder, int(lease * 1000))
        return None if place is None else cls(store, readers, hold, place, start, lease, asked_at)

    @property
    def is_new(self) -> bool:
        """Whether it begins at the feed's first entry, and nobody has ever handed anything over."""
        return self._stored is None and self.mark == BEGINNING and not self.left

    @property
    def held(self) -> bool:
        """Whether the lease surely runs: counted from before it was last asked for."""
        return self._loop.time() < self._until

    def now_ms(self) -> int:
        """About the store's clock, by this process's own since the place was taken."""
        return int((self._clock + self._loop.time()) * 1000)

    async def renew(self) -> Counts:
        """Hold it for another lease. Raises ``ReaderFenced``, also when its mark is not where it was left."""
        async with self._order:
            asked_at = self._loop.time()
            counts = await self._readers.renew(self.hold, self._lease_ms, self._stored)
            self._extend(asked_at)
        return counts

    async def fetch(self, after: Mark, count: int) -> list[FeedEntry]:
        """At most ``count`` entries after ``after``, whose entry must be there, or be the last one trimmed.

        Raises ``LogLost``, or ``Truncated`` when entries behind it were trimmed.
        """
        if after == BEGINNING:
            entries = await self._store.read_feed(self.hold.partition, 1, count)
            if entries and entries[0].seq != 1:
                await self._check_base(after)
        else:
            entries = await self._store.read_feed(self.hold.partition, after.seq, count + 1)
            if entries and (entries[0].seq, entries[0].stamp) == after:
                del entries[0]
            else:
                await self._check_base(after)
        for seq, entry in enumerate(entries, after.seq + 1):
            if entry.seq != seq:
                raise self.lost(Mark(seq, 0))
        return entries[:count]

    async def _check_base(self, after: Mark) -> None:
        """Raise, unless ``after`` is the last trimmed entry.

        What is trimmed only grows: when it is ``after`` now, it was no more when the feed was read.
        """
        base = await self._store.feed_base(self.hold.partition)
        if base.seq > after.seq:
            raise self._truncated(after, Mark(base.seq, base.stamp))
        if (base.seq, base.stamp) != after:
            raise self.lost(after)

    async def advance(self, step: Advance, commit: Commit | None = None) -> Counts:
        """Take a step from where the mark is, and with it what ``commit`` writes. Steps of one reader go in turn.

        Raises ``ReaderFenced`` when another holds the place, ``LogLost`` when the mark would name
        an entry that is gone.
        """
        async with self._order:
            step.before = self._stored
            if step.mark == self.mark:
                step.mark = self._stored
            asked_at = self._loop.time()
            try:
                counts = await (commit or self._readers.advance)(self.hold, step, self._lease_ms)
            except FeedLost as error:
                raise self.lost(step.mark or BEGINNING) from error
            self._extend(asked_at)
            if step.mark is not None:
                self._stored = self.mark = step.mark
            return counts

    async def release(self) -> None:
        """Give the place up. Raises ``ReaderFenced``."""
        self._until = self._loop.time()
        await self._readers.release(self.hold)

    def _extend(self, asked_at: float) -> None:
        self._until = max(self._until, asked_at + self._lease_ms / 1000)

    def _truncated(self, after: Mark, base: Mark) -> Truncated:
        partition = self.hold.partition
        return Truncated(
            f"the feed of partition {partition} was trimmed, up to entry {base.seq}, and group {self.hold.group!r} had "
            f"passed entry {after.seq} only: remove the group and make it again, it then reads the conversations "
            "themselves",
            Cursor(*base, f"{partition:08x}"),
        )

    def lost(self, mark: Mark) -> LogLost:
        """The error for a feed entry that should be there. ``available`` names the mark: its number and stamp."""
        partition = self.hold.partition
        return LogLost(
            f"the feed of partition {partition} does not hold entry {mark.seq}, which group {self.hold.group!r} passed "
            "or is to read next: the server lost acknowledged appends; `eventlog verify` tells what is left, and a "
            "group that is removed and made again starts anew",
            Cursor(self.mark.seq, self.mark.stamp, f"{partition:08x}"),
        )


async def ends_of(store: FeedStore) -> tuple[Mark, ...]:
    """For each partition the mark of its feed's newest entry: that of who has passed all there is now."""
    marks = []
    for partition, end in enumerate(await store.feed_ends()):
        newest = await store.read_feed(partition, end, 1) if end else []
        marks.append(Mark(newest[0].seq, newest[0].stamp) if newest else BEGINNING)
    return tuple(marks)


async def read_checked(store: LogStore, log: LogId, first: int, last: int) -> list[Entry]:
    """The events with versions ``first`` to ``last``, all of them.

    Raises ``LogLost``, ``Truncated`` or ``ConversationDeleted``.
    """
    entries = await store.read(log, first, last, last - first + 1)
    if len(entries) == last - first + 1 and entries[0].version == first and entries[-1].version == last:
        return entries
    there = {entry.version for entry in entries}
    raise await missing(store, log, next(version for version in range(first, last + 1) if version not in there))


async def missing(store: LogStore, log: LogId, version: int) -> Gap | ConversationDeleted:
    """The error for an event that a feed names and a log does not hold."""
    head = await store.head(log)
    if head.deleted:
        return refusals.gone(log)
    where = f"version {version} of conversation {log.conversation!r} of {log.tenant!r}"
    if version <= head.base.version:
        return Truncated(f"{where} was trimmed, up to version {head.base.version}, before it was delivered", head.base)
    return LogLost(
        f"{where} is gone: the server lost acknowledged events; what is left ends at version {head.last.version}",
        head.last,
    )
