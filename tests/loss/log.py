"""What the tests do with a log, and look for in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

from eventlog import Appended, Conversation, Cursor, Event, EventLog, LogLost, user

NAMESPACE = "loss"


@asynccontextmanager
async def opened(url: str, *, deadline: float = 20.0) -> AsyncIterator[EventLog]:
    async with EventLog.open(url, namespace=NAMESPACE, deadline=deadline) as log:
        yield log


def chat(log: EventLog, conversation: str = "support") -> Conversation:
    """A new handle; it has seen nothing yet."""
    return log.tenant("acme").conversation(conversation)


async def add(handle: Conversation, *operations: str) -> Appended:
    """Append one message for each operation id; the outcome of the last."""
    for operation in operations:
        outcome = await handle.add(user(operation), operation_id=operation)
    return outcome


async def events(handle: Conversation, after: Cursor | None = None, reverse: bool = False) -> list[Event]:
    return [event async for event in handle.read(after, reverse=reverse)]


def operations(of: Iterable[Event]) -> list[str]:
    """The operation ids, in order."""
    return [event.id.rpartition(".")[0] for event in of]


async def assert_writer_is_told(handle: Conversation, available: int) -> None:
    with pytest.raises(LogLost) as told:
        await add(handle, f"beyond-{id(handle)}")
    assert told.value.available.version == available


async def assert_reader_is_told(handle: Conversation, after: Cursor, available: int) -> None:
    with pytest.raises(LogLost) as told:
        await events(handle, after)
    assert told.value.available.version == available
