"""A run that was taken over goes on as its former holder would have: what it sends, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog import Conversation, EventLog, Run, assistant, tool_call, user
from gateway.demo.validity import problems
from projections import history, recovery
from tests.recovery.left import events_of, expired, obeys_the_rules, opened

pytestmark = pytest.mark.anyio
MODES = ("per-service-call", "per-run")


async def asked(chat: Conversation, run: Run, *names: str) -> list[Any]:
    """One completed service call that asks for these tools."""
    async with run.service_call() as call:
        await call.complete(assistant(*(tool_call(name, "look", {}) for name in names)), service={"response": "s1"})
    return call.function_calls


async def in_flight(run: Run) -> None:
    """A service call that nobody ends."""
    await run.service_call().__aenter__()


@pytest.mark.parametrize("mode", MODES)
async def test_an_input_given_again_before_it_was_carried_is_sent_once(log: EventLog, mode: str) -> None:
    chat = log.tenant("t").conversation("c")
    former = await opened(chat, mode)
    first = await former.add(user("go"), operation_id="question")
    await expired(chat, former.id)
    async with recovery.resume(chat, former.id) as run:
        again = await run.add(user("go"), operation_id="question")
        assert again is not None
        assert first is not None
        assert (again.duplicate, again.versions) == (True, first.versions)
        async with run.service_call() as call:
            assert call.sends == tuple(first.versions)
            await call.complete(assistant("gone"))
    obeys_the_rules(await events_of(chat))


@pytest.mark.parametrize("mode", MODES)
async def test_an_input_given_again_after_it_was_carried_is_not_sent_again(log: EventLog, mode: str) -> None:
    chat = log.tenant("t").conversation("c")
    former = await opened(chat, mode)
    await former.add(user("go"), operation_id="question")
    calls = await asked(chat, former, "a")
    await expired(chat, former.id)
    async with recovery.resume(chat, former.id) as run:
        again = await run.add(user("go"), operation_id="question")
        assert again is not None
        assert again.duplicate
        assert run.unsent == ()
        result = await run.add_result(calls[0], "done")
        assert result is not None
        async with run.service_call(continues={"response": "s1"}) as call:
            assert call.sends == tuple(result.versions)
            await call.complete(assistant("gone"))


async def test_a_result_given_again_after_it_was_carried_is_not_sent_again(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    former = await opened(chat)
    await former.add(user("go"))
    calls = await asked(chat, former, "a")
    await former.add_result(calls[0], "done", operation_id="result-a")
    await asked(chat, former, "b")
    await expired(chat, former.id)
    async with recovery.resume(chat, former.id) as run:
        await run.add_result(calls[0], "done", operation_id="result-a")
        assert run.unsent == ()


@pytest.mark.parametrize("mode", MODES)
async def test_after_a_first_call_in_doubt_the_next_carries_what_that_one_carried(log: EventLog, mode: str) -> None:
    """Results that earlier runs left are carried by the first call; one that did not complete has carried nothing."""
    chat = log.tenant("t").conversation("c")
    sealed = await opened(chat)
    await sealed.add(user("go"))
    await asked(chat, sealed, "a")
    await expired(chat, sealed.id)
    await recovery.seal(chat, sealed.id)
    former = await opened(chat, mode)
    await former.add(user("and now?"))
    await in_flight(former)
    await expired(chat, former.id)
    async with recovery.resume(chat, former.id) as run, run.service_call() as call:
        assert problems(await history.for_call(call)) == []
        await call.complete(assistant("well"))
    assert (await history.load(chat)).open_calls == ()


@pytest.mark.parametrize("mode", MODES)
async def test_a_run_can_crash_and_be_taken_over_again_and_again(log: EventLog, mode: str) -> None:
    chat = log.tenant("t").conversation("c")
    former = await opened(chat, mode)
    await former.add(user("go"))
    await asked(chat, former, "a", "b", "c")
    for name in "abc":
        found = await expired(chat, former.id)
        assert next(left.call.call_id for left in found.unanswered) == name
        run = chat.resume(former.id, lease=0.01)
        await run.__aenter__()
        await run._heartbeat.stop()
        await run.add_result(next(iter(run.progress.unanswered.values())), f"result {name}")
        await in_flight(run)
    found = await expired(chat, former.id)
    assert [doubt.number for doubt in found.in_doubt] == [2, 3, 4]
    assert (found.unanswered, len(found.unsent_results)) == ((), 3)
    async with recovery.resume(chat, former.id) as last, last.service_call() as call:
        assert call.number == 5
        assert problems(await history.for_call(call)) == []
        await call.complete(assistant("well"))
    obeys_the_rules(await events_of(chat))


async def test_a_result_recorded_outside_the_run_is_not_asked_for_again(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    former = await opened(chat)
    await former.add(user("go"))
    (call,) = await asked(chat, former, "a")
    await chat.add_result(call, "by another way")
    found = await expired(chat, former.id)
    assert found.unanswered == ()
    assert [one.answers for one in found.unsent_results] == [call.version]
    async with recovery.resume(chat, former.id) as run:
        await run.add(user("go on"))
        async with run.service_call() as next_call:
            assert problems(await history.for_call(next_call)) == []
            await next_call.complete(assistant("well"))
