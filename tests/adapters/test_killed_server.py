"""The server is killed in mid-run and comes back: a clear error or a loud mark, and the next run goes on."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agent_framework import Agent, AgentSession, tool
from agents import Runner, function_tool, set_tracing_disabled

from eventlog import ConversationBusy, EventLog, EventLogError, OutcomeUnknown, ServerError
from eventlog.server.binary import find
from gateway.adapters.agent_framework import RecordingFailed, UnrecordedWarning, record
from gateway.adapters.openai_agents import EventLogSession
from tests.adapters.agent_framework import shown
from tests.adapters.agent_framework.service import Service, call, text
from tests.adapters.openai_agents import scripted
from tests.loss.server import Server

pytestmark = pytest.mark.anyio


@pytest.fixture
async def mortal() -> AsyncIterator[Server]:
    async with Server(str(find(None).path), fsync="always") as server:
        yield server


@pytest.fixture
async def its_log(mortal: Server) -> AsyncIterator[EventLog]:
    async with EventLog.open(mortal.url, deadline=0.5) as opened:
        yield opened


@pytest.mark.parametrize("on_failure", ["stop", "go-on"])
async def test_an_agent_stops_or_goes_on_unrecorded_and_its_next_run_is_recorded(
    mortal: Server, its_log: EventLog, on_failure: Any
) -> None:
    @tool
    async def weather() -> str:
        """The server dies while it looks."""
        mortal.kill()
        return "3 C"

    service = Service([[call("c1", "weather")], [text("it is 3 C")], [text("fine")]], strict=False)
    tenant = its_log.tenant("t")
    agent = record(Agent(service, name="a", tools=[weather]), tenant, on_failure=on_failure, lease=1)
    session = agent.create_session(session_id="s")
    if on_failure == "stop":
        with pytest.raises(RecordingFailed, match="a tool's result of agent 'a' could not be recorded") as told:
            await agent.run("weather?", session=session)
        assert isinstance(told.value.__cause__, ServerError | OutcomeUnknown)
        del service.script[0]
    else:
        with pytest.warns(UnrecordedWarning, match="goes on unrecorded in conversation 's': a tool's result failed"):
            assert (await agent.run("weather?", session=session)).text == "it is 3 C"
    await mortal.start()
    chat = tenant.conversation("s")
    assert (await shown.events(chat))[:5] == [
        "run-started per-service-call",
        "user: weather?",
        "sends [2]",
        "call c1 weather",
        "completed",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await _when_free(agent, session)
    found = await shown.events(chat)
    assert found.count("recording-gap") == (on_failure == "go-on")
    assert found[-3:] == ["assistant: fine", "completed", "run-committed completed"]
    assert (await chat.head()).runs == ()
    assert [role for role, _ in service.requests[-1]] == ["user", "assistant", "tool", "user"]


async def _when_free(agent: Agent[Any], session: AgentSession) -> None:
    """Run it, once the run that the server's death left open has expired."""
    while True:
        try:
            await agent.run("well?", session=session)
        except ConversationBusy:
            await asyncio.sleep(0.05)
        else:
            return


@pytest.mark.parametrize("recorded", [False, True], ids=["by position", "recorded run"])
async def test_a_session_of_the_openai_sdk_keeps_what_was_added_and_goes_on(
    mortal: Server, its_log: EventLog, recorded: bool
) -> None:
    set_tracing_disabled(True)

    @function_tool
    def weather() -> str:
        """The server dies while it looks."""
        mortal.kill()
        return "3 C"

    session = EventLogSession("s", tenant=its_log.tenant("t"))
    one = scripted.agent([scripted.calls("weather")], [scripted.said("it is 3 C")])
    one.tools = [weather]

    async def run() -> None:
        if not recorded:
            await Runner.run(one, "weather?", session=session)
            return
        async with session.run(agent="a", lease=1) as hooks:
            await Runner.run(one, "weather?", session=session, hooks=hooks)

    with pytest.raises(EventLogError) as told:
        await run()
    assert isinstance(told.value, ServerError | OutcomeUnknown)
    await mortal.start()
    assert scripted.shapes(await session.get_items())[:1] == ["user"]
    assert await session.get_items() == await EventLogSession("s", tenant=its_log.tenant("t")).get_items()
    again = scripted.agent([scripted.said("fine")])
    assert (await Runner.run(again, "well?", session=session)).final_output == "fine"
