"""What the tests do to a log with one partition, and ask of it."""

from __future__ import annotations

from typing import Any

from eventlog import Conversation, EventLog
from eventlog.delivery import Delivery
from eventlog.reader import Store
from eventlog.store.beside import readers_beside
from eventlog.store.conformance.suite import notes
from eventlog.store.readers import ReaderStore


def chat(log: EventLog, name: str = "a", tenant: str = "t") -> Conversation:
    return log.tenant(tenant).conversation(name)


async def fill(log: EventLog, *names: str, events: int = 3, tenant: str = "t") -> None:
    for name in names:
        for number in range(events):
            await chat(log, name, tenant).append(*notes(number))


def beside(log: EventLog) -> tuple[Store, ReaderStore]:
    store, readers = readers_beside(log.store)
    return store, readers()


class Seen(list[tuple[str, int]]):
    """(conversation, version) of all that was delivered, in order."""

    async def __call__(self, delivery: Delivery) -> None:
        self.append((delivery.conversation.conversation, delivery.version))

    def of(self, name: str) -> list[int]:
        return [version for one, version in self if one == name]


async def nothing(_: Any) -> None:
    """Handles anything."""
