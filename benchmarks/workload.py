"""Conversations to measure on."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence

from eventlog import Conversation, Draft, EventLog, assistant, tool_call, user
from projections.live import Live
from projections.projector import Projector
from projections.views.history import HISTORY

EVENTS_A_TURN, MESSAGES_A_TURN = 10, 4


def body() -> dict[str, object]:
    """The data of one event of about 1 KB."""
    return {"message_id": "m", "role": "user", "parts": [{"type": "text", "content": secrets.token_hex(450)}]}


async def record(conversation: Conversation, turns: int, size: int = 500) -> None:
    """Four messages a turn, of about ``size`` bytes each: a question, a tool call, its result, an answer."""
    half = size // 2
    for turn in range(turns):
        async with conversation.run(carry="none") as run:
            await run.add(user(secrets.token_hex(half)))
            async with run.service_call() as call:
                key = {"key": secrets.token_hex(half - 50)}
                await call.complete(assistant(tool_call(f"call-{turn}", "look_up", key)))
            await run.add_result(call.function_calls[0], secrets.token_hex(half))
            async with run.service_call() as call:
                await call.complete(assistant(secrets.token_hex(half)))


async def record_all(conversations: Sequence[Conversation], turns: int, size: int = 500) -> None:
    """The same in many conversations, 16 side by side."""
    for start in range(0, len(conversations), 16):
        await asyncio.gather(*(record(one, turns, size) for one in conversations[start : start + 16]))


async def post(conversation: Conversation, events: int) -> None:
    """Messages of about 1 KB, one an event, 20 an append, outside any run."""
    for first in range(0, events, 20):
        await conversation.append(*(_posted(index) for index in range(first, min(first + 20, events))))


def _posted(index: int) -> Draft:
    return Draft(
        "message-added",
        {
            "message_id": secrets.token_hex(8),
            "role": ("user", "assistant")[index % 2],
            "parts": [{"type": "text", "content": secrets.token_hex(430)}],
        },
    )


async def keep_history(log: EventLog) -> None:
    """Bring the history view up to date, and wait until loads through this log read it: they look once a second."""
    await Projector(log, [HISTORY]).catch_up()
    async with asyncio.timeout(10):
        while await Live.of(log.store).find(HISTORY) is None:
            await asyncio.sleep(0.05)
