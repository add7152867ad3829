"""A run or a call whose block is cancelled, at its beginning, within or at its end, is left open for nobody."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from eventlog import Conversation, user
from projections import history
from tests.recorder.steps import CUTS, Cut, agree, counts, ended, events, held

pytestmark = pytest.mark.anyio
each_cut = pytest.mark.parametrize("cut", CUTS, ids=str)


async def forever() -> None:
    await asyncio.Event().wait()


@each_cut
async def test_a_run_that_is_cancelled_while_it_starts_is_aborted_as_cancelled(chat: Conversation, cut: Cut) -> None:
    async def start() -> None:
        async with chat.run():
            await forever()

    await cut(start)
    assert (await chat.head()).runs == ()
    assert [event.data["reason"] for event in await events(chat, "run-aborted")] == ["cancelled"] * (
        await counts(chat)
    )["run-started"]


@each_cut
async def test_a_take_over_that_is_cancelled_while_it_starts_leaves_the_run_to_all(
    chat: Conversation, cut: Cut
) -> None:
    entered = False

    async def take_over() -> None:
        nonlocal entered
        async with chat.resume(former.id, force=True):
            entered = True
            await forever()

    async with held(chat) as former:
        await cut(take_over)
        if entered:
            assert [event.data["reason"] for event in await events(chat, "run-aborted")] == ["cancelled"]
        elif await events(chat, "run-resumed"):
            async with chat.resume(former.id) as run:  # without force: nobody holds it
                await agree(run)
        else:
            await former.add(user("still mine"))
            await agree(former)


@each_cut
async def test_a_run_that_is_cancelled_while_its_block_ends_has_one_end(chat: Conversation, cut: Cut) -> None:
    at_its_end = asyncio.Event()

    async def whole() -> None:
        async with chat.run() as run:
            await run.add(user("one"))
            at_its_end.set()

    task = asyncio.create_task(whole())
    await at_its_end.wait()
    await cut(lambda: task)
    assert (await chat.head()).runs == ()
    ends = await counts(chat)
    assert ends["run-committed"] + ends["run-aborted"] == 1


@pytest.mark.parametrize("cancels", [1, 2, 3])
async def test_a_run_that_is_cancelled_while_it_waits_is_aborted_however_often_it_is_cancelled(
    chat: Conversation, cancels: int
) -> None:
    waiting = asyncio.Event()

    async def turn() -> None:
        async with chat.run() as run:
            await run.add(user("one"))
            async with run.service_call():
                waiting.set()
                await forever()

    before = asyncio.all_tasks()
    task = asyncio.create_task(turn())
    await waiting.wait()
    for _ in range(cancels):
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.wait([task])
    assert task.cancelled()
    await ended(asyncio.all_tasks() - before)
    [failed] = await events(chat, "service-call-failed")
    assert failed.data["outcome"] == "unknown"
    [aborted] = await events(chat, "run-aborted")
    assert aborted.data["reason"] == "cancelled"
    [doubt] = (await history.load(chat)).in_doubt
    assert doubt.started == failed.version - 1


async def test_a_time_out_around_a_run_aborts_it_as_cancelled(chat: Conversation) -> None:
    async def turn() -> None:
        async with chat.run():
            await forever()

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(turn(), 0.05)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await turn()
    assert [event.data["reason"] for event in await events(chat, "run-aborted")] == ["cancelled"] * 2


async def test_a_task_that_is_cancelled_before_its_first_step_records_nothing(chat: Conversation) -> None:
    async with chat.run() as run:
        task: asyncio.Task[Any] = asyncio.create_task(run.add(user("one")))
        task.cancel()
        await asyncio.wait([task])
        assert await events(chat, "message-added") == []
        await agree(run)
