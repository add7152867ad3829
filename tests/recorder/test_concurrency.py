"""Many tasks of one process at one run or one handle, and a handle that is used when or where it cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from random import Random
from typing import Any
from uuid import uuid4

import anyio
import pytest

from eventlog import Conversation, EventLog, InvalidInput, LogClosed, assistant, tool_call, user
from projections import history
from tests.recorder.steps import agree, answered, asked, ended, events

pytestmark = pytest.mark.anyio


async def test_results_of_many_tools_that_return_at_once_are_sent_by_the_next_call(chat: Conversation) -> None:
    names = [f"c{number}" for number in range(100)]
    async with chat.run() as run:
        calls = await asked(run, *names)
        async with anyio.create_task_group() as tools:
            for function_call in calls:
                tools.start_soon(run.add_result, function_call, {"of": function_call.call_id})
        await agree(run)
        call = await answered(run, assistant("done"))
        assert len(call.sends) == len(calls)
        assert run.unsent == ()
    view = await history.load(chat)
    assert view.open_calls == ()
    assert view.stray_results == ()


async def test_inputs_of_many_tasks_are_each_recorded_whole(chat: Conversation) -> None:
    async with chat.run() as run:
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(run.add, user(f"{number}"), user(f"{number}"))
        await agree(run)
        added = [event.data["parts"][0]["content"] for event in await events(chat, "message-added")]
    assert added[::2] == added[1::2]
    assert sorted(added[::2], key=int) == [str(number) for number in range(50)]


async def test_two_calls_under_way_at_once_enter_the_history_as_they_complete(chat: Conversation) -> None:
    async with chat.run() as run:
        await run.add(user("x"))
        async with run.service_call() as first, run.service_call() as second:
            assert (first.number, second.number) == (1, 2)
            assert first.sends == second.sends
            await asyncio.gather(history.for_call(first), history.for_call(second))
            await second.complete(assistant("from the second"))
            await first.complete(assistant("from the first"))
        await agree(run)
    texts = [message.text for message in (await history.load(chat)).messages]
    assert texts == ["x", "from the second", "from the first"]


async def test_calls_that_tasks_make_at_once_bear_numbers_of_their_own(chat: Conversation) -> None:
    numbers = []

    async def one() -> None:
        numbers.append((await answered(run, assistant("a"))).number)

    async with chat.run() as run:
        await asyncio.gather(*[one() for _ in range(20)])
        await agree(run)
    assert sorted(numbers) == list(range(1, 21))


async def test_shared_runs_of_one_handle_keep_their_calls_and_results_apart(chat: Conversation) -> None:
    async def one(number: int) -> None:
        async with chat.run(exclusive=False) as run:
            await run.add(user(f"question {number}"))
            call = await answered(run, assistant(tool_call("c", "look", number)))
            await run.add_result(call.function_calls[0], number)
            await answered(run, assistant(f"answer {number}"))
            assert run.unsent == ()

    await asyncio.gather(*[one(number) for number in range(20)])
    view = await history.load(chat)
    assert view.open_calls == ()
    assert view.stray_results == ()
    texts = [message.text for message in view.messages]
    assert all(texts.count(f"{what} {number}") == 1 for what in ("question", "answer") for number in range(20))


async def test_one_handle_posts_for_many_tasks(chat: Conversation) -> None:
    await asyncio.gather(*[chat.add(user(f"{number}")) for number in range(100)])
    texts = [message.text for message in (await history.load(chat)).messages]
    assert sorted(texts, key=int) == [str(number) for number in range(100)]


async def test_of_adds_that_are_cancelled_at_random_each_is_whole_and_known(chat: Conversation) -> None:
    random = Random(5)
    before = asyncio.all_tasks()
    async with chat.run() as run:
        held = asyncio.all_tasks()
        for number in range(200):
            with anyio.move_on_after(random.random() * 0.0008):
                await run.add(user(f"{number}"), user(f"{number}"))
        await ended(asyncio.all_tasks() - held)
        await agree(run)
        added = await events(chat, "message-added")
        assert list(run.unsent) == [event.version for event in added]
        texts = [event.data["parts"][0]["content"] for event in added]
        assert texts[::2] == texts[1::2]
    await ended(asyncio.all_tasks() - before)


async def test_a_log_that_was_closed_says_so(server: str) -> None:
    async with EventLog.open(server, namespace=f"t{uuid4().hex[:12]}") as log:
        chat = log.tenant("t").conversation("c")
        run = chat.run()
        await run.__aenter__()
        call = run.service_call()
        await call.__aenter__()
    uses: list[Callable[[], Coroutine[Any, Any, Any]]] = [
        chat.head,
        lambda: chat.add(user("x")),
        lambda: run.add(user("x")),
        lambda: call.complete(assistant("x")),
        run.commit,
        run.renew,
        lambda: call.__aexit__(None, None, None),
        lambda: run.__aexit__(None, None, None),
    ]
    for use in uses:
        with pytest.raises(LogClosed):
            await use()


async def test_a_log_that_is_closed_under_a_run_is_said_when_the_block_is_left(server: str) -> None:
    closing = AsyncExitStack()
    log = await closing.enter_async_context(EventLog.open(server, namespace=f"t{uuid4().hex[:12]}"))

    async def turn() -> None:
        async with log.tenant("t").conversation("c").run() as run:
            await run.add(user("x"))
            await closing.aclose()

    with pytest.raises(LogClosed):
        await turn()


async def test_another_event_loop_is_refused_and_the_first_goes_on(served_chat: Conversation) -> None:
    async def turn() -> None:
        async with served_chat.run() as run:
            await run.add(user("x"))

    def elsewhere(use: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        asyncio.run(use())

    for use in (served_chat.head, turn):
        with pytest.raises(InvalidInput):
            await asyncio.to_thread(elsewhere, use)
    await turn()
