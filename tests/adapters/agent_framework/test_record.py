"""Wiring an agent up, and what is known again when it comes back."""

from __future__ import annotations

import subprocess
import sys
from typing import ClassVar

import pytest
from agent_framework import Agent, InMemoryHistoryProvider, Message, RawAgent

from eventlog import EventLog, InvalidInput, Tenant, user
from gateway.adapters.agent_framework import EventLogHistory, record
from gateway.adapters.agent_framework.contents import MARK
from tests.adapters.agent_framework import shown
from tests.adapters.agent_framework.play import Stage
from tests.adapters.agent_framework.scenarios import OSLO, tools
from tests.adapters.agent_framework.service import Service, call, text

pytestmark = pytest.mark.anyio


def test_the_adapter_is_not_imported_unless_it_is_asked_for() -> None:
    program = "import sys, eventlog, projections.history, gateway.command; print('agent_framework' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("per_call", [False, True])
async def test_a_run_without_a_session_is_refused(tenant: Tenant, streams: bool, per_call: bool) -> None:
    service = Service([[text("hello")]])
    agent = record(Agent(service, name="a", require_per_service_call_history_persistence=per_call), tenant)
    with pytest.raises(InvalidInput, match=r"agent 'a' is recorded.*pass session=agent\.create_session\(session_id="):
        await (agent.run("hi", stream=True).get_final_response() if streams else agent.run("hi"))
    assert service.requests == []
    assert [name async for name in tenant.conversations()] == []


async def test_an_agent_that_runs_no_middleware_is_refused(tenant: Tenant) -> None:
    with pytest.raises(InvalidInput, match="RawAgent and runs no middleware"):
        record(RawAgent(Service([]), name="a"), tenant)


async def test_a_chat_client_that_runs_no_middleware_is_refused_unless_it_is_the_users_own_stack(
    tenant: Tenant,
) -> None:
    class Bare:
        additional_properties: ClassVar[dict[str, object]] = {}

        def get_response(self, *args: object, **kwargs: object) -> None: ...

    with pytest.raises(InvalidInput, match=r"a Bare and runs no middleware: .*own_stack=True"):
        record(Agent(Bare(), name="a"), tenant)  # type: ignore[arg-type]
    record(Agent(Bare(), name="a"), tenant, own_stack=True)  # type: ignore[arg-type]


async def test_a_second_history_and_a_second_recording_are_refused(tenant: Tenant) -> None:
    with pytest.raises(InvalidInput, match="from 'in_memory' already"):
        record(Agent(Service([]), name="a", context_providers=[InMemoryHistoryProvider()]), tenant)
    agent = record(Agent(Service([]), name="a"), tenant)
    with pytest.raises(InvalidInput, match="recorded already"):
        record(agent, tenant)


async def test_wrong_settings_are_refused(tenant: Tenant) -> None:
    agent = Agent(Service([]), name="a")
    with pytest.raises(InvalidInput, match="on_failure='hope'"):
        record(agent, tenant, on_failure="hope")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="not a persistence mode"):
        record(agent, tenant, "sometimes")
    assert agent.context_providers == []


async def test_each_loaded_message_carries_the_event_version_and_run_it_is(tenant: Tenant) -> None:
    agent = record(
        Agent(Service([[call("c1", "weather", OSLO)], [text("3 C")]]), name="a", tools=tools(Stage())), tenant
    )
    await agent.run("weather?", session=agent.create_session(session_id="s"))
    chat = tenant.conversation("s")
    recorded = {event.version: event async for event in chat.read()}
    loaded = await EventLogHistory(tenant).get_messages("s")
    assert [message.additional_properties[MARK]["versions"] for message in loaded] == [[2], [4], [6], [8]]
    assert loaded[1].contents[0].id == loaded[2].contents[0].id is not None
    for message in loaded:
        mark = message.additional_properties[MARK]
        event = recorded[mark["version"]]
        assert (mark["event"], mark["run"], mark["log"]) == (event.id, event.run, chat.log.tag)


