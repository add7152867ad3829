"""When history is kept: our mode beside a chat client stack that is the framework's, or the user's own."""

from __future__ import annotations

import warnings

import pytest
from agent_framework import Agent

from eventlog import InvalidInput, Mode, Tenant
from gateway.adapters.agent_framework import PersistenceWarning, ServiceCallRecorder, record
from tests.adapters.agent_framework import shown
from tests.adapters.agent_framework.play import Stage
from tests.adapters.agent_framework.scenarios import OSLO, Ends, tools
from tests.adapters.agent_framework.service import Service, call, text

pytestmark = pytest.mark.anyio


def agent_on(service: Service, *middleware: object) -> Agent:
    return Agent(service, name="weather", tools=tools(Stage()), middleware=list(middleware))


async def test_per_call_each_completed_service_call_is_in_the_history_at_once(tenant: Tenant) -> None:
    service = Service([[call("c1", "weather", OSLO)], ConnectionError("gone")])
    agent = record(agent_on(service), tenant, Mode.PER_SERVICE_CALL)
    with pytest.raises(ConnectionError):
        await agent.run("weather?", session=agent.create_session(session_id="s"))
    chat = tenant.conversation("s")
    assert await shown.view(chat) == ["user: weather?", "call c1 weather"]
    assert await shown.events(chat) == [
        "run-started per-service-call",
        "user: weather?",
        "sends [2]",
        "call c1 weather",
        "completed",
        "result c1 -> 3 C in Oslo, answers 4",
        "sends [6]",
        "failed, unknown",
        "run-aborted failed",
    ]


async def test_per_call_on_a_stack_of_the_users_own_history_is_the_users_affair(tenant: Tenant) -> None:
    service = Service([[call("c1", "weather", OSLO)], [text("3 C")]])
    agent = record(agent_on(service), tenant, Mode.PER_SERVICE_CALL, own_stack=True)
    assert (await agent.run("weather?", session=agent.create_session(session_id="s"))).text == "3 C"
    chat = tenant.conversation("s")
    assert await shown.view(chat) == []
    assert await shown.events(chat) == [
        "run-started per-service-call",
        "user: weather?",
        "run-committed completed",
    ]


@pytest.mark.parametrize("mode", list(Mode))
async def test_a_stack_of_the_users_own_that_holds_our_recorder_is_recorded_exactly(tenant: Tenant, mode: Mode) -> None:
    service = Service([[call("c1", "weather", OSLO)], [text("3 C")]], middleware=[ServiceCallRecorder()])
    agent = record(agent_on(service), tenant, mode, own_stack=True)
    await agent.run("weather?", session=agent.create_session(session_id="s"))
    chat = tenant.conversation("s")
    assert await shown.view(chat) == [
        "user: weather?",
        "call c1 weather",
        "result c1 -> 3 C in Oslo",
        "assistant: 3 C",
    ]
    assert (await shown.events(chat))[2:7] == [
        "sends [2]",
        "call c1 weather",
        "completed",
        "result c1 -> 3 C in Oslo, answers 4",
        "sends [6]",
    ]


async def test_per_run_a_trailing_result_is_not_in_the_history_and_the_next_run_carries_it(tenant: Tenant) -> None:
    service = Service([[call("c1", "weather", OSLO)], [text("go on")]])
    agent = record(agent_on(service, Ends("weather")), tenant, Mode.PER_RUN)
    session = agent.create_session(session_id="s")
    chat = tenant.conversation("s")
    await agent.run("weather?", session=session)
    assert await shown.view(chat) == ["user: weather?", "call c1 weather"]
    assert (await shown.events(chat))[5:] == [
        "result c1 -> 3 C in Oslo, answers 4",
        "run-committed terminated",
    ]
    await agent.run("and?", session=session)
    assert await shown.view(chat) == [
        "user: weather?",
        "call c1 weather",
        "result c1 -> 3 C in Oslo",
        "user: and?",
        "assistant: go on",
    ]
    assert service.faults == []


async def test_per_run_on_a_stack_without_our_recorder_warns_of_what_cannot_be_known(tenant: Tenant) -> None:
    service = Service([[call("c1", "slow", OSLO)], [call("c2", "weather", OSLO)], [text("go on")]])
    agent = record(agent_on(service, Ends("weather")), tenant, Mode.PER_RUN, own_stack=True)
    session = agent.create_session(session_id="s")
    with pytest.warns(PersistenceWarning, match="agent 'weather' .* without a ServiceCallRecorder.* cannot be known"):
        await agent.run("weather?", session=session)
    chat = tenant.conversation("s")
    assert await shown.view(chat) == ["user: weather?", "call c1 slow", "result c1 -> 4 C in Oslo", "call c2 weather"]
    assert await shown.events(chat) == [
        "run-started per-run",
        "user: weather?",
        "sends [2]",
        "call c1 slow",
        "completed",
        "result c1 -> 4 C in Oslo, answers 4",
        "sends [6]",
        "call c2 weather",
        "completed",
        "result c2 -> 3 C in Oslo, answers 8",
        "run-committed completed",
    ]
    with pytest.warns(PersistenceWarning):
        await agent.run("and?", session=session)
    assert (await shown.view(chat))[-3:] == ["result c2 -> 3 C in Oslo", "user: and?", "assistant: go on"]
    assert service.faults == []


async def test_a_history_per_service_call_is_refused_on_a_stack_that_nothing_watches(tenant: Tenant) -> None:
    service = Service([[text("hello")]])
    agent = Agent(service, name="weather", require_per_service_call_history_persistence=True)
    record(agent, tenant, own_stack=True)
    with pytest.raises(InvalidInput, match=r"agent 'weather' keeps its history per service call.*ServiceCallRecorder"):
        await agent.run("hi", session=agent.create_session(session_id="s"))


async def test_a_watched_run_does_not_warn(tenant: Tenant) -> None:
    agent = record(agent_on(Service([[text("hello")]])), tenant, Mode.PER_RUN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await agent.run("hi", session=agent.create_session(session_id="s"))
