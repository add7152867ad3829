"""A heartbeat beats until it is stopped or the run is lost, and never makes itself heard otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import anyio
import pytest

from eventlog import (
    Conversation,
    EventLog,
    LogClosed,
    RunClosed,
    RunFenced,
    ServerUnavailable,
    Unreadable,
    user,
)
from eventlog.heartbeat import Heartbeat
from tests.recorder.steps import PATIENCE, ended

pytestmark = pytest.mark.anyio
LEASE = 0.03


@pytest.fixture
async def unheard() -> AsyncIterator[list[dict[str, Any]]]:
    """What the event loop had to report, for nobody else took it; the test wants nothing."""
    said: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: said.append(context))
    yield said
    loop.set_exception_handler(before)


class Renewals:
    """Takes a heartbeat's calls; the first ones fail like this."""

    def __init__(self, *failures: Exception) -> None:
        self.made = 0
        self._failures = list(failures)
        self._changed = asyncio.Event()

    async def __call__(self) -> None:
        self.made += 1
        self._changed.set()
        if self._failures:
            raise self._failures.pop(0)

    async def reach(self, number: int) -> None:
        with anyio.fail_after(PATIENCE):
            while self.made < number:
                self._changed.clear()
                await self._changed.wait()


async def test_it_beats_on_after_what_fails_for_once() -> None:
    renewals = Renewals(ServerUnavailable("away"), Unreadable("odd"), ServerUnavailable("away"))
    heartbeat = Heartbeat(renewals, 0.001)
    heartbeat.start()
    await renewals.reach(6)
    await heartbeat.stop()


@pytest.mark.parametrize("why", [RunFenced("taken", "r"), RunClosed("over", "r"), LogClosed("closed")], ids=repr)
async def test_it_ends_by_itself_when_the_run_cannot_be_held(why: Exception) -> None:
    renewals = Renewals(why)
    before = asyncio.all_tasks()
    heartbeat = Heartbeat(renewals, 0.001)
    heartbeat.start()
    await renewals.reach(1)
    await ended(asyncio.all_tasks() - before)
    assert renewals.made == 1
    await heartbeat.stop()


async def test_it_can_be_stopped_twice_and_without_a_start() -> None:
    heartbeat = Heartbeat(Renewals(), 0.001)
    await heartbeat.stop()
    heartbeat.start()
    await heartbeat.stop()
    await heartbeat.stop()


async def test_it_ends_without_a_word_when_the_run_was_taken_over(
    chat: Conversation, unheard: list[dict[str, Any]]
) -> None:
    former = chat.run(lease=LEASE)
    before = asyncio.all_tasks()
    await former.__aenter__()
    async with chat.resume(former.id, force=True):
        pass
    await ended(asyncio.all_tasks() - before)
    with pytest.raises(RunClosed):
        await former.__aexit__(None, None, None)
    assert unheard == []


async def test_it_ends_without_a_word_when_the_log_is_closed(server: str, unheard: list[dict[str, Any]]) -> None:
    before = asyncio.all_tasks()
    async with EventLog.open(server, namespace=f"t{uuid4().hex[:12]}") as log:
        run = log.tenant("t").conversation("c").run(lease=LEASE)
        await run.__aenter__()
        await run.add(user("x"))
    await ended(asyncio.all_tasks() - before)
    with pytest.raises(LogClosed):
        await run.__aexit__(None, None, None)
    assert unheard == []


async def test_it_stops_with_the_block_whatever_becomes_of_it(chat: Conversation) -> None:
    before = asyncio.all_tasks()
    async with chat.run(lease=LEASE):
        pass
    with pytest.raises(ValueError, match="no"):
        async with chat.run(lease=LEASE):
            raise ValueError("no")
    await ended(asyncio.all_tasks() - before)
