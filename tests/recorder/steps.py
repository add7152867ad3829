"""What the tests do with a run, look for in its log, and how they cut a step short."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import fields
from typing import Any, NamedTuple

import anyio

from eventlog import (
    Conversation,
    Event,
    FunctionCall,
    Message,
    Progress,
    Run,
    RunRefused,
    ServiceCall,
    assistant,
    tool_call,
    user,
)

PATIENCE = 10.0
ENDS = ("service-call-completed", "service-call-failed")


class Cut(NamedTuple):
    """Starts a step, lets the loop turn this often, cancels it, and waits until all that it began has ended."""

    way: str
    turns: int

    def __str__(self) -> str:
        return f"{self.way}-after-{self.turns}"

    async def __call__(self, make: Callable[[], Awaitable[object]]) -> None:
        before = asyncio.all_tasks()
        scope = anyio.CancelScope()

        async def step() -> None:
            with scope:
                await make()

        task = asyncio.create_task(step())
        for _ in range(self.turns):
            await asyncio.sleep(0)
        if self.way == "scope":
            scope.cancel()
        else:
            task.cancel()
        if self.way == "twice":
            await asyncio.sleep(0)
            task.cancel()
        await ended({task})
        if not task.cancelled():
            task.result()
        await ended(asyncio.all_tasks() - before)


async def ended(tasks: set[asyncio.Task[Any]]) -> None:
    """Wait until these tasks have ended."""
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=PATIENCE)
        assert not late


CUTS = [Cut(way, turns) for turns in range(7) for way in ("scope", "task", "twice")]


async def events(chat: Conversation, *types: str) -> list[Event]:
    return [event async for event in chat.read(types=types or None)]


async def counts(chat: Conversation) -> Counter[str]:
    """How often each type of event is in the log."""
    return Counter(event.type for event in await events(chat))


async def agree(run: Run) -> None:
    """What the recorder knows of an open run is what the log tells."""
    assert told(run.progress) == told(await run.conversation.progress(run.id))


def told(progress: Progress) -> dict[str, Any]:
    """What a progress tells its readers."""
    return {field.name: getattr(progress, field.name) for field in fields(progress) if not field.name.startswith("_")}


async def answered(run: Run, *reply: Message) -> ServiceCall:
    """A service call that was completed with this reply."""
    async with run.service_call() as call:
        await call.complete(*reply)
    return call


async def asked(run: Run, *call_ids: str) -> list[FunctionCall]:
    """The function calls of a service call that asked for these."""
    await run.add(user("go"))
    call = await answered(run, assistant(*[tool_call(call_id, "look", {}) for call_id in call_ids]))
    return call.function_calls


@asynccontextmanager
async def held(chat: Conversation) -> AsyncIterator[Run]:
    """A run whose holder does not mind to be replaced."""
    run = chat.run()
    await run.__aenter__()
    try:
        yield run
    finally:
        with suppress(RunRefused):
            await run.__aexit__(None, None, None)
