"""A log in memory by the loop's clock, and its projectors: what the tests of projections share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from eventlog import EventLog
from eventlog.codec import encode
from eventlog.conversation import Conversation
from eventlog.events import Draft, Event
from eventlog.identity import LogId, new_id, partition_of
from eventlog.messages import user
from eventlog.store.memory import MemoryStore
from eventlog.store.memory_readers import MemoryReaders
from eventlog.store.port import Append, Appended, LogStore
from eventlog.store.views import Contents, ViewId
from projections.difference import Difference
from projections.live import Live
from projections.projection import Projection
from projections.projector import Projector
from projections.verifying import Verifying

AT = "2026-01-01T00:00:00.000000Z"
START_MS = 1_790_000_000_000


class World:
    """A log, and the views beside it."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.store: Any = log.store
        self.live = Live.of(log.store)

    @classmethod
    def in_memory(cls, *, partitions: int = 2, store: type[MemoryStore] = MemoryStore) -> World:
        """In memory. Its clock is that of the running loop."""
        loop = asyncio.get_running_loop()

        def clock() -> int:
            return START_MS + int(loop.time() * 1000)

        memory = store(partitions=partitions, clock=clock)
        MemoryReaders.of(memory)._clock = clock
        return cls(EventLog(memory))

    def projector(self, *projections: Projection[Any], **options: Any) -> Projector:
        return Projector(self.log, projections, **options)

    def chat(self, log: LogId) -> Conversation:
        return self.log.tenant(log.tenant).conversation(log.conversation)

    async def append(self, log: LogId, *drafts: Draft, operation_id: str | None = None) -> Appended:
        """Append them in one operation, whatever they are."""
        return await append(self.store, log, drafts, operation_id)

    async def say(self, log: LogId, count: int = 1) -> None:
        """Post messages, each in an operation of its own."""
        for _ in range(count):
            await self.append(log, message())

    async def events(self, log: LogId) -> list[Event]:
        return [event async for event in self.chat(log).read()]

    async def contents(self, view: ViewId, log: LogId) -> Contents | None:
        return await self.live.views.contents(view, log)

    async def version(self, view: ViewId, log: LogId) -> int:
        """How far the view is in a conversation."""
        found = await self.contents(view, log)
        return 0 if found is None else found.kept.cursor.version

    async def verify(self, projection: Projection[Any], view: ViewId | None = None) -> list[Difference]:
        """All differences of the view that is read, or of this one."""
        found = await self.live.view(projection) if view is None else view
        return [one async for one in Verifying(self.live, projection, found).differences()]

    async def drop(self, view: ViewId) -> None:
        """Drop a generation that is not live, as an operator does: first what is recorded, then what is kept."""
        await self.live.change(view.projection, lambda record: record.without(view.generation))
        await self.live.readers.remove(view.group)
        await self.live.views.drop(view)

    async def drop_all(self, name: str) -> None:
        """Drop a whole projection."""
        self.live.forget(name)
        record = await self.live.record(name)
        await self.live.change(name, lambda _: None)
        for one in record.generations:
            await self.live.readers.remove(ViewId(name, one.number).group)
            await self.live.views.drop(ViewId(name, one.number))
        self.live.forget(name)


async def append(store: LogStore, log: LogId, drafts: Sequence[Draft], operation_id: str | None = None) -> Appended:
    """Append to a store itself: no rule of a run stands in the way."""
    operation = operation_id or new_id()
    head = await store.head(log)
    return await store.append(Append(log, operation, encode(drafts, operation, AT), head.last))


def message(text: str = "hello") -> Draft:
    return Draft("message-added", {"message_id": new_id(), **user(text).as_json(), "role": "user"})


def drafts(events: Iterable[Event]) -> list[Draft]:
    """The events of a generated log, to be appended."""
    return [Draft(event.type, event.data, event.run, event.call) for event in events]


def logs_in(partition: int, partitions: int = 2, tenant: str = "t") -> list[LogId]:
    """Ten conversations of one partition."""
    found = (LogId(tenant, f"c{number}") for number in range(1_000))
    return [log for log in found if partition_of(log.path, partitions) == partition][:10]


async def listed(found: AsyncIterator[Any]) -> list[Any]:
    return [one async for one in found]
