"""Giving a run up: aborted, or sealed so that the next run's request is valid."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from eventlog import (
    Conversation,
    ConversationBusy,
    Draft,
    EventLog,
    InvalidInput,
    LimitExceeded,
    Limits,
    Message,
    Run,
    RunClosed,
    VersionConflict,
    assistant,
    tool_call,
    user,
)
from gateway.demo.validity import problems
from projections import history, recovery
from projections.recovery import Closed, Why
from projections.repair import NO_RESULT
from tests.recovery.left import events_of, expired, left, obeys_the_rules, opened

pytestmark = pytest.mark.anyio
MODES = ("per-service-call", "per-run")


async def unanswered(chat: Conversation, *names: str, mode: str = "per-service-call", lease: float = 0.01) -> Run:
    """A run that is left with these calls, of which nobody ran the tools."""
    run = await opened(chat, mode, lease=lease)
    await run.add(user("go"))
    async with run.service_call() as call:
        await call.complete(assistant(*(tool_call(name, "look", {}) for name in names)))
    return run


async def next_request(chat: Conversation, *, complete: bool = True) -> list[Message]:
    """What the first service call of the next run sends."""
    async with chat.run() as run:
        await run.add(user("and now?"))
        async with run.service_call() as call:
            sent = await history.for_call(call)
            await (call.complete(assistant("well")) if complete else call.fail("busy", outcome="refused"))
    return sent


def results(messages: Sequence[Message]) -> list[tuple[str, object, bool]]:
    """The results in these messages: call id, output, synthetic or not."""
    return [
        (part["id"], part["response"], bool(part.get("synthetic")))
        for message in messages
        for part in message.parts
        if part.get("type") == "tool_call_response"
    ]


def whys(closed: Closed) -> list[tuple[str, Why]]:
    return [(call.call_id, call.why) for call in closed.open_calls]


@pytest.mark.parametrize("mode", MODES)
async def test_an_abort_ends_an_expired_run_and_answers_nothing(log: EventLog, mode: str) -> None:
    chat = log.tenant("t").conversation("c")
    run, _ = await left(chat, mode)
    await expired(chat, run.id)
    before = await events_of(chat)
    closed = await recovery.abort(chat, run.id)
    assert closed == Closed(run.id, "expired", len(before) + 1)
    last = (await events_of(chat))[-1]
    assert (last.type, last.run, last.data["reason"]) == ("run-aborted", run.id, "expired")
    assert (await chat.head()).runs == ()
    view = await history.load(chat)
    assert [call.call_id for call in view.open_calls] == ([] if mode == "per-run" else ["a", "b", "c"])


@pytest.mark.parametrize("end", [recovery.abort, recovery.seal])
async def test_a_held_run_is_not_ended_unless_forced(log: EventLog, end: object) -> None:
    chat = log.tenant("t").conversation("c")
    run, _ = await left(chat, lease=60)
    before = await events_of(chat)
    with pytest.raises(ConversationBusy) as busy:
        await end(chat, run.id)  # type: ignore[operator]
    assert not busy.value.expired
    assert await events_of(chat) == before
    closed = await end(chat, run.id, force=True)  # type: ignore[operator]
    assert closed.reason == ("sealed" if end is recovery.seal else "superseded")
    with pytest.raises(RunClosed):
        await run.add(user("late"))
    with pytest.raises(RunClosed):
        await end(chat, run.id, force=True)  # type: ignore[operator]


async def test_a_seal_says_what_stays_open_and_answers_it_in_the_same_operation(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    run, (a, b, c) = await left(chat)
    await expired(chat, run.id)
    before = await events_of(chat)
    closed = await recovery.seal(chat, run.id)
    assert (closed.run, closed.reason, closed.version) == (run.id, "sealed", len(before) + 1)
    assert [(call.version, call.call_id, call.run, call.why) for call in closed.open_calls] == [
        (a.version, "a", run.id, Why.RECORDED),
        (b.version, "b", run.id, Why.SEALED),
        (c.version, "c", run.id, Why.APPROVAL),
    ]
    aborted, answer = (await events_of(chat))[len(before) :]
    assert (aborted.type, aborted.run, aborted.data["reason"]) == ("run-aborted", run.id, "sealed")
    assert aborted.operation_id == answer.operation_id
    assert aborted.stamp == answer.stamp
    assert (answer.type, answer.run, answer.call) == ("function-result", None, None)
    assert {name: value for name, value in answer.data.items() if name != "message_id"} == {
        "call_id": "b",
        "answers": b.version,
        "output": NO_RESULT,
        "is_error": True,
        "synthetic": True,
    }
    assert (await chat.head()).runs == ()
    obeys_the_rules(await events_of(chat))


async def test_the_next_runs_request_is_valid_after_a_seal(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    run = await unanswered(chat, "a", "b")
    await expired(chat, run.id)
    await recovery.seal(chat, run.id)
    sent = await next_request(chat)
    assert problems(sent) == []
    assert results(sent) == [("a", NO_RESULT, True), ("b", NO_RESULT, True)]
    view = await history.load(chat)
    assert view.open_calls == ()
    obeys_the_rules(await events_of(chat))


@pytest.mark.parametrize("bare", [True, False], ids=["by its bare id", "by its call"])
async def test_a_real_result_that_comes_late_is_carried_in_place_of_the_synthetic_one(
    log: EventLog, bare: bool
) -> None:
    chat = log.tenant("t").conversation("c")
    run = await unanswered(chat, "a", "b")
    calls = {left.call.call_id: left.call for left in (await expired(chat, run.id)).unanswered}
    await recovery.seal(chat, run.id)
    await chat.add_result("b" if bare else calls["b"], "the real one")
    sent = await next_request(chat)
    assert problems(sent) == []
    assert results(sent) == [("a", NO_RESULT, True), ("b", "the real one", False)]
    assert results((await history.load(chat)).messages) == results(sent)
    obeys_the_rules(await events_of(chat))


async def test_a_real_result_that_comes_after_the_synthetic_one_was_sent_does_not_enter(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    run = await unanswered(chat, "a")
    (left_call,) = (await expired(chat, run.id)).unanswered
    await recovery.seal(chat, run.id)
    await next_request(chat)
    await chat.add_result(left_call.call, "too late")
    sent = await next_request(chat)
    assert problems(sent) == []
    assert results(sent) == [("a", NO_RESULT, True)]
    assert [fate.fate for fate in await history.explain(chat) if fate.kind == "result"] == [
        "in-view",
        "trailing-result",
    ]


async def test_a_synthetic_result_is_sent_again_when_the_call_that_carried_it_was_refused(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    run = await unanswered(chat, "a")
    await expired(chat, run.id)
    await recovery.seal(chat, run.id)
    for complete in (False, True):
        sent = await next_request(chat, complete=complete)
        assert results(sent) == [("a", NO_RESULT, True)]


async def test_a_call_that_waits_for_approval_stays_open_until_it_is_decided(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    run, (_, _, c) = await left(chat)
    await expired(chat, run.id)
    await recovery.seal(chat, run.id)
    view = await history.load(chat)
    assert {call.call_id: call.awaits_approval for call in view.open_calls} == {"a": False, "b": False, "c": True}
    await chat.append(Draft("approval-resolved", {"function_call": c.version, "decision": "approved"}))
    await chat.add_result(c, "approved and done")
    sent = await next_request(chat)
    assert problems(sent) == []
    assert results(sent) == [("a", "result a", False), ("b", NO_RESULT, True), ("c", "approved and done", False)]


async def test_a_per_run_run_leaves_nothing_to_answer(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    run = await unanswered(chat, "a", mode="per-run")
    await expired(chat, run.id)
    closed = await recovery.seal(chat, run.id)
    assert closed.open_calls == ()
    assert (await chat.head()).last.version == closed.version
    sent = await next_request(chat)
    assert problems(sent) == []
    assert results(sent) == []


async def test_calls_that_earlier_runs_left_open_are_answered_too(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    earlier = await unanswered(chat, "a")
    await expired(chat, earlier.id)
    await recovery.abort(chat, earlier.id)
    later = await opened(chat, "per-run")
    await later.add(user("again"))
    await expired(chat, later.id)
    closed = await recovery.seal(chat, later.id)
    assert [(call.call_id, call.run, call.why) for call in closed.open_calls] == [("a", earlier.id, Why.SEALED)]
    assert problems(await next_request(chat)) == []


async def test_calls_of_another_open_run_are_left_to_it(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    other = await opened(chat, exclusive=False, lease=60)
    await other.add(user("one"))
    async with other.service_call() as call:
        await call.complete(assistant(tool_call("theirs", "look", {})))
    run = await opened(chat, exclusive=False)
    await run.add(user("two"))
    async with run.service_call() as mine:
        await mine.complete(assistant(tool_call("mine", "look", {})))
    await expired(chat, run.id)
    closed = await recovery.seal(chat, run.id)
    assert whys(closed) == [("theirs", Why.OTHER_RUN), ("mine", Why.SEALED)]
    await other.add_result(call.function_calls[0], "done")
    await other.commit()


async def test_two_calls_of_one_id_are_answered_each(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    run = await unanswered(chat, "a", "a")
    first, _ = (left.call for left in (await expired(chat, run.id)).unanswered)
    await chat.add_result(first, "the first")
    closed = await recovery.seal(chat, run.id)
    assert whys(closed) == [("a", Why.RECORDED), ("a", Why.SEALED)]
    assert results(await next_request(chat)) == [("a", "the first", False), ("a", NO_RESULT, True)]


async def test_a_seal_decides_on_what_stands_when_it_is_written(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = log.tenant("t").conversation("c")
    run = await unanswered(chat, "a", "b")
    calls = {left.call.call_id: left.call for left in (await expired(chat, run.id)).unanswered}
    seal_run = Conversation.seal_run
    conflicts: list[VersionConflict] = []

    async def after_another(self: Conversation, *arguments: object, **named: object) -> object:
        if not conflicts:
            await log.tenant("t").conversation("c").add_result(calls["a"], "just in time")
        try:
            return await seal_run(self, *arguments, **named)  # type: ignore[arg-type]
        except VersionConflict as conflict:
            conflicts.append(conflict)
            raise

    monkeypatch.setattr(Conversation, "seal_run", after_another)
    closed = await recovery.seal(chat, run.id)
    assert len(conflicts) == 1
    assert whys(closed) == [("a", Why.RECORDED), ("b", Why.SEALED)]
    assert results(await next_request(chat)) == [("a", "just in time", False), ("b", NO_RESULT, True)]


async def test_of_those_that_seal_at_once_one_does(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    run = await unanswered(chat, "a")
    await expired(chat, run.id)
    sealed: list[Closed] = []

    async def attempt() -> None:
        try:
            sealed.append(await recovery.seal(log.tenant("t").conversation("c"), run.id))
        except RunClosed:
            return

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(attempt)
    assert len(sealed) == 1
    assert [event.type for event in await events_of(chat)].count("function-result") == 1


async def test_a_seal_too_large_for_one_operation_is_refused_whole() -> None:
    async with EventLog.open("memory://", limits=Limits(events=3)) as log:
        chat = log.tenant("t").conversation("c")
        for name in "abc":
            run = await unanswered(chat, name)
            await expired(chat, run.id)
            if name != "c":
                await recovery.abort(chat, run.id)
        before = await events_of(chat)
        with pytest.raises(LimitExceeded):
            await recovery.seal(chat, run.id)
        assert await events_of(chat) == before
        assert [one.run for one in (await chat.head()).runs] == [run.id]


async def test_what_a_seal_records_belongs_to_no_run(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    run = await unanswered(chat, "a")
    draft = Draft("function-result", {"message_id": "m", "call_id": "a", "output": "x"}, run=run.id)
    with pytest.raises(InvalidInput, match=r"results\[0\] belongs to run"):
        await chat.seal_run(run.id, [draft], expected=(await chat.head()).last, force=True)
    assert len((await chat.head()).runs) == 1


async def test_two_results_by_one_bare_id_answer_two_calls(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    run = await unanswered(chat, "a", "a", "a")
    await expired(chat, run.id)
    for output in ("one", "two"):
        await chat.add_result("a", output)
    closed = await recovery.seal(chat, run.id)
    assert whys(closed) == [("a", Why.SEALED), ("a", Why.RECORDED), ("a", Why.RECORDED)]
    sent = await next_request(chat)
    assert problems(sent) == []
    assert sorted(str(output) for _, output, _ in results(sent)) == sorted([NO_RESULT, "one", "two"])
