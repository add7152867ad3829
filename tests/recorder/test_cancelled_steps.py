"""A step whose caller is cancelled is in the log whole or not at all, and the recorder knows which."""

from __future__ import annotations

import asyncio

import pytest

from eventlog import AlreadyAnswered, Conversation, assistant, tool_call, user
from projections import history
from tests.recorder.steps import CUTS, ENDS, Cut, agree, answered, asked, counts, events

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("cut", CUTS, ids=str)]


async def test_a_cancelled_add_is_sent_by_the_next_call_when_it_is_in_the_log(chat: Conversation, cut: Cut) -> None:
    async with chat.run() as run:
        await run.add(user("one"))
        await cut(lambda: run.add(user("two"), user("three")))
        recorded = [event.version for event in await events(chat, "message-added")]
        assert len(recorded) in (1, 3)
        await agree(run)
        call = await answered(run, assistant("hi"))
        assert list(call.sends) == recorded
        assert run.unsent == ()


async def test_a_cancelled_result_is_recorded_once_and_answers_its_call(chat: Conversation, cut: Cut) -> None:
    async with chat.run() as run:
        [function_call] = await asked(run, "a")
        await cut(lambda: run.add_result(function_call, 1))
        await agree(run)
        recorded = await events(chat, "function-result")
        if recorded:
            with pytest.raises(AlreadyAnswered):
                await run.add_result(function_call, 1)
        else:
            await run.add_result(function_call, 1)
        await answered(run, assistant("done"))
    assert len(await events(chat, "function-result")) == 1
    assert (await history.load(chat)).open_calls == ()


async def test_a_cancelled_completion_that_is_given_again_stands_once(chat: Conversation, cut: Cut) -> None:
    async with chat.run() as run:
        await run.add(user("one"))
        async with run.service_call() as call:
            await cut(lambda: call.complete(assistant(tool_call("a", "look", {}))))
            await call.complete(assistant(tool_call("a", "look", {})))
        await agree(run)
        [function_call] = call.function_calls
        await run.add_result(function_call, 42)
        await answered(run, assistant("done"))
    view = await history.load(chat)
    assert [message.role for message in view.messages] == ["user", "assistant", "tool", "assistant"]
    assert view.open_calls == ()
    assert view.stray_results == ()


async def test_a_call_whose_completion_was_cancelled_has_one_end(chat: Conversation, cut: Cut) -> None:
    async with chat.run() as run:
        await run.add(user("one"))
        async with run.service_call() as call:
            await cut(lambda: call.complete(assistant(tool_call("a", "look", {}))))
        [end] = await events(chat, *ENDS)
        assert [one.call_id for one in call.function_calls] == (["a"] if end.type == "service-call-completed" else [])
        await agree(run)


async def test_a_call_whose_failure_was_cancelled_has_one_end(chat: Conversation, cut: Cut) -> None:
    async with chat.run() as run:
        await run.add(user("one"))
        async with run.service_call() as call:
            await cut(lambda: call.fail("no", outcome="refused"))
        [end] = await events(chat, *ENDS)
        assert end.type == "service-call-failed"
        await agree(run)
        assert len(run.unsent) == 1


async def test_a_call_that_is_cancelled_while_it_starts_is_told_as_never_sent(chat: Conversation, cut: Cut) -> None:
    async with chat.run() as run:
        await run.add(user("one"))

        async def start() -> None:
            async with run.service_call():
                await asyncio.Event().wait()

        await cut(start)
        started = await events(chat, "service-call-started")
        failed = await events(chat, "service-call-failed")
        assert [event.call for event in failed] == [event.call for event in started]
        await agree(run)
        call = await answered(run, assistant("hi"))
        assert call.number == len(started) + 1
        assert len(call.sends) == 1


async def test_a_commit_that_is_cancelled_ends_the_run_once(chat: Conversation, cut: Cut) -> None:
    async with chat.run() as run:
        await run.add(user("one"))
        await cut(run.commit)
    assert (await counts(chat))["run-committed"] == 1
    assert run.progress.ended == "committed"
    assert (await chat.head()).runs == ()


async def test_an_abort_that_is_cancelled_and_a_commit_make_one_end(chat: Conversation, cut: Cut) -> None:
    async with chat.run() as run:
        await run.add(user("one"))
        await cut(run.abort)
    [end] = await events(chat, "run-committed", "run-aborted")
    assert end.type == f"run-{run.progress.ended}"
    assert (await chat.head()).runs == ()
