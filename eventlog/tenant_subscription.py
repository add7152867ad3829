"""Following all conversations of a tenant, through the feeds of all partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from eventlog.errors import ConversationDeleted, Gap, LogLost, Truncated
from eventlog.events import Event
from eventlog.hub import Hub, TenantPlace
from eventlog.identity import Cursor, LogId
from eventlog.reading import pages
from eventlog.store.port import FeedBase, FeedEntry, FeedStore, LogStore
from eventlog.subscription import POLL, Followed, Kind, Subscription
from eventlog.tenant_cursor import Position, TenantCursor, Within, check_tenant_cursor, tenant_tag

_ENTRIES = 512
"""Feed entries that are read in one step, over all partitions."""
_PARTITIONS = 64
"""Partitions that are read in one step."""
_EVENTS = 500
"""Events after which a step takes no further append."""
_START = Position(0, 0)


class _Page(NamedTuple):
    """What was read of one feed behind its position."""

    partition: int
    entries: list[FeedEntry]
    is_whole: bool
    """There was no more."""


class TenantSubscription(Subscription[TenantCursor]):
    """See ``Tenant.follow``."""

    def __init__(
        self,
        hub: Hub,
        store: LogStore,
        tenant: str,
        after: TenantCursor | str | Literal["start", "now"] = "start",
        *,
        types: Collection[str] | None = None,
        heartbeat: float | None = None,
        poll: float = POLL,
    ) -> None:
        super().__init__(hub, heartbeat=heartbeat, poll=poll)
        self._store = store
        self._feeds: FeedStore = hub.feeds
        self._tenant = tenant
        self._tag = tenant_tag(tenant)
        self._types = None if types is None else frozenset(types)
        self._positions: list[Position] | None = None
        self._within: Within | None = None
        if after == "start":
            self._positions = [_START] * store.partitions
        elif after != "now":
            cursor = check_tenant_cursor(tenant, store.partitions, after)
            self._positions, self._within = list(cursor.positions), cursor.within
        self._unread: list[int] = []
        """The partitions that may have more, the one to read next at the front."""
        self._caught_up = False
        self._seen = -1

    def _join(self) -> TenantPlace:
        return self._hub.join_tenant(self._tenant)

    def _cursor(self) -> TenantCursor | None:
        return None if self._positions is None else TenantCursor(self._tag, tuple(self._positions), self._within)

    async def _step(self) -> None:
        place = self._place
        assert isinstance(place, TenantPlace)
        if self._positions is None:
            self._positions = await self._ends()
            self._say_caught_up()
            return
        if not self._unread:
            self._see(place)
        if self._unread:
            await self._read(self._positions)
        elif not self._caught_up:
            self._say_caught_up()
        else:
            await self._wait(place, self._seen)

    def _see(self, place: TenantPlace) -> None:
        """Find out what is to be read."""
        if self._due or place.all_grew > self._seen:
            self._unread = list(range(self._store.partitions))
            self._looked()
        else:
            self._unread = place.grown(self._seen)
        self._seen = place.news

    async def _ends(self) -> list[Position]:
        ends = await self._feeds.feed_ends()
        positions = []
        for partition, seq in enumerate(ends):
            newest = await self._feeds.read_feed(partition, seq, 1) if seq else []
            positions.append(Position(newest[0].seq, newest[0].stamp) if newest else _START)
        return positions

    async def _read(self, positions: list[Position]) -> None:
        """Take what the next partitions have, up to some number of events; nothing is taken when it fails."""
        wanted = [self._within.partition] if self._within is not None else self._unread[:_PARTITIONS]
        count = max(_ENTRIES // len(wanted), 1)
        fetched = await asyncio.gather(*(self._page(number, positions[number], count) for number in wanted))
        taken, done = self._choose(fetched)
        events, deleted = await self._events([entry for entries in taken.values() for entry in entries])
        items: list[Followed[TenantCursor]] = []
        for partition, entries in taken.items():
            for entry in entries:
                if entry.log not in deleted:
                    items += self._items_of(entry, events)
                positions[partition] = Position(entry.seq, entry.stamp)
                self._within = None
        waits = set(self._unread) - done
        self._unread = [number for number in self._unread if number not in wanted and number in waits]
        self._unread += [number for number in wanted if number in waits]
        cursor = self._cursor()
        assert cursor is not None
        passed = sum(map(len, taken.values()))
        if passed and (not items or items[-1].cursor != cursor):
            items.append(Followed(Kind.SKIPPED, cursor))
        self._give(items)

    def _choose(self, fetched: Sequence[_Page]) -> tuple[dict[int, list[FeedEntry]], set[int]]:
        """The entries to pass in this step, by partition, and the partitions that then have no more."""
        taken: dict[int, list[FeedEntry]] = {}
        done: set[int] = set()
        events = 0
        for partition, entries, is_whole in fetched:
            for index, entry in enumerate(entries):
                if events >= _EVENTS:
                    taken[partition] = entries[:index]
                    return taken, done
                events += entry.events if self._wants(entry) else 0
            taken[partition] = entries
            if is_whole:
                done.add(partition)
        return taken, done

    def _wants(self, entry: FeedEntry) -> bool:
        if entry.log.tenant != self._tenant or entry.is_deletion:
            return False
        return self._types is None or not self._types.isdisjoint(entry.kinds.split(","))

    async def _page(self, partition: int, position: Position, count: int) -> _Page:
        """The entries after the position, by one read that begins at it, checked to be without a gap.

        An entry of which only some events were given is once more among them.
        """
        found = await self._feeds.read_feed(partition, position.seq or 1, count + (position.seq > 0))
        is_whole = len(found) < count + (position.seq > 0)
        begun = self._within is not None and self._within.partition == partition
        is_there = bool(found) and (found[0].seq, found[0].stamp) == position
        if position.seq and not is_there:
            base = await self._feeds.feed_base(partition)
            if begun or (base.seq, base.stamp) != position:
                raise await self._gap(partition, position.seq, found[:1], base)
        expected = position.seq if is_there else position.seq + 1
        for entry in found:
            if entry.seq != expected:
                base = await self._feeds.feed_base(partition)
                raise await self._gap(partition, expected, [] if entry is not found[0] else [entry], base)
            expected += 1
        return _Page(partition, found[1:] if is_there and not begun else found, is_whole)

    async def _gap(self, partition: int, seq: int, first: Sequence[FeedEntry], base: FeedBase) -> Gap:
        """What to raise when the feed begins with ``first``, or has a hole at ``seq``; its last entry is told, too."""
        last = (await self._feeds.feed_ends())[partition]
        found = await self._feeds.read_feed(partition, last, 1) if last else []
        available = Cursor(last, found[0].stamp if found else 0, f"feed:{partition}")
        where = f"entry {seq} of the feed of partition {partition}"
        if base.seq >= seq or (first and first[0].seq > seq):
            begins = max(base.seq + 1, first[0].seq if first else 0)
            return Truncated(
                f"{where} was trimmed, the feed begins with {begins}: follow from `now`, then read the conversations "
                "themselves up to there",
                available,
            )
        return LogLost(
            f"{where} is gone: the server lost acknowledged events; what is left of that feed ends with {last}: follow "
            "from `start` and check what is missing",
            available,
        )

    async def _events(self, entries: Sequence[FeedEntry]) -> tuple[dict[tuple[LogId, int], Event], set[LogId]]:
        """The events of those of these appends that are asked for, each with the stamp that the feed says.

        And the conversations that were deleted since: nothing of them can be given any more.
        """
        stretches: dict[LogId, tuple[int, int]] = {}
        for entry in filter(self._wants, entries):
            first, last = stretches.get(entry.log, (entry.first, 0))
            stretches[entry.log] = (min(first, entry.first), max(last, entry.first + entry.events - 1))
        found = await asyncio.gather(*(self._stretch(log, *stretch) for log, stretch in stretches.items()))
        pairs = list(zip(stretches, found, strict=True))
        deleted = {log for log, those in pairs if those is None}
        events = {(log, event.version): event for log, those in pairs for event in those or ()}
        for entry in filter(self._wants, entries):
            if entry.log in deleted:
                continue
            for version in range(entry.first, entry.first + entry.events):
                event = events.get((entry.log, version))
                if event is None or event.stamp != entry.stamp:
                    head = await self._store.head(entry.log)
                    if head.deleted:
                        deleted.add(entry.log)
                        break
                    raise LogLost(
                        f"version {version} of conversation {entry.log.conversation!r} of {entry.log.tenant!r} is not "
                        "what the feed says: the server lost acknowledged events; read the conversation from its "
                        "start and check what is missing",
                        head.last,
                    )
        return events, deleted

    async def _stretch(self, log: LogId, first: int, last: int) -> list[Event] | None:
        """The events of these versions; None when the conversation was deleted."""
        try:
            return [event async for page in pages(self._store, log, first=first, until=last) for event in page]
        except ConversationDeleted:
            return None

    def _items_of(self, entry: FeedEntry, events: dict[tuple[LogId, int], Event]) -> list[Followed[TenantCursor]]:
        if not self._wants(entry):
            return []
        assert self._positions is not None
        positions = list(self._positions)
        positions[entry.partition] = Position(entry.seq, entry.stamp)
        cursor = TenantCursor(self._tag, tuple(positions))
        given = self._within.events if self._within is not None else 0
        items = []
        for index in range(given, entry.events):
            event = events[entry.log, entry.first + index]
            if self._types is None or event.type in self._types:
                done = index + 1 == entry.events
                within = None if done else Within(entry.partition, index + 1)
                at = cursor if done else cursor._replace(within=within)
                items.append(Followed(Kind.EVENT, at, event, entry.log.conversation))
        return items

    def _say_caught_up(self) -> None:
        cursor = self._cursor()
        assert cursor is not None
        self._caught_up = True
        self._give([Followed(Kind.CAUGHT_UP, cursor)])