@pytest.mark.parametrize("per_call", [False, True])
async def test_a_history_that_comes_back_with_the_next_input_is_not_appended_again(
    tenant: Tenant, per_call: bool
) -> None:
    service = Service([[text("yes")], [text("yes")]], strict=False)
    agent = record(Agent(service, name="a", require_per_service_call_history_persistence=per_call), tenant)
    session = agent.create_session(session_id="s")
    await agent.run("yes", session=session)
    loaded = [Message.from_dict(message.to_dict()) for message in await EventLogHistory(tenant).get_messages("s")]
    await agent.run([*loaded, "yes"], session=session)
    assert await shown.view(tenant.conversation("s")) == ["user: yes", "assistant: yes", "user: yes", "assistant: yes"]


async def test_a_mark_of_another_log_is_of_no_account(tenant: Tenant) -> None:
    agent = record(Agent(Service([[text("a")], [text("b")]], strict=False), name="a"), tenant)
    await agent.run("hi", session=agent.create_session(session_id="one"))
    loaded = await EventLogHistory(tenant).get_messages("one")
    await agent.run([*loaded, "and?"], session=agent.create_session(session_id="two"))
    assert await shown.view(tenant.conversation("two")) == ["user: hi", "assistant: a", "user: and?", "assistant: b"]


async def test_a_mark_is_of_its_log_although_another_has_an_event_of_the_same_id(tenant: Tenant) -> None:
    service = Service([[text("b")]])
    agent = record(Agent(service, name="a"), tenant)
    for name in ("one", "two"):
        await tenant.conversation(name).add(user(f"hi {name}"), operation_id="first")
    loaded = await EventLogHistory(tenant).get_messages("one")
    await agent.run(loaded, session=agent.create_session(session_id="two"))
    assert await shown.view(tenant.conversation("two")) == ["user: hi two", "user: hi one", "assistant: b"]


async def test_a_mark_of_an_event_that_the_log_has_lost_is_of_no_account(tenant: Tenant) -> None:
    async with EventLog.open("memory://") as before:
        await before.tenant("t").conversation("s").add(user("lost"))
        loaded = await EventLogHistory(before.tenant("t")).get_messages("s")
    await tenant.conversation("s").add(user("written since"))
    agent = record(Agent(Service([[text("b")]]), name="a"), tenant)
    await agent.run(loaded, session=agent.create_session(session_id="s"))
    assert await shown.view(tenant.conversation("s")) == ["user: written since", "user: lost", "assistant: b"]


async def test_messages_that_are_saved_outside_a_run_are_posted_and_known_ones_left_out(tenant: Tenant) -> None:
    provider = EventLogHistory(tenant)
    await provider.save_messages("s", [Message("user", ["one"])])
    await provider.save_messages("s", [*await provider.get_messages("s"), Message("user", ["one"])])
    assert await shown.view(tenant.conversation("s")) == ["user: one", "user: one"]
    with pytest.raises(InvalidInput, match="pass session_id"):
        await provider.get_messages(None)


async def test_an_agents_own_tenant_is_where_it_is_recorded() -> None:
    async with EventLog.open("memory://") as log:
        blue, red = log.tenant("blue"), log.tenant("red")
        await blue.conversation("s").add(user("secret"))
        service = Service([[text("hello")]])
        agent = record(Agent(service, name="a"), red)
        await agent.run("hi", session=agent.create_session(session_id="s"))
        assert service.requests == [[("user", ("text", "hi"))]]
        assert await shown.view(blue.conversation("s")) == ["user: secret"]


async def test_a_run_says_who_acted_and_under_which_labels(tenant: Tenant) -> None:
    agent = record(Agent(Service([[text("hello")]]), name="clerk"), tenant, "per-run", labels={"desk": "7"})
    await agent.run("hi", session=agent.create_session(session_id="s"))
    (started,) = [event async for event in tenant.conversation("s").read(types=["run-started"])]
    assert started.data == {"mode": "per-run", "agent": "clerk", "labels": {"desk": "7"}}
