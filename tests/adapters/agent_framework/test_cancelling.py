"""A run that is cancelled at any moment leaves a history that the next run can go on with."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent_framework import Agent, AgentSession

from eventlog import EventLog, Mode
from gateway.adapters.agent_framework import record
from projections import history
from tests.adapters.agent_framework.play import Stage, in_view
from tests.adapters.agent_framework.scenarios import OSLO, ROME, tools
from tests.adapters.agent_framework.service import Service, call, text

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("per_call", [False, True])
@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("mode", list(Mode))
async def test_cancelled_after_any_number_of_steps(mode: Mode, streams: bool, per_call: bool) -> None:
    steps, cancelled = 0, True
    while cancelled:
        async with EventLog.open("memory://") as log:
            cancelled = await _cancelled_after(steps, log, mode, streams, per_call)
        steps += 1
    assert steps > 20


async def _cancelled_after(steps: int, log: EventLog, mode: Mode, streams: bool, per_call: bool) -> bool:
    service = Service([[call("c1", "weather", OSLO), call("c2", "slow", ROME)], [text("cold")]])
    agent = record(
        Agent(
            service,
            name="a",
            tools=tools(Stage()),
            require_per_service_call_history_persistence=per_call,
        ),
        log.tenant("t"),
        mode,
    )
    session = agent.create_session(session_id="s")
    chat = log.tenant("t").conversation("s")

    async def run() -> None:
        if streams:
            await agent.run("weather?", session=session, stream=True).get_final_response()
        else:
            await agent.run("weather?", session=session)

    task = asyncio.create_task(run())
    for _ in range(steps):
        await asyncio.sleep(0)
    was_cancelled = task.cancel()
    await asyncio.wait([task])
    assert (await chat.head()).runs == ()
    view = await history.load(chat)
    if view.in_doubt or mode == Mode.PER_RUN:
        service.held = await in_view(chat)  # what the log cannot know, the next request tells the service
    service.script = [[text("fine")]]
    await agent.run("and?", session=session)
    assert service.faults == []
    assert await in_view(chat) == service.held
    assert (await history.load(chat)).open_calls == ()
    return was_cancelled


@pytest.mark.parametrize("streams", [False, True])
async def test_cancelled_at_any_moment_on_a_real_server(served: EventLog, streams: bool) -> None:
    tenant = served.tenant("t")
    for step in range(15):
        service = Service([[call("c1", "weather", OSLO), call("c2", "slow", ROME)], [text("cold")]])
        agent = record(Agent(service, name="a", tools=tools(Stage())), tenant)
        session = agent.create_session(session_id=f"s{step}")
        chat = tenant.conversation(f"s{step}")

        async def run(agent: Agent[Any] = agent, session: AgentSession = session) -> None:
            if streams:
                await agent.run("weather?", session=session, stream=True).get_final_response()
            else:
                await agent.run("weather?", session=session)

        task = asyncio.create_task(run())
        await asyncio.sleep(step * 0.0008)
        task.cancel()
        await asyncio.wait([task])
        assert (await chat.head()).runs == ()
        service.held, service.script = await in_view(chat), [[text("fine")]]
        await agent.run("and?", session=session)
        assert service.faults == []
        assert await in_view(chat) == service.held
