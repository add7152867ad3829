"""When the service keeps the conversation: the log records all the same, and knows where to go on."""

from __future__ import annotations

import agent_framework._sessions as sessions
import pytest
from agent_framework import Agent, AgentSession

from eventlog import Tenant, user
from gateway.adapters.agent_framework import record
from gateway.adapters.agent_framework.service_request import LOCAL_CONVERSATION
from tests.adapters.agent_framework import shown
from tests.adapters.agent_framework.play import Stage
from tests.adapters.agent_framework.scenarios import OSLO, tools
from tests.adapters.agent_framework.service import Breaks, Broken, Service, call, text

pytestmark = pytest.mark.anyio


def agent_on(service: Service, tenant: Tenant, **options: bool) -> Agent:
    return record(Agent(service, name="weather", tools=tools(Stage()), **options), tenant)


def test_the_local_stand_in_is_the_frameworks() -> None:
    assert LOCAL_CONVERSATION == sessions.LOCAL_HISTORY_CONVERSATION_ID


@pytest.mark.parametrize("per_call", [False, True])
async def test_the_sessions_id_follows_each_accepted_call(tenant: Tenant, per_call: bool) -> None:
    service = Service([[call("c1", "weather", OSLO)], [text("3 C")], [text("bye")]], stores=True)
    agent = agent_on(service, tenant, require_per_service_call_history_persistence=per_call)
    session = agent.create_session(session_id="s")
    await agent.run("weather?", session=session)
    assert session.service_session_id == "conversation-2"
    await agent.run("thanks", session=session)
    assert session.service_session_id == "conversation-3"
    assert service.continued == [None, "conversation-1", "conversation-2"]
    assert await shown.events(tenant.conversation("s")) == [
        "run-started per-service-call",
        "user: weather?",
        "sends [2]",
        "call c1 weather",
        "completed in conversation-1",
        "result c1 -> 3 C in Oslo, answers 4",
        "sends [6], continues conversation-1",
        "assistant: 3 C",
        "completed in conversation-2",
        "run-committed completed",
        "run-started per-service-call",
        "user: thanks",
        "sends [12], continues conversation-2",
        "assistant: bye",
        "completed in conversation-3",
        "run-committed completed",
    ]


async def test_after_a_crash_a_fresh_session_goes_on_where_the_log_last_saw_the_service(tenant: Tenant) -> None:
    service = Service([[text("hello")], [text("fine")]], stores=True)
    agent = agent_on(service, tenant)
    await agent.run("hi", session=agent.create_session(session_id="s"))
    fresh = agent.create_session(session_id="s")
    await agent.run("how are you?", session=fresh)
    assert service.continued == [None, "conversation-1"]
    assert service.requests[1] == [("user", ("text", "how are you?"))]
    assert fresh.service_session_id == "conversation-2"


async def test_a_session_that_was_stored_before_the_last_accepted_call_goes_on_behind_it(tenant: Tenant) -> None:
    service = Service([[text("one")], [text("two")], [text("three")]], stores=True)
    agent = agent_on(service, tenant)
    session = agent.create_session(session_id="s")
    await agent.run("1", session=session)
    stored = session.to_dict()
    await agent.run("2", session=session)
    await agent.run("3", session=AgentSession.from_dict(stored))
    assert service.continued == [None, "conversation-1", "conversation-2"]


async def test_a_conversation_that_the_log_does_not_know_is_the_callers_to_choose(tenant: Tenant) -> None:
    service = Service([[text("one")], [text("two")]], stores=True, strict=False)
    service.conversations["elsewhere"] = []
    agent = agent_on(service, tenant)
    await agent.run("1", session=agent.create_session(session_id="s"))
    await agent.run("2", session=agent.get_session("elsewhere", session_id="s"))
    assert service.continued == [None, "elsewhere"]


async def test_a_broken_streams_id_is_not_gone_on_with(tenant: Tenant) -> None:
    service = Service([[text("hello")], Breaks([text("fi")]), [text("fine")]], stores=True)
    agent = agent_on(service, tenant)
    session = agent.create_session(session_id="s")
    await agent.run("hi", session=session)
    with pytest.raises(Broken):
        async for _ in agent.run("how are you?", session=session, stream=True):
            pass
    assert session.service_session_id == "conversation-1"


async def test_out_of_step_with_the_service_a_fresh_session_sends_the_whole_history(tenant: Tenant) -> None:
    service = Service([[text("hello")], Broken("gone"), [text("fine")]], stores=True)
    agent = agent_on(service, tenant)
    session = agent.create_session(session_id="s")
    await agent.run("hi", session=session)
    with pytest.raises(Broken):
        await agent.run("how are you?", session=session)
    fresh = agent.create_session(session_id="s")
    await agent.run("again", session=fresh)
    assert service.continued[-1] is None
    assert service.requests[-1] == [
        ("user", ("text", "hi")),
        ("assistant", ("text", "hello")),
        ("user", ("text", "again")),
    ]
    assert fresh.service_session_id == "conversation-3"


async def test_what_was_posted_meanwhile_is_sent_ahead(tenant: Tenant) -> None:
    service = Service([[text("hello")], [text("fine")]], stores=True)
    agent = agent_on(service, tenant)
    session = agent.create_session(session_id="s")
    await agent.run("hi", session=session)
    await tenant.conversation("s").add(user("posted"))
    await agent.run("more", session=session)
    assert service.requests[1] == [("user", ("text", "posted")), ("user", ("text", "more"))]
    assert (await shown.events(tenant.conversation("s")))[6:10] == [
        "user: posted",
        "run-started per-service-call",
        "user: more",
        "sends [7, 9], continues conversation-1",
    ]
    assert service.faults == []
