"""A conversation that was written to before, so that what a test cuts short is the step itself."""

from __future__ import annotations

import pytest

from eventlog import Conversation, Draft, EventLog


@pytest.fixture
async def chat(log: EventLog) -> Conversation:
    """A conversation, in memory and on each server; its connections are made."""
    return await opened(log)


@pytest.fixture
async def served_chat(served: EventLog) -> Conversation:
    """A conversation on each server."""
    return await opened(served)


async def opened(log: EventLog) -> Conversation:
    chat = log.tenant("t").conversation("c")
    await chat.append(Draft("x-opened", {}))
    return chat
