"""A recorded run tells what it did while it does it."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    MaxTurnsExceeded,
    OutputGuardrailTripwireTriggered,
    Runner,
    function_tool,
    output_guardrail,
)

from eventlog import Conversation, ConversationBusy, Event, EventLog, InvalidInput
from eventlog.store.redis.audit import Audit
from eventlog.store.redis.verification import Verification
from gateway.adapters.openai_agents import EventLogSession
from projections import history, recovery
from tests.adapters.openai_agents.conftest import MakeSession
from tests.adapters.openai_agents.scripted import Broken, agent, calls, said

pytestmark = pytest.mark.anyio


async def told(session: EventLogSession) -> list[str]:
    conversation = await session.conversation()
    return [f"{event.type} {event.call}" if event.call else event.type async for event in conversation.read()]


async def last(conversation: Conversation, kind: str) -> Event:
    return [event async for event in conversation.read(types=[kind])][-1]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_the_calls_are_told_with_what_they_sent_and_used(make: MakeSession, stream: bool) -> None:
    session = make()
    one = agent([calls("weather", city="Oslo")], [said("sunny")])
    async with session.run(agent="guide") as run:
        if stream:
            async for _ in Runner.run_streamed(one, "weather?", session=session, hooks=run).stream_events():
                pass
        else:
            await Runner.run(one, "weather?", session=session, hooks=run)
    assert await told(session) == [
        "run-started",
        "message-added",
        "service-call-started 1",
        "function-call 1",
        "service-call-completed 1",
        "function-result",
        "service-call-started 2",
        "message-added 2",
        "service-call-completed 2",
        "run-committed",
    ]
    conversation = await session.conversation()
    completed = await last(conversation, "service-call-completed")
    assert set(completed.data["usage"]) == {"input_tokens", "output_tokens", "total_tokens"}
    assert completed.data["service"]["response"]
    assert (await last(conversation, "run-started")).data["agent"] == "guide"
    view = await history.load(conversation)
    assert [message.role for message in view.messages] == ["user", "assistant", "tool", "assistant"]
    assert (view.in_doubt, view.open_calls) == ((), ())


async def test_a_call_is_in_doubt_from_its_start_on(make: MakeSession) -> None:
    session, seen = make(), []

    class Looking(Broken):
        async def get_response(self, *arguments: Any, **options: Any) -> Any:
            view = await history.load(await make().conversation())
            seen.append([(call.call, call.started) for call in view.in_doubt])
            return await super().get_response(*arguments, **options)

    with pytest.raises(ConnectionError):
        async with session.run() as run:
            await Runner.run(Agent(name="guide", model=Looking()), "hi", session=session, hooks=run)
    assert seen == [[(1, 3)]]
    assert await told(session) == [
        "run-started",
        "message-added",
        "service-call-started 1",
        "service-call-failed 1",
        "run-aborted",
    ]
    aborted = await last(await session.conversation(), "run-aborted")
    assert (aborted.data["reason"], "the service is down" in aborted.data["error"]) == ("failed", True)


async def test_a_reply_that_the_sdk_does_not_keep_is_told_as_a_failed_call_with_what_it_said(make: MakeSession) -> None:
    @output_guardrail
    async def no(*_: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    session = make()
    with pytest.raises(OutputGuardrailTripwireTriggered):
        async with session.run() as run:
            await Runner.run(agent([said("rude")], output_guardrails=[no]), "hi", session=session, hooks=run)
    conversation = await session.conversation()
    failed = await last(conversation, "service-call-failed")
    assert failed.data["outcome"] == "unknown"
    assert "rude" in str(failed.data["partial"])
    assert (await last(conversation, "run-committed")).data["outcome"] == "terminated"
    assert [item["role"] for item in await session.get_items()] == ["user"]


async def test_too_many_turns_end_the_run_by_design(make: MakeSession) -> None:
    session = make()
    one = agent([calls("weather", city="Oslo")], [said("x")])
    with pytest.raises(MaxTurnsExceeded):
        async with session.run() as run:
            await Runner.run(one, "hi", session=session, hooks=run, max_turns=1)
    assert (await last(await session.conversation(), "run-committed")).data["outcome"] == "max-iterations"


async def test_a_cancelled_run_is_aborted_as_such(make: MakeSession) -> None:
    session, begun = make(), asyncio.Event()

    @function_tool
    async def wait() -> str:
        """Wait."""
        begun.set()
        await asyncio.sleep(60)
        return "late"

    async def play() -> None:
        async with session.run() as run:
            await Runner.run(agent([calls("wait")], tools=[wait]), "hi", session=session, hooks=run)

    task = asyncio.create_task(play())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await last(await session.conversation(), "run-aborted")).data["reason"] == "cancelled"
    assert (await (await session.conversation()).head()).runs == ()


async def test_an_exclusive_run_keeps_others_out_and_a_shared_one_does_not(make: MakeSession) -> None:
    item = [{"role": "user", "content": "x"}]
    await make().add_items(item)
    async with make().run(exclusive=True):
        with pytest.raises(ConversationBusy):
            await make().add_items(item)
        with pytest.raises(ConversationBusy):
            await make().clear_session()
    async with make().run():
        await make().add_items(item)
        assert await make().pop_item() == item[0]


async def test_what_is_taken_back_in_a_run_is_not_sent_by_it(make: MakeSession) -> None:
    session = make()
    async with session.run() as run:
        await session.add_items([{"role": "user", "content": "wrong"}])
        await session.pop_item()
        await Runner.run(agent([said("hello")]), "right", session=session, hooks=run)
    view = await history.load(await session.conversation())
    assert [message.text for message in view.messages] == ["right", "hello"]


async def test_an_input_that_comes_after_the_start_of_its_call_is_told_by_another_start(make: MakeSession) -> None:
    session = make()
    await session.add_items([{"role": "user", "content": "unanswered"}])
    async with session.run() as run:
        streamed = Runner.run_streamed(agent([said("both")]), "asked", session=session, hooks=run)
        async for _ in streamed.stream_events():
            pass
    conversation = await session.conversation()
    failed = await last(conversation, "service-call-failed")
    assert (failed.call, failed.data["outcome"]) == (1, "refused")
    assert len((await last(conversation, "service-call-started")).data["sends"]) == 2
    view = await history.load(conversation)
    assert [message.text for message in view.messages] == ["unanswered", "asked", "both"]
    assert view.in_doubt == ()


async def test_one_session_records_one_run_at_a_time(make: MakeSession) -> None:
    session = make()
    async with session.run():
        with pytest.raises(InvalidInput, match="is recording a run: leave its block first"):
            async with session.run():
                pass
    async with session.run():
        pass


async def test_a_run_that_nobody_ended_is_found_by_recovery(make: MakeSession) -> None:
    session = make()
    run = session.run(agent="guide", lease=0.05)
    await run.__aenter__()
    await run._heartbeat.stop()  # as if its process had died
    await session.add_items([{"role": "user", "content": "hi"}])
    conversation = await session.conversation()
    while not (found := await recovery.inspect(conversation)).expired:
        await asyncio.sleep(0.01)
    assert [left.run for left in found.expired] == [run.id]
    await recovery.seal(conversation, run.id)
    assert len(await make().get_items()) == 1


async def test_what_it_records_is_sound(server: str) -> None:
    name = f"t{uuid4().hex[:12]}"
    async with EventLog.open(server, namespace=name) as log:
        session = EventLogSession("s", tenant=log.tenant("t"))
        async with session.run() as run:
            replies = [calls("weather", "c1", city="Oslo"), calls("weather", "c2", city="Rome")]
            await Runner.run(agent(replies, [said("x")]), "hi", session=session, hooks=run)
            streamed = Runner.run_streamed(agent([said("z", "m3")]), "more", session=session, hooks=run)
            async for _ in streamed.stream_events():
                pass
        await Runner.run(agent([calls("weather", "c1", city="Oslo")], [said("y", "m2")]), "hi", session=session)
        await session.pop_item()
        await session.clear_session()
    async with Audit.open(server, name) as audit:
        assert [str(fault) async for fault in Verification(audit).faults()] == []
