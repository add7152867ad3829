"""However often it is used, a handle leaves no task and no descriptor behind."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import cast

import anyio
import pytest

from eventlog import Conversation, Draft, Event, assistant, tool_call, user
from tests.recorder.steps import answered

pytestmark = pytest.mark.anyio

DROPPED = """
import sys
import anyio
from eventlog import EventLog, user

async def main():
    async with EventLog.open(sys.argv[1], namespace=sys.argv[2]) as log:
        async def turn():
            async with log.tenant("t").conversation("c").run(lease=0.05) as run:
                await run.add(user("x"))
                yield 1
                yield 2
        async for _ in turn():
            break
        await anyio.sleep(0.1)

anyio.run(main)
"""


def descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


async def test_500_runs_leave_no_task_and_no_descriptor(chat: Conversation) -> None:
    tasks, opened = asyncio.all_tasks(), descriptors()
    for _ in range(500):
        async with chat.run(carry="none") as run:
            await run.add(user("x"))
    assert asyncio.all_tasks() == tasks
    assert descriptors() == opened


async def test_runs_that_fail_or_are_cancelled_leave_none_either(chat: Conversation) -> None:
    async def failing() -> None:
        async with chat.run(carry="none") as run:
            await answered(run, assistant(tool_call("a", "look")))
            raise ValueError("no")

    tasks, opened = asyncio.all_tasks(), descriptors()
    for _ in range(50):
        with pytest.raises(ValueError, match="no"):
            await failing()
        with anyio.move_on_after(0.001):
            async with chat.run(carry="none") as run, run.service_call():
                await anyio.sleep_forever()
    assert asyncio.all_tasks() == tasks
    assert descriptors() == opened


async def test_readings_that_are_broken_off_leave_none_either(chat: Conversation) -> None:
    for _ in range(2):
        await chat.append(*[Draft("x", {}) for _ in range(600)])
    tasks, opened = asyncio.all_tasks(), descriptors()
    for _ in range(30):
        async with aclosing(cast("AsyncGenerator[Event, None]", chat.read())) as reading:
            async for event in reading:
                if event.version == 501:
                    break
    gc.collect()
    assert asyncio.all_tasks() == tasks
    assert descriptors() == opened


async def test_a_run_whose_block_is_never_left_ends_with_its_loop_without_a_word(server: str) -> None:
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", DROPPED, server, f"dropped{os.getpid()}"]
    ended = await anyio.run_process(command, check=False, cwd=Path(__file__).parents[2])
    assert (ended.stderr.decode(), ended.returncode) == ("", 0)
