"""A service call has one number, one end and one reply, whatever its caller does with it."""

from __future__ import annotations

import asyncio

import pytest

from eventlog import Conversation, InvalidInput, OperationReused, assistant, text, user
from projections import history
from tests.recorder.steps import ENDS, agree, answered, counts, events

pytestmark = pytest.mark.anyio


async def test_the_same_reply_given_twice_is_recorded_once(chat: Conversation) -> None:
    async with chat.run() as run:
        async with run.service_call() as call:
            first = await call.complete(assistant("a"), usage={"tokens": 3})
            again = await call.complete(assistant("a"), usage={"tokens": 3})
        assert (again.cursor, again.duplicate) == (first.cursor, True)
        assert (await counts(chat))["message-added"] == 1
        await agree(run)


async def test_another_reply_to_a_completed_call_is_refused(chat: Conversation) -> None:
    async with chat.run() as run:
        async with run.service_call() as call:
            await call.complete(assistant("a"))
            with pytest.raises(OperationReused):
                await call.complete(assistant("b"))
        await agree(run)


async def test_of_two_replies_given_at_once_one_stands(chat: Conversation) -> None:
    async with chat.run() as run:
        await run.add(user("x"))
        async with run.service_call() as call:
            outcomes = await asyncio.gather(
                call.complete(assistant("a")), call.complete(assistant("b")), return_exceptions=True
            )
        assert [isinstance(outcome, OperationReused) for outcome in outcomes].count(True) == 1
        await agree(run)
    assert (await counts(chat))["service-call-completed"] == 1
    fates = [(fate.what, fate.fate) for fate in await history.explain(chat)]
    assert fates in ([("x", "in-view"), (reply, "in-view")] for reply in "ab")


async def test_a_call_that_failed_takes_no_reply_and_one_that_was_completed_does_not_fail(chat: Conversation) -> None:
    async with chat.run() as run:
        async with run.service_call() as failed:
            await failed.fail("no", outcome="refused")
            with pytest.raises(InvalidInput, match="has failed: start another"):
                await failed.complete(assistant("late"))
            with pytest.raises(InvalidInput, match="has failed: start another"):
                await failed.fail("again")
        async with run.service_call() as completed:
            await completed.complete(assistant("a"))
            with pytest.raises(InvalidInput, match="has completed: start another"):
                await completed.fail("late")
    assert [event.type for event in await events(chat, *ENDS)] == ["service-call-failed", "service-call-completed"]


async def test_a_block_that_is_left_without_a_reply_is_a_failure_of_unknown_outcome(chat: Conversation) -> None:
    async with chat.run() as run:
        await run.add(user("x"))
        async with run.service_call():
            pass
        assert len(run.unsent) == 1
        assert run.progress.in_doubt == {}
    [failed] = await events(chat, "service-call-failed")
    assert failed.data == {"error": "the block was left without a reply", "outcome": "unknown"}


async def test_numbers_have_no_gap_though_starts_are_refused_or_never_made(chat: Conversation) -> None:
    async with chat.run() as run:
        run.service_call()
        for unknown in ([0], [99], [True], ["2"]):
            with pytest.raises(InvalidInput):
                async with run.service_call(sends=unknown):  # type: ignore[arg-type]
                    pytest.fail("it was started")
        numbers = [(await answered(run, assistant("a"))).number]
        async with run.service_call() as call:
            await call.fail("no")
        numbers += [call.number, (await answered(run, assistant("b"))).number]
        assert numbers == [1, 2, 3]
        assert [event.call for event in await events(chat, "service-call-started")] == numbers
        await agree(run)


async def test_numbers_go_on_after_a_take_over(chat: Conversation) -> None:
    former = chat.run()
    await former.__aenter__()
    await answered(former, assistant("a"))
    await former.service_call().__aenter__()
    async with chat.resume(former.id, force=True) as run:
        assert (await answered(run, assistant("b"))).number == 3


async def test_a_call_is_entered_once_and_used_within_its_block(chat: Conversation) -> None:
    async with chat.run() as run:
        call = run.service_call()
        with pytest.raises(InvalidInput, match="was not started"):
            await call.complete(assistant("early"))
        with pytest.raises(InvalidInput, match="was not started"):
            await call.fail("early")
        with pytest.raises(InvalidInput, match="was not started"):
            await history.for_call(call)
        async with call:
            with pytest.raises(InvalidInput, match="was entered before"):
                async with call:
                    pytest.fail("it was entered twice")
            await call.complete(assistant("a"))
        with pytest.raises(InvalidInput, match="was entered before"):
            async with call:
                pytest.fail("it was entered twice")
        await agree(run)


async def test_what_is_handed_over_is_taken_as_it_is_at_that_moment(chat: Conversation) -> None:
    async with chat.run() as run:
        question, reply, arguments, output = user("as asked"), assistant("as replied"), {"k": 1}, {"v": 1}
        step = run.add(question)
        question.parts[0]["content"] = "changed"
        await step
        async with run.service_call() as call:
            reply.parts.append({"type": "tool_call", "id": "a", "name": "look", "arguments": arguments})
            completion = call.complete(reply)
            arguments["k"], reply.parts[0]["content"] = 2, "changed"
            await completion
        result = run.add_result(call.function_calls[0], output)
        output["v"] = 2
        await result
        await answered(run, assistant("done"))
    assert [part for message in (await history.load(chat)).messages for part in message.parts] == [
        text("as asked"),
        text("as replied"),
        {"type": "tool_call", "id": "a", "name": "look", "arguments": {"k": 1}},
        {"type": "tool_call_response", "id": "a", "response": {"v": 1}},
        text("done"),
    ]


async def test_inputs_are_sent_in_log_order_whatever_the_order_of_awaiting(chat: Conversation) -> None:
    async with chat.run() as run:
        first, second, third = run.add(user("a")), run.add(user("b")), run.add(user("c"))
        await third
        await asyncio.gather(second, first)
        assert list(run.unsent) == sorted(run.unsent)
        call = await answered(run, assistant("x"))
        assert list(call.sends) == sorted(call.sends)
        assert len(call.sends) == 3
