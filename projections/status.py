"""How the views stand, generation by generation, and what an operator does with them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from eventlog.errors import GroupGone, InvalidInput
from eventlog.identity import LogId
from eventlog.parking import Parked
from eventlog.reader import Store
from eventlog.store.readers import Ask, Mark, Member
from eventlog.store.views import ViewId
from projections.live import Live
from projections.progress import Scan
from projections.registry import Generation, Record

_PAGE = 1_000

Role = Literal["live", "before", "building", "ready"]


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """How far a generation is in one partition."""

    partition: int
    mark: int
    """The number of the last feed entry passed."""
    end: int
    """The number of the feed's newest entry."""
    scan: Scan
    holder: str
    """Who keeps it; empty while nobody does."""
    lease_ms: int
    """Until when, by the store's clock; 0 while nobody holds it."""
    waiting: int
    """Conversations that wait because an event cannot be applied."""

    @property
    def lag(self) -> int:
        """Appends that the mark has not passed."""
        return max(self.end - self.mark, 0)


@dataclass(frozen=True, slots=True)
class GenerationStatus:
    """One generation of a view as it is now."""

    generation: Generation
    role: Role
    """``live`` is read; ``before`` was live before it, and a rollback goes there."""
    members: tuple[Member, ...]
    """The processes that keep it."""
    partitions: tuple[PartitionProgress, ...]
    """Empty while it was only just begun."""
    failures: tuple[Parked, ...]
    """The events that could not be applied, the oldest first, with errors and traces."""

    @property
    def lag(self) -> int | None:
        """Appends that are not passed, over all partitions; None while it was only just begun."""
        return sum(one.lag for one in self.partitions) if self.partitions else None

    @property
    def waiting(self) -> int:
        """Waiting conversations, over all partitions."""
        return sum(one.waiting for one in self.partitions)

    @property
    def scanned(self) -> int:
        """Conversations of which the logs were scanned, over all partitions."""
        return sum(one.scan.conversations for one in self.partitions)

    @property
    def is_scanned(self) -> bool:
        """Whether all conversations were scanned: from then on it follows the feed."""
        return bool(self.partitions) and all(one.scan.done for one in self.partitions)


@dataclass(frozen=True, slots=True)
class ProjectionStatus:
    """A projection of which views are kept."""

    name: str
    record: Record
    generations: tuple[GenerationStatus, ...]
    """By number."""

    @property
    def live(self) -> GenerationStatus | None:
        """The generation that is read; None while none was ever whole."""
        return next((one for one in self.generations if one.role == "live"), None)


async def statuses(live: Live) -> list[ProjectionStatus]:
    """All projections of which views are kept, sorted by name."""
    names = await live.views.names()
    records = [Record.unpack(await live.views.record(name)) for name in names]
    return [await _status(live, *one) for one in zip(names, records, strict=True) if one[1].generations]


async def status(live: Live, name: str) -> ProjectionStatus:
    """One projection. Raises ``InvalidInput`` when no view of it is kept."""
    return await _status(live, name, await _kept(live, name))


async def conversations(store: Store) -> int:
    """How many conversations there are, of all tenants. Takes a walk along their names."""
    counts = await asyncio.gather(*(_conversations(store, partition) for partition in range(store.partitions)))
    return sum(counts)


async def scans(live: Live, view: ViewId) -> list[Scan]:
    """How far the scan of each partition is."""
    partitions = range(live.store.partitions)
    found = await asyncio.gather(*(live.views.progress(view, partition) for partition in partitions))
    return [Scan.parse(text) for text in found]


async def rollback(live: Live, name: str) -> Record:
    """Make the generation live that was before; a second rollback undoes it. Raises ``InvalidInput``."""
    await _kept(live, name)
    return await live.change(name, Record.rollback)


