"""What stands in the log after the harder runs, and what of it is history, written out."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from agent_framework import Agent, AgentSession, Content, Message, chat_middleware

from eventlog import ConversationBusy, EventLog, Mode, Tenant, assistant, tool_call, user
from gateway.adapters.agent_framework import record
from projections import history
from tests.adapters.agent_framework import shown
from tests.adapters.agent_framework.play import Played, Scenario, Stage, Turn, play
from tests.adapters.agent_framework.scenarios import (
    OSLO,
    ROME,
    SCENARIOS,
    Changes,
    Ends,
    Replaces,
    approve,
    result,
    tools,
)
from tests.adapters.agent_framework.service import Hangs, Service, call, text

pytestmark = pytest.mark.anyio


def scenario(name: str) -> Scenario:
    return next(one for one in SCENARIOS if one.name == name)


async def logged(name: str, tenant: Tenant, *, mode: Mode = Mode.PER_SERVICE_CALL, streams: bool = False) -> list[str]:
    await play(scenario(name), tenant=tenant, mode=mode, streams=streams)
    return await shown.events(tenant.conversation("s"))


async def test_an_approval_is_asked_for_and_answered(tenant: Tenant) -> None:
    assert (await logged("a tool that is approved", tenant))[:14] == [
        "run-started per-service-call",
        "user: book!",
        "sends [2]",
        "call c1 book",
        "completed",
        "approval-requested 4",
        "run-committed completed",
        "run-started per-service-call",
        "approval-resolved approved 4",
        "result c1 -> booked Oslo, answers 4",
        "sends [10]",
        "assistant: done",
        "completed",
        "run-committed completed",
    ]


async def test_a_denial_is_the_result_that_the_framework_makes_of_it(tenant: Tenant) -> None:
    assert (await logged("a tool that is denied", tenant))[7:12] == [
        "run-started per-service-call",
        "approval-resolved denied 4",
        "result c1 -> Error: Tool call invocation was rejected by user., answers 4",
        "sends [10]",
        "assistant: as you wish",
    ]


async def test_an_approval_that_comes_to_another_process_is_of_the_same_call(tenant: Tenant) -> None:
    found = await logged("a tool that is approved in another process", tenant)
    assert found[5:11] == [
        "approval-requested 4",
        "run-committed completed",
        "run-started per-service-call",
        "approval-resolved approved 4",
        "result c1 -> booked Oslo, answers 4",
        "sends [10]",
    ]


async def test_each_approval_is_of_its_own_call_although_the_service_uses_ids_again(tenant: Tenant) -> None:
    found = await logged("two approvals at once, of calls with ids used before", tenant)
    assert found[6:20] == [
        "sends [6]",
        "call c1 book",
        "call c2 book",
        "completed",
        "approval-requested 8",
        "approval-requested 9",
        "run-committed completed",
        "run-started per-service-call",
        "approval-resolved approved 8",
        "approval-resolved approved 9",
        "result c1 -> booked Oslo, answers 8",
        "result c2 -> booked Rome, answers 9",
        "sends [17, 18]",
        "assistant: done",
    ]


async def test_until_it_is_answered_a_call_waits_for_approval(tenant: Tenant) -> None:
    one = scenario("a tool that is approved")
    await play(Scenario(one.name, one.script, one.turns[:1], one.tools), tenant=tenant)
    (waiting,) = (await history.load(tenant.conversation("s"))).open_calls
    assert (waiting.name, waiting.awaits_approval) == ("book", True)


@pytest.mark.parametrize("per_call", [False, True])
async def test_no_service_is_sent_the_approval_of_an_own_tool(tenant: Tenant, per_call: bool) -> None:
    played = await play(scenario("a tool that is approved"), tenant=tenant, per_call=per_call)
    assert played.service.types[1] == ["text", "function_call", "function_result"]


async def test_the_framework_ignores_an_approval_in_a_fresh_session_and_the_log_keeps_the_decision(
    tenant: Tenant,
) -> None:
    def fresh(played: Played) -> Message:
        answer = approve(True)(played)
        played.session = AgentSession(session_id="s")
        return answer

    one = scenario("a tool that is approved")
    played = await play(Scenario(one.name, one.script, ["book!", Turn(fresh)], one.tools), tenant=tenant)
    bare = await play(Scenario(one.name, one.script, ["book!", Turn(fresh)], one.tools), tenant=None)
    assert played.stage.ran == bare.stage.ran == []
    assert (await shown.events(tenant.conversation("s")))[7:9] == [
        "run-started per-service-call",
        "approval-resolved approved 4",
    ]


async def test_an_approval_in_a_session_of_its_own_is_another_conversation(tenant: Tenant) -> None:
    service = Service([[call("c1", "book", OSLO)], [call("c1", "book", ROME)], [text("done")]], strict=False)
    agent = record(Agent(service, name="a", tools=tools(Stage())), tenant)
    first, second = agent.create_session(session_id="s1"), agent.create_session(session_id="s2")
    await agent.run("book!", session=first)
    asked = await agent.run("book!", session=second)
    answers = [request.to_function_approval_response(True) for request in asked.user_input_requests]
    await agent.run(Message("user", answers), session=second)
    assert await shown.view(tenant.conversation("s1")) == ["user: book!", "call c1 book"]
    assert await shown.view(tenant.conversation("s2")) == [
        "user: book!",
        "call c1 book",
        "result c1 -> booked Rome",
        "assistant: done",
    ]


async def test_the_answer_to_a_provider_that_asks_for_approval_is_an_input(tenant: Tenant) -> None:
    assert (await logged("a tool of the provider that is approved", tenant))[:11] == [
        "run-started per-service-call",
        "user: mail!",
        "sends [2]",
        "assistant: function_approval_request",
        "completed",
        "run-committed completed",
        "run-started per-service-call",
        "user: function_approval_response",
        "sends [8]",
        "assistant: sent",
        "completed",
    ]


async def test_a_tool_that_raises_has_a_result_that_says_so(tenant: Tenant) -> None:
    assert (await logged("a tool that raises", tenant))[3:8] == [
        "call c1 fails",
        "completed",
        "result c1 -> Error: Function failed., answers 4 (is_error)",
        "sends [6]",
        "assistant: no luck",
    ]


async def test_a_tool_that_raised_is_told_of_although_the_run_ends_before_its_result_is_sent(tenant: Tenant) -> None:
    one = Scenario(
        "x", lambda: [[call("c1", "fails", OSLO), call("c2", "hangs", OSLO)]], [Turn("weather?", "cancel")], tools
    )
    await play(one, tenant=tenant)
    found = await shown.events(tenant.conversation("s"))
    assert found[6] == "result c1 -> Error: Function failed., answers 4 (is_error)"
    assert found[-1] == "run-aborted cancelled"


async def test_an_approval_of_an_own_tool_that_middleware_puts_into_a_request_is_no_input(tenant: Tenant) -> None:
    @chat_middleware
    async def inserts(context: Any, call_next: Any) -> None:
        asked = Content.from_function_call("c9", "book", id="af-9")
        request = Content.from_function_approval_request("af-9", asked)
        context.messages = [Message("assistant", [request]), *context.messages]
        await call_next()

    agent = record(Agent(Service([[text("hello")]]), name="a", middleware=[inserts]), tenant)
    await agent.run("hi", session=agent.create_session(session_id="s"))
    assert await shown.view(tenant.conversation("s")) == ["user: hi", "assistant: hello"]


async def test_of_two_open_calls_with_one_id_the_callers_result_is_for_the_newer(tenant: Tenant) -> None:
    chat = tenant.conversation("s")
    for _ in range(2):
        async with chat.run(carry="none") as run:
            await run.add(user("where?"))
            async with run.service_call() as opened:
                await opened.complete(assistant(tool_call("c1", "locate")))
    agent = record(Agent(Service([[text("here")]], strict=False), name="a"), tenant)
    await agent.run(result("c1", "at home")(None), session=agent.create_session(session_id="s"))
    assert "result c1 -> at home, answers 10" in await shown.events(chat)


async def test_each_of_several_tools_is_recorded_when_it_returns_and_sent_in_the_order_of_the_calls(
    tenant: Tenant,
) -> None:
    assert (await logged("two tools, of which the second returns first", tenant))[3:9] == [
        "call c1 slow",
        "call c2 weather",
        "completed",
        "result c2 -> 3 C in Rome, answers 5",
        "result c1 -> 4 C in Oslo, answers 4",
        "sends [8, 7]",
    ]


async def test_a_result_that_is_changed_behind_the_tool_is_recorded_as_it_is_sent(tenant: Tenant) -> None:
    found = await logged("a tool whose result is changed on the way", tenant)
    assert found[5:7] == ["result c1 -> redacted, answers 4", "sends [6]"]


async def test_a_result_that_the_chat_clients_own_middleware_changes_is_recorded_twice_and_sent_as_changed(
    tenant: Tenant,
) -> None:
    service = Service([[call("c1", "weather", OSLO)], [text("secret")]], middleware=[Changes()])
    agent = record(Agent(service, name="a", tools=tools(Stage())), tenant)
    await agent.run("weather?", session=agent.create_session(session_id="s"))
    assert (await shown.events(tenant.conversation("s")))[5:8] == [
        "result c1 -> 3 C in Oslo, answers 4",
        "result c1 -> redacted, answers 4",
        "sends [7]",
    ]
    assert (await shown.view(tenant.conversation("s")))[2] == "result c1 -> redacted"


async def test_a_terminated_loop_commits_and_the_next_run_carries_what_was_not_sent(tenant: Tenant) -> None:
    assert (await logged("a loop that a filter ends at one of two tools", tenant))[3:13] == [
        "call c1 weather",
        "call c2 slow",
        "completed",
        "result c1 -> 3 C in Oslo, answers 4",
        "result c2 -> 4 C in Rome, answers 5",
        "run-committed terminated",
        "run-started per-service-call",
        "user: and?",
        "sends [7, 8, 11]",
        "assistant: go on",
    ]


async def test_a_caller_that_answers_a_terminated_call_itself_is_the_only_one_heard(tenant: Tenant) -> None:
    found = await logged("a filter ends the loop and the caller answers the call itself", tenant)
    assert found[5:10] == [
        "result c1 -> 3 C in Oslo, answers 4",
        "run-committed terminated",
        "run-started per-service-call",
        "result c1 -> 5 C, answers 4",
        "sends [9]",
    ]


async def test_the_limit_of_iterations_is_told(tenant: Tenant) -> None:
    found = await logged("the limit of iterations", tenant)
    assert found[6:10] == ["sends [6]", "assistant: that is all", "completed", "run-committed max-iterations"]


@pytest.mark.parametrize("mode", list(Mode))
async def test_a_run_cancelled_in_a_tool_keeps_the_others_result_and_leaves_no_call_open(
    tenant: Tenant, mode: Mode
) -> None:
    one = scenario("cancelled in a tool beside one that has returned")
    await play(one, tenant=tenant, mode=mode)
    found = await shown.events(tenant.conversation("s"))
    assert found[6:9] == [
        "result c1 -> 3 C in Oslo, answers 4",
        "result c2 -> No result: the run that made this call ended before the call was answered., answers 5 "
        "(is_error) (synthetic)",
        "run-aborted cancelled",
    ]
    view = await shown.view(tenant.conversation("s"))
    assert view[0] == ("user: well?" if mode == Mode.PER_RUN else "user: weather?")


async def test_a_cancelled_stream_keeps_what_had_come_in(tenant: Tenant) -> None:
    assert (await logged("cancelled in the text of a stream", tenant, streams=True))[:5] == [
        "run-started per-service-call",
        "user: hi",
        "sends [2]",
        "failed, unknown, after: hel",
        "run-aborted cancelled",
    ]


async def test_a_stream_that_its_consumer_closes_is_a_cancelled_run(tenant: Tenant) -> None:
    assert (await logged("a stream that its consumer closes", tenant, streams=True))[:5] == [
        "run-started per-service-call",
        "user: hi",
        "sends [2]",
        "failed, unknown, after: hel",
        "run-aborted cancelled",
    ]


async def test_a_stream_that_its_consumer_drops_lets_go_of_the_conversation(tenant: Tenant) -> None:
    service = Service([[text("hel"), text("lo")], [text("fine")]])
    agent = record(Agent(service, name="a"), tenant)
    session = agent.create_session(session_id="s")

    async def drop() -> None:
        async for _ in agent.run("hi", session=session, stream=True):
            return

    problems: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, problem: problems.append(problem))
    await drop()
    chat = tenant.conversation("s")
    while (await chat.head()).runs:
        gc.collect()
        await asyncio.sleep(0.01)
    assert (await shown.events(chat))[-1] == "run-aborted cancelled"
    assert problems == []
    assert (await agent.run("again", session=session)).text == "fine"


async def test_a_refused_call_was_certainly_not_kept(tenant: Tenant) -> None:
    assert (await logged("the first service call is refused", tenant))[3:5] == ["failed, refused", "run-aborted failed"]


async def test_a_call_that_is_made_again_is_two_calls_in_the_log(tenant: Tenant) -> None:
    assert (await logged("a failed service call that is made again", tenant))[2:6] == [
        "sends [2]",
        "failed, unknown",
        "sends [2]",
        "call c1 weather",
    ]


async def test_of_two_agents_at_once_on_one_session_the_second_is_refused(tenant: Tenant) -> None:
    service, other = Service([Hangs()]), Service([[text("me too")], [text("now")]])
    first, second = record(Agent(service, name="a"), tenant), record(Agent(other, name="b"), tenant)
    session = first.create_session(session_id="s")
    task = asyncio.create_task(first.run("hi", session=session))
    await service.reached.wait()
    with pytest.raises(ConversationBusy, match="is open"):
        await second.run("hi", session=AgentSession(session_id="s"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await second.run("hi", session=session)


async def test_two_agents_take_turns_in_one_session(tenant: Tenant) -> None:
    first = record(Agent(Service([[text("from a")]]), name="a"), tenant)
    other = Service([[text("from b")]])
    second = record(Agent(other, name="b"), tenant)
    session = first.create_session(session_id="s")
    await first.run("one", session=session)
    await second.run("two", session=session)
    assert await shown.view(tenant.conversation("s")) == [
        "user: one",
        "assistant: from a",
        "user: two",
        "assistant: from b",
    ]
    assert other.requests == [[("user", ("text", "one")), ("assistant", ("text", "from a")), ("user", ("text", "two"))]]


async def test_a_handoff_ends_one_agents_loop_and_only_text_crosses_to_the_other(tenant: Tenant) -> None:
    """As handoff workflows do: history per service call, a tool that a filter answers, a session for each agent."""
    triage = Service([[text("I hand you over"), call("c1", "weather", OSLO)], [text("welcome back")]])
    expert = Service([[text("3 C")]])
    per_call = {"require_per_service_call_history_persistence": True}
    first = record(Agent(triage, name="triage", tools=tools(Stage()), middleware=[Replaces()], **per_call), tenant)
    second = record(Agent(expert, name="expert", **per_call), tenant)
    one, two = first.create_session(session_id="triage"), second.create_session(session_id="expert")
    answer = await first.run("weather?", session=one)
    crossing = [Message(m.role, [c for c in m.contents if c.type == "text"]) for m in answer.messages if m.text]
    await second.run([Message("user", ["weather?"]), *crossing], session=two)
    await first.run("thanks", session=one)
    assert await shown.view(tenant.conversation("expert")) == [
        "user: weather?",
        "assistant: I hand you over",
        "assistant: 3 C",
    ]
    assert await shown.view(tenant.conversation("triage")) == [
        "user: weather?",
        "assistant: I hand you over",
        "call c1 weather",
        "result c1 -> handed over",
        "user: thanks",
        "assistant: welcome back",
    ]
    assert triage.faults == expert.faults == []


@pytest.mark.parametrize("shares", [False, True])
async def test_a_sub_agent_is_a_conversation_of_its_own_that_names_its_parents_run(
    tenant: Tenant, shares: bool
) -> None:
    helper = record(Agent(Service([[text("3 C")], [text("4 C")]], strict=False), name="helper"), tenant)
    service = Service(
        [[call("c1", "helper", '{"task": "look"}'), call("c2", "helper", '{"task": "look"}')], [text("cold")]]
    )
    agent = record(Agent(service, name="boss", tools=[helper.as_tool(propagate_session=shares)]), tenant)
    await agent.run("weather?", session=agent.create_session(session_id="s"))
    chat = tenant.conversation("s")
    (parent,) = {event.run async for event in chat.read(limit=1)}
    others = [name async for name in tenant.conversations() if name != "s"]
    assert len(others) == 2
    for name in others:
        (started,) = [event async for event in tenant.conversation(name).read(types=["run-started"])]
        assert started.data["parent"] == {"conversation": "s", "run": parent}
        assert started.data["agent"] == "helper"
        assert (await shown.view(tenant.conversation(name)))[0] == "user: look"
    view = await shown.view(chat)
    assert view[:3] == ["user: weather?", "call c1 helper", "call c2 helper"]
    assert {line.partition(" -> ")[2] for line in view[3:5]} == {"3 C", "4 C"}


async def test_tools_that_the_provider_ran_are_plain_parts(tenant: Tenant) -> None:
    await play(scenario("tools that the provider ran itself"), tenant=tenant)
    view = await history.load(tenant.conversation("s"))
    assert view.open_calls == ()
    assert [part["type"] for part in view.messages[1].parts] == [
        "function_call",
        "code_interpreter_tool_call",
        "code_interpreter_tool_result",
        "text",
    ]


async def test_a_run_that_a_crashed_process_left_is_sealed_by_the_next(tenant: Tenant) -> None:
    chat = tenant.conversation("s")
    crashed = chat.run(lease=0.01)
    await crashed.__aenter__()
    await crashed._heartbeat.stop()
    await crashed.add(user("weather?"))
    async with crashed.service_call() as opened:
        await opened.complete(assistant(tool_call("c1", "weather", OSLO)))
    await asyncio.sleep(0.02)
    service = Service([[text("sorry")]])
    agent = record(Agent(service, name="a"), tenant)
    await agent.run("well?", session=agent.create_session(session_id="s"))
    assert (await shown.events(chat))[5:8] == [
        "run-aborted sealed",
        "result c1 -> No result: the run that made this call ended before the call was answered., answers 4 "
        "(is_error) (synthetic)",
        "run-started per-service-call",
    ]
    assert service.faults == []


async def test_of_two_that_find_a_crashed_run_at_once_one_goes_on(tenant: Tenant) -> None:
    chat = tenant.conversation("s")
    crashed = chat.run(lease=0.01)
    await crashed.__aenter__()
    await crashed._heartbeat.stop()
    await asyncio.sleep(0.02)
    services = [Service([[text("mine")]]), Service([[text("mine")]])]
    agents = [record(Agent(service, name="a"), tenant) for service in services]
    runs = [agent.run("hi", session=AgentSession(session_id="s")) for agent in agents]
    ends = await asyncio.gather(*runs, return_exceptions=True)
    assert sorted(type(end).__name__ for end in ends) == ["AgentResponse", "ConversationBusy"]


async def test_it_works_on_a_real_server(served: EventLog) -> None:
    tenant = served.tenant("t")
    played = await play(scenario("a loop of three calls"), tenant=tenant)
    assert played.views == played.held


async def test_a_loop_that_ends_early_leaves_the_filter_to_itself() -> None:
    bare = await play(
        Scenario("x", lambda: [[call("c1", "weather", OSLO)]], ["?"], tools, lambda stage: [Ends("weather")]),
        tenant=None,
    )
    assert bare.stage.ran == ["weather Oslo"]
