"""The agent: one turn of the loop service call, tools, service call, … with each step recorded as it happens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from eventlog import Conversation, FunctionCall, Mode, Run, ServiceCall, text, user
from gateway.demo.script import ENDING_TOOLS, Model, StreamBroken
from gateway.demo.tools import run_tool
from projections import history

ATTEMPTS = 2
"""How often a service call is tried."""

Pause = Callable[[int], Awaitable[None]]
"""Awaited between the tools and the next service call, with the version of the newest event."""


async def turn(chat: Conversation, mode: Mode, model: Model, question: str, *, pause: Pause | None = None) -> None:
    """One run: ask, let the tools run, ask again, until there is an answer or the filter ends the loop."""
    async with chat.run(mode, agent="guide") as run:
        await run.add(user(question))
        while True:
            call = await ask(run, model)
            if not call.function_calls:
                return
            async with anyio.create_task_group() as tools:
                for function_call in call.function_calls:
                    tools.start_soon(answer, run, function_call)
            if any(function_call.name in ENDING_TOOLS for function_call in call.function_calls):
                await run.commit("terminated")
                return
            if pause is not None:
                await pause((await chat.head()).last.version)


async def ask(run: Run, model: Model) -> ServiceCall:
    """A completed service call. A stream that breaks is recorded with what had come in, and tried again."""
    for attempt in range(1, ATTEMPTS + 1):
        async with run.service_call(model="script") as call:
            try:
                reply = await model(await history.for_call(call))
            except StreamBroken as broken:
                await call.fail(str(broken), partial=[text(broken.partial)])
                if attempt == ATTEMPTS:
                    raise
            else:
                await call.complete(reply)
                return call
    raise AssertionError("unreachable: the last attempt returns or raises")


async def answer(run: Run, call: FunctionCall) -> None:
    """Run one tool and record its result the moment it returns."""
    await run.add_result(call, await run_tool(call))
