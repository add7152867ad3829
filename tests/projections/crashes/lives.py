"""Logs of all kinds for projectors to fold: runs of both modes, aborted ones, rewinds, compactions, late results."""

from __future__ import annotations

import asyncio
from random import Random

from eventlog import EventLog
from eventlog.errors import OutcomeUnknown, ServerUnavailable
from eventlog.events import Draft, Event
from eventlog.identity import LogId, new_id
from tests.history.strategies import _DOING, Builder, Choice
from tests.projections.world import append, drafts


class Lives:
    """Conversations of two tenants, and their writers. The same seed gives the same events."""

    def __init__(self, log: EventLog, seed: int, conversations: int = 8) -> None:
        self.log = log
        self.chance = Random(seed)
        self.logs = [LogId(("a", "b/c")[number % 2], f"c{number}") for number in range(conversations)]
        self.deleted: set[LogId] = set()
        self._writers = {log_id: Builder() for log_id in self.logs}

    async def write(self, choices: int, among: int | None = None) -> int:
        """So many steps in each of some conversations; how many events came of it."""
        living = [log_id for log_id in self.logs if log_id not in self.deleted]
        chosen = living if among is None else self.chance.sample(living, min(among, len(living)))
        return sum(await asyncio.gather(*(self.write_to(log_id, choices) for log_id in chosen)))

    async def write_to(self, log_id: LogId, choices: int) -> int:
        """The same in one."""
        writer = self._writers[log_id]
        before = len(writer.events)
        numbers = [[self.chance.randrange(32) for _ in range(3)] for _ in range(choices)]
        writer.build([Choice(self.chance.choice(_DOING), *three) for three in numbers])
        new = drafts(writer.events[before:])
        while new:
            size = self.chance.randint(1, 4)
            await self._append(log_id, new[:size])
            del new[:size]
        return len(writer.events) - before

    async def _append(self, log_id: LogId, new: list[Draft]) -> None:
        """Once, however often the server is away."""
        operation = new_id()
        while True:
            try:
                await append(self.log.store, log_id, new, operation)
            except (ServerUnavailable, OutcomeUnknown):
                await asyncio.sleep(0.01)
            else:
                return

    async def delete_one(self) -> None:
        """Delete a conversation for good."""
        living = [log_id for log_id in self.logs if log_id not in self.deleted]
        log_id = self.chance.choice(living)
        await self.log.tenant(log_id.tenant).conversation(log_id.conversation).delete(force=True)
        self.deleted.add(log_id)

    def forget(self, log_id: LogId, events: list[Event]) -> None:
        """The server lost the log's end; go on from what is there."""
        writer = Builder()
        for event in events:
            writer.events.append(event)
            writer.ledger.apply(event)
        self._writers[log_id] = writer
