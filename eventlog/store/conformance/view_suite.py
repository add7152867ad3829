"""What the tests of views share: a view that is held, and ways to write to it and to look at it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, NamedTuple, TypeVar

from eventlog.errors import EventLogError
from eventlog.identity import LogId, partition_of
from eventlog.reader import Store
from eventlog.store.conformance.suite import LOG, put
from eventlog.store.readers import Advance, Counts, Hold, Mark, Place, ReaderStore
from eventlog.store.views import Contents, Filed, Found, Kept, ViewId, ViewStore, Writing

LEASE = 60_000
VIEW = ViewId("history", 1)
Refusal = TypeVar("Refusal", bound=EventLogError)


class Known(NamedTuple):
    """All that is told of a view in one partition, and of its reader."""

    place: Place
    progress: str | None
    contents: dict[str, Contents | None]
    indexes: dict[tuple[str, str], list[Found]]
    totals: dict[str, dict[str, int]]


class Held:
    """A view whose part in one partition is held, and the entries of that partition's feed."""

    def __init__(self, store: Store, readers: ReaderStore, views: ViewStore, view: ViewId, hold: Hold) -> None:
        self.store, self.readers, self.views = store, readers, views
        self.view, self.hold = view, hold
        self.mark: Mark | None = None
        """Where it stands."""

    @property
    def partition(self) -> int:
        return self.hold.partition

    async def write(self, *writings: Writing, mark: Mark | None = None, **options: Any) -> Counts:
        """Commit from where the mark is to ``mark``, or leave it where it is."""
        step = Advance(self.mark, mark or self.mark)
        counts = await self.views.commit(self.view, self.hold, step, writings, LEASE, **options)
        self.mark = step.mark
        return counts

    async def contents(self, log: LogId = LOG) -> Contents | None:
        return await self.views.contents(self.view, log)

    async def lines(self, index: str, *, tenant: str = LOG.tenant, **options: Any) -> list[Found]:
        """The lines of an index; the first 100 unless it is said."""
        options.setdefault("count", 100)
        return await self.views.index(self.view, self.partition, tenant, index, **options)

    async def keys(self, index: str, **options: Any) -> list[str]:
        return [found.key for found in await self.lines(index, **options)]

    async def totals(self, tenant: str = LOG.tenant) -> dict[str, int]:
        return await self.views.totals(self.view, self.partition, tenant)

    async def known(self) -> Known:
        """All that the store tells of it."""
        views, view, partition = self.views, self.view, self.partition
        logs = [log async for log, _ in views.kept(view, partition)]
        return Known(
            await self.readers.place(self.hold.group, partition),
            await views.progress(view, partition),
            {log.path: await views.contents(view, log) for log in logs},
            {
                (tenant, index): await self.lines(index, tenant=tenant)
                for tenant, index in await views.indexes(view, partition)
            },
            {tenant: await self.totals(tenant) for tenant in await views.tenants(view, partition)},
        )


async def held(
    store: Store,
    readers: ReaderStore,
    views: ViewStore,
    *,
    view: ViewId = VIEW,
    partition: int | None = None,
    fence: str = "aa",
) -> Held:
    """The view, made, and held where ``LOG`` is or in another partition."""
    await views.create(view)
    there = partition_of(LOG.path, store.partitions) if partition is None else partition
    hold = Hold(view.group, there, fence)
    assert await readers.acquire(hold, f"holder-{fence}", LEASE) is not None
    return Held(store, readers, views, view, hold)


async def marks(store: Store, count: int = 3) -> list[Mark]:
    """The marks of that many appends to ``LOG``."""
    for number in range(count):
        await put(store, number, f"op-{number}")
    feed = await store.read_feed(partition_of(LOG.path, store.partitions), 1, count)
    return [Mark(entry.seq, entry.stamp) for entry in feed]


def kept(state: object = "", *, log: LogId = LOG, version: int = 1, stamp: int = 7) -> Kept:
    """What is kept of a conversation."""
    return Kept(log.cursor(version, stamp), str(state).encode())


def filed(document: str, **under: str) -> Filed:
    """A document in indexes."""
    return Filed(document.encode(), under)


def writing(log: LogId = LOG, **options: Any) -> Writing:
    """A writing that keeps something unless it is told not to."""
    return Writing(log, options.pop("kept", kept(log=log)), **options)


def beside(store: Store, count: int, *, tenant: str = LOG.tenant, to: LogId = LOG) -> list[LogId]:
    """Conversations of a tenant in the same partition as another."""
    wanted, number = partition_of(to.path, store.partitions), 0
    found: list[LogId] = []
    while len(found) < count:
        log = LogId(tenant, f"c{number}")
        number += 1
        if partition_of(log.path, store.partitions) == wanted:
            found.append(log)
    return found


async def refused(kind: type[Refusal], attempt: Awaitable[object]) -> Refusal:
    """The error of this very kind that the attempt ends with."""
    outcome: object
    try:
        outcome = await attempt
    except EventLogError as error:
        outcome = error
    assert type(outcome) is kind, f"{outcome!r} where {kind.__name__} was due"
    return outcome
