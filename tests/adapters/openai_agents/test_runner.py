"""The SDK's Runner with our session and with its own: the same items, the same requests; and a log that tells more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    OutputGuardrailTripwireTriggered,
    RunConfig,
    Runner,
    RunResult,
    RunResultStreaming,
    function_tool,
    handoff,
    input_guardrail,
    output_guardrail,
)
from agents.extensions.memory import RedisSession
from agents.memory import OpenAIResponsesCompactionSession, Session, SessionSettings
from agents.testing import ScriptedModel
from redis.asyncio import Redis

from eventlog import EventLog
from gateway.adapters.openai_agents import EventLogSession, RecordedRun
from projections import history
from tests.adapters.openai_agents.conftest import MakeSession
from tests.adapters.openai_agents.scripted import Broken, agent, calls, said, shapes, thought, weather

pytestmark = pytest.mark.anyio
Scenario = Callable[[Session], Awaitable[object]]


@function_tool
async def slow(city: str) -> str:
    """Take a while."""
    await asyncio.sleep(0.02)
    return f"slow in {city}"


@function_tool
async def failing() -> str:
    """Fail."""
    raise ValueError("no such city")


@input_guardrail
async def no_input(*_: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)


@output_guardrail
async def no_output(*_: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)


HOOKS: ContextVar[RecordedRun | None] = ContextVar("HOOKS", default=None)
"""The recorded run that a scenario is played in, if any."""


async def run(*arguments: Any, **options: Any) -> RunResult:
    return await Runner.run(*arguments, hooks=HOOKS.get(), **options)


def run_streamed(*arguments: Any, **options: Any) -> RunResultStreaming:
    return Runner.run_streamed(*arguments, hooks=HOOKS.get(), **options)


async def simple(session: Session) -> object:
    return (await run(agent([said("hello")]), "hi", session=session)).final_output


async def two_turns(session: Session) -> object:
    one = agent([said("hello")], [said("again", "m2")])
    await run(one, "hi", session=session)
    await run(one, "hi", session=session)
    return requests(one)


async def tools(session: Session) -> object:
    one = agent([thought("hm"), calls("weather", city="Oslo")], [said("sunny")])
    await run(one, "weather?", session=session)
    return requests(one)


async def parallel_tools(session: Session) -> object:
    replies = [calls("slow", "c1", city="Oslo"), calls("weather", "c2", city="Rome"), calls("failing", "c3")]
    one = agent(replies, [said("sunny")], tools=[slow, weather, failing])
    await run(one, "weather?", session=session)
    return requests(one)


async def hand_over(session: Session) -> object:
    second = Agent(name="second", model=ScriptedModel([[said("done")]]))
    first = agent([calls("transfer_to_second")], handoffs=[handoff(second)])
    await run(first, "help", session=session)
    return requests(second)


async def streamed(session: Session) -> object:
    one = agent([calls("weather", city="Oslo")], [said("sunny")])
    result = run_streamed(one, "weather?", session=session)
    events = [event.type async for event in result.stream_events()]
    return events, requests(one)


async def cancelled_stream(session: Session) -> object:
    one = agent([calls("weather", city="Oslo")], [said("sunny")])
    result = run_streamed(one, "weather?", session=session)
    async for event in result.stream_events():
        if event.type == "run_item_stream_event" and event.name == "tool_output":
            result.cancel(mode="after_turn")
    return result.is_complete


async def input_guardrail_trips(session: Session) -> object:
    with pytest.raises(InputGuardrailTripwireTriggered):
        await run(agent([said("x")], input_guardrails=[no_input]), "hi", session=session)
    return None


async def output_guardrail_trips(session: Session) -> object:
    with pytest.raises(OutputGuardrailTripwireTriggered):
        await run(agent([said("x")], output_guardrails=[no_output]), "hi", session=session)
    return None


async def too_many_turns(session: Session) -> object:
    one = agent([calls("weather", "c1", city="Oslo")], [calls("weather", "c2", city="Rome")])
    with pytest.raises(MaxTurnsExceeded):
        await run(one, "weather?", session=session, max_turns=1)
    return None


async def model_fails(session: Session) -> object:
    with pytest.raises(ConnectionError):
        await run(Agent(name="guide", model=Broken()), "hi", session=session)
    one = agent([said("back")])
    await run(one, "again", session=session)
    return requests(one)


async def limited(session: Session) -> object:
    one = agent(*([said(str(number), f"m{number}")] for number in range(4)))
    settings = RunConfig(session_settings=SessionSettings(limit=3))
    for number in range(4):
        await run(one, f"q{number}", session=session, run_config=settings)
    return requests(one)


async def approval(session: Session) -> object:
    @function_tool(needs_approval=True)
    async def book(city: str) -> str:
        """Book."""
        return f"booked {city}"

    one = agent([calls("book", city="Oslo")], [said("done")], tools=[book])
    result = await run(one, "book", session=session)
    state = result.to_state()
    state.approve(result.interruptions[0])
    await run(one, state, session=session)
    return requests(one)


async def merged_by_callback(session: Session) -> object:
    one = agent([said("hello")], [said("again", "m2")])
    config = RunConfig(session_input_callback=lambda old, new: [*old[-1:], *new])
    await run(one, "hi", session=session, run_config=config)
    await run(one, [{"role": "user", "content": "you"}], session=session, run_config=config)
    return requests(one)


def requests(one: Agent[Any]) -> list[Any]:
    """What the scripted model was sent."""
    assert isinstance(one.model, ScriptedModel)
    return [call.input for call in one.model.calls]


SCENARIOS: list[Scenario] = [
    simple,
    two_turns,
    tools,
    parallel_tools,
    hand_over,
    streamed,
    cancelled_stream,
    input_guardrail_trips,
    output_guardrail_trips,
    too_many_turns,
    model_fails,
    limited,
    approval,
    merged_by_callback,
]


@pytest.mark.parametrize("recorded", [False, True], ids=["by-position", "recorded"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_the_run_goes_as_with_the_session_of_the_sdk(server: str, scenario: Scenario, recorded: bool) -> None:
    name = uuid4().hex
    async with EventLog.open(server, namespace=f"t{name[:12]}") as log, Redis.from_url(server) as client:
        theirs = RedisSession(name, redis_client=client)
        ours = EventLogSession(name, tenant=log.tenant("t"))
        expected = await scenario(theirs)
        if recorded:
            async with ours.run(agent="guide") as hooks:
                token = HOOKS.set(hooks)
                found = await scenario(ours)
                HOOKS.reset(token)
            view = await history.load(await ours.conversation())
            assert [call.call for call in view.in_doubt] == ([1] if scenario in IN_DOUBT else [])
        else:
            found = await scenario(ours)
        assert found == expected
        assert await ours.get_items() == await theirs.get_items()
        fresh = EventLogSession(name, tenant=log.tenant("t"))
        assert await fresh.get_items() == await theirs.get_items()


IN_DOUBT = (output_guardrail_trips,)
"""Where nobody can tell whether the service remembers a call, and no later one has sent the whole history."""


async def test_by_position_the_service_view_holds_what_the_service_was_sent_and_said(make: MakeSession) -> None:
    session = make()
    await tools(session)
    view = await history.load(await session.conversation())
    assert [message.role for message in view.messages] == ["user", "assistant", "assistant", "tool", "assistant"]
    assert (view.open_calls, view.stray_results, view.in_doubt) == ((), (), ())


async def test_by_position_an_input_that_no_call_carried_is_not_in_the_service_view(make: MakeSession) -> None:
    session = make()
    await input_guardrail_trips(session)
    conversation = await session.conversation()
    assert (await history.load(conversation)).messages == ()
    assert [fate.fate for fate in await history.explain(conversation)] == ["unsent-message"]
    await simple(session)  # it is in the session, so the next request carries it
    view = await history.load(conversation)
    assert [message.text for message in view.messages] == ["hi", "hi", "hello"]


async def test_a_stream_that_is_broken_off_leaves_whole_adds(make: MakeSession) -> None:
    session = make()
    one = agent([calls("slow", city="Oslo")], [said("sunny")], tools=[slow])
    result = Runner.run_streamed(one, "weather?", session=session)
    async for event in result.stream_events():
        if event.type == "run_item_stream_event":
            result.cancel()
    assert shapes(await session.get_items())[0] == "user"
    assert shapes(await session.get_items()) in (["user"], ["user", "function_call", "function_call_output"])
    again = agent([said("back")])
    assert (await Runner.run(again, "again", session=session)).final_output == "back"


async def test_the_compaction_of_the_sdk_replaces_the_items_in_one_append(make: MakeSession) -> None:
    summary = [{"role": "user", "content": "summary"}]

    async def compact(**_: Any) -> SimpleNamespace:
        return SimpleNamespace(usage=None, output=summary)

    backend = make()
    await simple(backend)
    before = await backend.get_items()
    client: Any = SimpleNamespace(responses=SimpleNamespace(compact=compact))
    session = OpenAIResponsesCompactionSession("s", backend, client=client, compaction_mode="input")
    conversation = await backend.conversation()
    last = (await conversation.head()).last
    await session.run_compaction({"force": True})
    assert await make().get_items() == await backend.get_items() == summary
    operations = {event.operation_id async for event in conversation.read(last)}
    assert len(operations) == 1
    await conversation.rewind(last.version, expected=(await conversation.head()).last)  # nothing was lost
    assert await backend.get_items() == before


async def test_by_position_each_call_sends_what_was_not_sent_before(make: MakeSession) -> None:
    session = make()
    await tools(session)
    await tools(session)
    events = [event async for event in (await session.conversation()).read()]
    inputs = [event.version for event in events if event.type == "function-result" or event.data.get("role") == "user"]
    sends = [event.data["sends"] for event in events if event.type == "service-call-started"]
    assert sends == [[version] for version in inputs]
