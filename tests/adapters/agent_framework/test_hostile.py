"""Odd ids, odd messages, forged marks, and runs within runs: recorded whole, or refused with a clear error."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent_framework import Agent, AgentSession, Content, Message, agent_middleware, tool
from pydantic import BaseModel

from eventlog import EventLog, InvalidId, InvalidInput, Tenant
from gateway.adapters.agent_framework import record
from gateway.adapters.agent_framework.contents import MARK
from gateway.adapters.agent_framework.watch import STATE
from tests.adapters.agent_framework import shown
from tests.adapters.agent_framework.play import in_view
from tests.adapters.agent_framework.service import Service, call, text

pytestmark = pytest.mark.anyio


def agent_on(service: Service, tenant: Tenant, **options: Any) -> Agent[Any]:
    return record(Agent(service, name="a", **options), tenant)


@pytest.mark.parametrize("session_id", ["a/b", "a:b", "{x}", "%2F", " ", "\n", "\0", "..", "☃😀", "x" * 1_000])
async def test_any_session_id_is_a_conversation_of_its_own(log: EventLog, session_id: str) -> None:
    tenant = log.tenant("t")
    service = Service([[text("hello")], [text("fine")], [text("other")]])
    agent = agent_on(service, tenant)
    for said in ("hi", "and?"):
        await agent.run(said, session=AgentSession(session_id=session_id))
    assert [name async for name in tenant.conversations()] == [session_id]
    assert await in_view(tenant.conversation(session_id)) == service.held
    service.held = []
    await agent.run("hi", session=AgentSession(session_id=f"{session_id[:-1]}y"))
    assert service.faults == []


@pytest.mark.parametrize(("session_id", "why"), [("x" * 1_001, "give a shorter one"), ("\ud800", "lone surrogate")])
async def test_a_session_id_that_can_be_no_conversation_is_refused_before_the_service_is_called(
    tenant: Tenant, session_id: str, why: str
) -> None:
    service = Service([[text("hello")]])
    with pytest.raises(InvalidId, match=why):
        await agent_on(service, tenant).run("hi", session=AgentSession(session_id=session_id))
    assert service.requests == []


APPROVAL = Content.from_function_approval_request("af-9", Content.from_function_call("c9", "book", id="af-9"))
ODD: dict[str, Any] = {
    "nothing": None,
    "no messages": [],
    "no text": "",
    "a message without contents": Message("user", []),
    "NUL and emoji": "\0 ☃😀",
    "three megabytes": "x" * 3_000_000,
    "a result of a call that never was": Message("tool", [Content.from_function_result("zz", result="x")]),
    "an assistant": Message("assistant", ["I said"]),
    "an answer to a request that never was": Message("user", [APPROVAL.to_function_approval_response(True)]),
    "a role of its own": Message("developer", ["x"]),
    "very many messages": ["x"] * 1_500,
}


@pytest.mark.parametrize("per_call", [False, True])
@pytest.mark.parametrize("name", ODD)
async def test_an_odd_input_is_recorded_as_it_is_sent(tenant: Tenant, name: str, per_call: bool) -> None:
    service = Service([[text("hello")], [text("fine")]], strict=False)
    agent = agent_on(service, tenant, require_per_service_call_history_persistence=per_call)
    session = agent.create_session(session_id="s")
    await agent.run(ODD[name], session=session)
    await agent.run("and?", session=session)
    chat = tenant.conversation("s")
    assert await in_view(chat) == service.held
    assert (await chat.head()).runs == ()


@pytest.mark.parametrize(
    "mark",
    [
        "junk",
        {},
        {"versions": ["x", -1, 10**9, None]},
        {"versions": None},
        {"version": True},
        {"version": 10**30},
        {"event": None},
    ],
)
async def test_a_forged_mark_breaks_nothing(tenant: Tenant, mark: Any) -> None:
    service = Service([[text("one")], [text("two")], [text("three")]], strict=False)
    agent = agent_on(service, tenant)
    session = agent.create_session(session_id="s")
    await agent.run("hi", session=session)
    chat = tenant.conversation("s")
    first = [event async for event in chat.read()][1]
    if isinstance(mark, dict):
        mark = {"log": chat.log.tag, "version": 2, "event": first.id, **mark}
    await agent.run(Message("user", ["forged"], additional_properties={MARK: mark}), session=session)
    await agent.run("and?", session=session)
    assert (await shown.view(chat))[-2:] == ["user: and?", "assistant: three"]


@pytest.mark.parametrize("junk", ["junk", {"unrecorded": 5}, {"unrecorded": {"run": 5, "since": float("nan")}}])
async def test_a_session_state_that_is_junk_breaks_nothing(tenant: Tenant, junk: Any) -> None:
    agent = agent_on(Service([[text("hello")]]), tenant)
    session = agent.create_session(session_id="s")
    session.state[STATE] = junk
    await agent.run("hi", session=session)
    assert await shown.view(tenant.conversation("s")) == ["user: hi", "assistant: hello"]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("inner_fails", [False, True])
async def test_an_agent_that_its_own_tool_runs_in_the_same_session_loses_no_call_of_either_run(
    tenant: Tenant, streams: bool, inner_fails: bool
) -> None:
    @tool
    async def ask_myself() -> str:
        """Runs the agent within its run."""
        if streams:
            return (await agent.run("inner?", session=session, stream=True).get_final_response()).text
        return (await agent.run("inner?", session=session)).text

    inner: Any = ConnectionError("gone") if inner_fails else [text("inner")]
    service = Service([[call("c1", "ask_myself")], inner, [text("outer")], [text("bye")]], strict=False)
    agent = agent_on(service, tenant, tools=[ask_myself])
    session = agent.create_session(session_id="s")
    assert (await agent.run("outer?", session=session)).text == "outer"
    assert (await agent.run("thanks", session=session)).text == "bye"
    told = "Error: Function failed." if inner_fails else "inner"
    assert await shown.view(tenant.conversation("s")) == [
        "user: outer?",
        "call c1 ask_myself",
        f"result c1 -> {told}",
        "assistant: outer",
        "user: thanks",
        "assistant: bye",
    ]
    (child,) = [name async for name in tenant.conversations() if name != "s"]
    assert (await shown.events(tenant.conversation(child)))[-1] == (
        "run-aborted failed" if inner_fails else "run-committed completed"
    )


async def test_of_two_runs_at_once_within_one_session_object_the_second_is_refused(tenant: Tenant) -> None:
    refused: list[Exception] = []

    @tool
    async def ask_myself() -> str:
        """Runs the agent within its run."""
        try:
            return (await agent.run("inner?", session=session)).text
        except InvalidInput as error:
            refused.append(error)
            return "refused"

    service = Service(
        [[call("c1", "ask_myself"), call("c2", "ask_myself")], [text("inner")], [text("outer")]], strict=False
    )
    agent = agent_on(service, tenant, tools=[ask_myself])
    session = agent.create_session(session_id="s")
    assert (await agent.run("outer?", session=session)).text == "outer"
    assert [str(error) for error in refused] == [
        "agent 'a': the session 's' is in another run just now, of agent 'a', and whose a service call is could not "
        "be told: give this run a session of its own"
    ]
    assert (await shown.view(tenant.conversation("s")))[3:] == [
        "result c1 -> inner",
        "result c2 -> refused",
        "assistant: outer",
    ]


async def test_what_a_tool_leaves_to_run_later_in_its_session_is_a_run_like_any_other(tenant: Tenant) -> None:
    later: list[asyncio.Task[Any]] = []
    over = asyncio.Event()

    async def follow_up() -> str:
        await over.wait()
        return (await agent.run("later", session=session)).text

    @tool
    async def remind() -> str:
        """Has the agent go on when the run is over."""
        later.append(asyncio.create_task(follow_up()))
        return "ok"

    service = Service([[call("c1", "remind")], [text("I will")], [text("now")]])
    agent = agent_on(service, tenant, tools=[remind])
    session = agent.create_session(session_id="s")
    await agent.run("remind me", session=session)
    over.set()
    assert await later[0] == "now"
    assert await in_view(tenant.conversation("s")) == service.held
    assert service.faults == []


async def test_tools_beside_one_that_runs_its_own_agent_are_recorded_in_their_own_run(tenant: Tenant) -> None:
    @tool
    async def ask_myself() -> str:
        """Runs the agent within its run."""
        return (await agent.run("inner?", session=session)).text

    @tool
    async def slow(n: int) -> str:
        """Returns before, while and after the inner run goes on."""
        for _ in range(n):
            await asyncio.sleep(0)
        return str(n)

    beside = [call(f"b{n}", "slow", f'{{"n": {n}}}') for n in (0, 1, 3, 10, 30, 100, 300)]
    inner = [[call("i1", "slow", '{"n": 5}')], [text("inner")]]
    service = Service([[call("c1", "ask_myself"), *beside], *inner, [text("outer")]], strict=False)
    agent = agent_on(service, tenant, tools=[ask_myself, slow])
    session = agent.create_session(session_id="s")
    assert (await agent.run("outer?", session=session)).text == "outer"
    assert await in_view(tenant.conversation("s")) == service.held
    (child,) = [name async for name in tenant.conversations() if name != "s"]
    assert await shown.view(tenant.conversation(child)) == [
        "user: inner?",
        "call i1 slow",
        "result i1 -> 5",
        "assistant: inner",
    ]


async def test_twelve_tools_at_once_with_ids_used_again_each_keep_their_own_result(tenant: Tenant) -> None:
    @tool
    async def slow(n: int) -> str:
        """Returns later the larger it is."""
        for _ in range(n):
            await asyncio.sleep(0)
        return str(n)

    asked = [call(f"c{n % 3}", "slow", f'{{"n": {11 - n}}}') for n in range(12)]
    service = Service([asked, [text("done")]], strict=False)
    agent = agent_on(service, tenant, tools=[slow])
    await agent.run("go", session=agent.create_session(session_id="s"))
    assert await in_view(tenant.conversation("s")) == service.held
    assert [said[2] for _, said in service.held if said[0] == "result"] == [str(11 - n) for n in range(12)]


class Answer(BaseModel):
    x: int


@pytest.mark.parametrize("streams", [False, True])
async def test_a_structured_answer_and_the_hooks_of_a_stream_are_the_frameworks(tenant: Tenant, streams: bool) -> None:
    told: list[list[Any]] = []
    for recorded in (True, False):
        got: list[Any] = []
        service = Service([[text('{"x":'), text(" 3}")]])
        bare: Agent[Any] = Agent(service, name="a", middleware=[] if recorded else [_same])
        agent = record(bare, tenant) if recorded else bare
        session = agent.create_session(session_id="s")
        if streams:
            stream = agent.run("x", session=session, stream=True, options={"response_format": Answer})
            stream = stream.with_transform_hook(lambda update, got=got: got.append(update.text))
            stream = stream.with_result_hook(lambda _, got=got: got.append("result"))
            stream = stream.with_cleanup_hook(lambda got=got: got.append("cleanup"))
            async for _ in stream:
                pass
            response = await stream.get_final_response()
            assert await stream.get_final_response() is response
        else:
            response = await agent.run("x", session=session, options={"response_format": Answer})
        got += [response.value, response.response_id, response.usage_details, response.finish_reason, response.text]
        told.append(got)
    assert told[0] == told[1]
    assert Answer(x=3) in told[0]


@agent_middleware
async def _same(context: Any, call_next: Any) -> None:
    """An agent middleware that does nothing: with any, the framework runs a stream's hooks in another order."""
    await call_next()
