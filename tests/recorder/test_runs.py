"""A run is entered once, ends once, and what its block raises reaches its caller as it is."""

from __future__ import annotations

import pytest

from eventlog import (
    AlreadyAnswered,
    Conversation,
    Draft,
    EventLogError,
    InvalidInput,
    OperationReused,
    RunClosed,
    RunFenced,
    assistant,
    text,
    user,
)
from projections import history
from tests.recorder.steps import agree, answered, asked, counts, events, held

pytestmark = pytest.mark.anyio


class BrokenRepr(Exception):
    def __repr__(self) -> str:
        raise RuntimeError("no words")


class NoTextForRepr(Exception):
    def __repr__(self) -> str:
        return None  # type: ignore[return-value]  # as a careless class may


class SurrogateRepr(Exception):
    def __repr__(self) -> str:
        return "bad \udc80 byte"


HOSTILE = [ValueError("x" * 9_000_000), BrokenRepr(), NoTextForRepr(), SurrogateRepr(), ValueError("a\0b\n😀")]


@pytest.mark.parametrize(
    "error", HOSTILE, ids=["huge", "broken-repr", "repr-is-no-text", "surrogate", "odd-characters"]
)
async def test_an_error_is_told_whatever_its_repr_does_and_reaches_the_caller_as_it_is(
    chat: Conversation, error: Exception
) -> None:
    with pytest.raises(type(error)) as raised:
        async with chat.run() as run, run.service_call():
            raise error
    assert raised.value is error
    assert not hasattr(error, "__notes__")
    assert (await chat.head()).runs == ()
    told = [event.data["error"] for event in await events(chat, "service-call-failed", "run-aborted")]
    assert len(told) == 2
    assert all(0 < len(words) <= 4_000 for words in told)


async def test_a_group_of_errors_reaches_the_caller_as_a_group(chat: Conversation) -> None:
    group = ExceptionGroup("tools", [ValueError("one"), KeyError("two")])
    with pytest.raises(ExceptionGroup) as raised:
        async with chat.run():
            raise group
    assert raised.value is group
    assert [event.data["reason"] for event in await events(chat, "run-aborted")] == ["failed"]


async def test_a_run_is_entered_once(chat: Conversation) -> None:
    run = chat.run()
    async with run:
        with pytest.raises(InvalidInput, match="was entered before"):
            async with run:
                pytest.fail("it was entered twice")
        await run.add(user("still open"))
    with pytest.raises(InvalidInput, match="was entered before"):
        async with run:
            pytest.fail("it was entered twice")
    assert (await counts(chat))["run-started"] == 1


async def test_an_open_run_is_not_opened_by_another_of_its_id(chat: Conversation) -> None:
    async with chat.run(operation_id="turn-1") as run:
        await run.add(user("x"))
        with pytest.raises(RunFenced):
            async with chat.run(operation_id="turn-1"):
                pytest.fail("it was entered")
        await run.add(user("y"))
    assert (await counts(chat))["run-committed"] == 1


async def test_a_closed_run_is_not_opened_again_by_its_id(chat: Conversation) -> None:
    async with chat.run(operation_id="turn-1") as run:
        await run.add(user("x"))
    with pytest.raises(EventLogError):
        async with chat.run(operation_id="turn-1"):
            pytest.fail("it was entered")
    with pytest.raises(RunClosed):
        async with chat.resume("turn-1"):
            pytest.fail("it was entered")


async def test_an_id_names_an_operation_or_a_run_and_never_both(chat: Conversation) -> None:
    await chat.add(user("x"), operation_id="a")
    with pytest.raises(OperationReused):
        await chat.add(user("y"), operation_id="a")
    repeated = await chat.add(user("x"), operation_id="a")
    assert repeated is not None
    assert repeated.duplicate
    with pytest.raises(OperationReused):
        async with chat.run(operation_id="a"):
            pytest.fail("it was entered")
    async with chat.run(operation_id="r"):
        with pytest.raises(OperationReused):
            await chat.append(Draft("x", {}), operation_id="r")


async def test_a_run_that_was_ended_takes_nothing_more_and_its_block_is_left_quietly(chat: Conversation) -> None:
    async with chat.run() as run:
        await run.commit("max-iterations", usage={"tokens": 1})
        with pytest.raises(RunClosed):
            await run.add(user("late"))
    ends = await events(chat, "run-committed", "run-aborted")
    assert [event.data for event in ends] == [{"outcome": "max-iterations", "usage": {"tokens": 1}}]


@pytest.mark.parametrize("mode", ["per-service-call", "per-run"])
async def test_after_each_step_the_recorder_knows_what_the_log_tells(chat: Conversation, mode: str) -> None:
    async with chat.run(mode, agent="weather") as run:
        await agree(run)
        calls = await asked(run, "a", "b", "a")
        await agree(run)
        for function_call in reversed(calls):
            await run.add_result(function_call, 1)
            await agree(run)
        async with run.service_call() as call:
            await agree(run)
            await call.fail("no", partial=[text("half")])
        await agree(run)
        async with run.service_call(sends=run.unsent[1:]) as call:
            await call.complete(assistant("x"), service={"response": "s1"})
        await agree(run)
        assert len(run.unsent) == 1
        await run.add(user("more"), user("and more"))
        await agree(run)


async def test_who_takes_a_run_over_knows_what_its_former_holder_knew(chat: Conversation) -> None:
    async with held(chat) as former:
        first, second = await asked(former, "a", "b")
        await former.add_result(first, 1)
        async with chat.resume(former.id, force=True) as run:
            await agree(run)
            assert run.unsent == former.unsent
            assert list(run.progress.unanswered) == [second.version]
            with pytest.raises(AlreadyAnswered):
                await run.add_result(first, 1)
            with pytest.raises(RunFenced):
                await former.add_result(second, 1)
            await run.add_result(second, 2)
            await answered(run, assistant("done"))
            await agree(run)
    view = await history.load(chat)
    assert view.open_calls == ()
    assert view.stray_results == ()


async def test_nothing_to_add_records_nothing_in_a_run_and_is_refused_outside(chat: Conversation) -> None:
    with pytest.raises(InvalidInput, match="at least one event"):
        await chat.add()
    async with chat.run() as run:
        assert await run.add() is None
        await agree(run)