async def drop(live: Live, name: str, generation: int | None = None) -> list[int]:
    """Drop one generation, or all when None, with their readers; return their numbers.

    A projector that runs builds a dropped view anew, unless a generation of its version is left.
    What a drop that died left behind goes, too. Raises ``InvalidInput`` for the live generation,
    and for one that is not there.
    """
    if not Record.unpack(await live.views.record(name)).last:
        await _kept(live, name)
    dropped: set[int] = set()

    def without(record: Record) -> Record:
        # The record itself stays, so that no number is used again.
        after = replace(record, live=0, before=0, generations=()) if generation is None else record.without(generation)
        dropped.clear()
        dropped.update(_numbers(record) - _numbers(after))
        return after

    record = await live.change(name, without)
    for number in sorted(set(range(1, record.last + 1)) - _numbers(record)):
        view = ViewId(name, number)
        await live.readers.remove(view.group)
        await live.views.drop(view)
    return sorted(dropped)


async def retry(live: Live, name: str) -> int:
    """Ask for the events that could not be applied to be tried again; how many. Raises ``InvalidInput``.

    The holders of the partitions do it at their next heartbeat, and every projector when it starts.
    """
    count = 0
    for one in (await _kept(live, name)).generations:
        group = ViewId(name, one.number).group
        for partition in range(live.store.partitions):
            fields = [field async for field, _ in live.readers.parked(group, partition)]
            for field in dict.fromkeys(fields):
                count += await live.readers.ask(group, partition, field, Ask.REPLAY)
    return count


async def forget(live: Live, log: LogId) -> list[ViewId]:
    """Remove what is kept of a conversation from every generation of every view; return these.

    For a conversation that was deleted: of one that was not, projectors write what is new.
    """
    views = []
    for name in await live.views.names():
        record = Record.unpack(await live.views.record(name))
        views += [ViewId(name, one.number) for one in record.generations]
    for view in views:
        await live.views.forget(view, log)
    return views


async def _kept(live: Live, name: str) -> Record:
    record = Record.unpack(await live.views.record(name))
    if not record.generations:
        names = ", ".join(repr(one.name) for one in await statuses(live)) or "none"
        raise InvalidInput(f"no view {name!r} is kept; kept are: {names}. `eventlog projections run` builds views")
    return record


def _numbers(record: Record) -> set[int]:
    return {one.number for one in record.generations}


async def _status(live: Live, name: str, record: Record) -> ProjectionStatus:
    ends = await live.store.feed_ends()
    found = [await _generation(live, ViewId(name, one.number), record, one, ends) for one in record.generations]
    return ProjectionStatus(name, record, tuple(found))


async def _generation(
    live: Live, view: ViewId, record: Record, generation: Generation, ends: Sequence[int]
) -> GenerationStatus:
    role: Role = generation.state
    if generation.number in (record.live, record.before):
        role = "live" if generation.number == record.live else "before"
    try:
        settings, roll = await live.readers.settings(view.group), await live.readers.roll(view.group)
    except GroupGone:
        return GenerationStatus(generation, role, (), (), ())
    partitions = range(len(ends))
    parts = await asyncio.gather(*(_partition(live, view, p, ends[p], settings.mark(p)) for p in partitions))
    pages = await asyncio.gather(*(_failures(live, view, partition) for partition in partitions))
    failures = sorted((one for page in pages for one in page), key=lambda one: (one.at_ms, one.log, one.version))
    return GenerationStatus(generation, role, roll.members, tuple(parts), tuple(failures))


async def _partition(live: Live, view: ViewId, partition: int, end: int, start: Mark) -> PartitionProgress:
    scan = Scan.parse(await live.views.progress(view, partition))
    place = await live.readers.place(view.group, partition)
    counts = await live.readers.counts(view.group, partition)
    return PartitionProgress(
        partition, place.stands(start).seq, end, scan, place.holder, place.lease_ms, counts.waiting
    )


async def _failures(live: Live, view: ViewId, partition: int) -> list[Parked]:
    found = {field: document async for field, document in live.readers.parked(view.group, partition)}
    return [Parked.decode(document) for document in found.values()]


async def _conversations(store: Store, partition: int) -> int:
    count = after = 0
    while page := await store.conversations_after(partition, after, _PAGE):
        count, after = count + len(page), page[-1][0]
    return count
