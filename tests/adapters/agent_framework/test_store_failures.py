"""The log cannot be written in mid-run: the run stops with a clear error, or goes on with a loud mark."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from agent_framework import Agent, AgentSession, Message, chat_middleware, tool

from eventlog import EventLog, Mode, RunFenced, ServerUnavailable, Tenant
from eventlog.store.memory import MemoryStore
from gateway.adapters.agent_framework import RecordingFailed, UnrecordedWarning, record
from projections import history
from tests.adapters.agent_framework import shown
from tests.adapters.agent_framework.play import Stage, in_view
from tests.adapters.agent_framework.scenarios import OSLO, tools
from tests.adapters.agent_framework.service import Service, call, text

pytestmark = pytest.mark.anyio


class Failing(MemoryStore):
    """A store that is away from its ``n``-th append on, until it is told otherwise."""

    def __init__(self) -> None:
        super().__init__(partitions=1)
        self.good = 1 << 30
        self.back = 0
        """How many appends go well after one that failed."""

    async def append(self, append: Any) -> Any:
        if self.good <= 0:
            self.good += self.back
            raise ServerUnavailable("the server does not answer: start it, or give another URL")
        self.good -= 1
        return await super().append(append)


@pytest.fixture
def store() -> Failing:
    return Failing()


@pytest.fixture
async def failing(store: Failing) -> AsyncIterator[Tenant]:
    log = EventLog(store)
    yield log.tenant("t")
    await log.hub.close()


def agent_on(tenant: Tenant, **options: Any) -> tuple[Agent, Service, AgentSession]:
    service = Service([[call("c1", "weather", OSLO)], [text("3 C")], [text("bye")]], strict=False)
    agent = record(Agent(service, name="weather", tools=tools(Stage())), tenant, **options)
    return agent, service, agent.create_session(session_id="s")


STEPS = {
    2: "a service call",
    3: "a service's reply",
    4: "a tool's result",
    5: "a service call",
    6: "a service's reply",
    7: "the end of the run",
}
"""After so many appends of a run with one tool, which step is next: start and input come first."""


@pytest.mark.parametrize("good", STEPS)
@pytest.mark.parametrize("streams", [False, True])
async def test_stopping_tells_which_step_of_which_agent_could_not_be_recorded(
    failing: Tenant, store: Failing, good: int, streams: bool
) -> None:
    agent, _, session = agent_on(failing)
    store.good = good
    with pytest.raises(
        RecordingFailed, match=f"{STEPS[good]} of agent 'weather' could not be recorded: .*answer"
    ) as told:
        await (
            agent.run("weather?", session=session, stream=True).get_final_response()
            if streams
            else agent.run("weather?", session=session)
        )
    assert isinstance(told.value.__cause__, ServerUnavailable)


@pytest.mark.parametrize("good", [0, 1])
async def test_a_run_that_cannot_be_started_raises_the_logs_own_error(
    failing: Tenant, store: Failing, good: int
) -> None:
    agent, service, session = agent_on(failing)
    store.good = good
    with pytest.raises(ServerUnavailable, match="does not answer"):
        await agent.run("weather?", session=session)
    assert service.requests == []


@pytest.mark.parametrize("good", [0, 1, *STEPS])
async def test_going_on_warns_marks_the_session_and_later_the_log(failing: Tenant, store: Failing, good: int) -> None:
    agent, _, session = agent_on(failing, on_failure="go-on")
    store.good = good
    with pytest.warns(UnrecordedWarning, match="agent 'weather' goes on unrecorded in conversation 's'") as warned:
        assert (await agent.run("weather?", session=session)).text == "3 C"
    assert len(warned) == 1
    gap = session.state["agent_eventlog"]["unrecorded"]
    assert gap["since"] == STEPS.get(good, "the start of the run")
    store.good = 1 << 30
    await agent.run("thanks", session=AgentSession.from_dict(session.to_dict()))
    found = await shown.events(failing.conversation("s"))
    assert found.count("recording-gap") == 1
    assert found[-1] == "run-committed completed"


@pytest.mark.parametrize("fails", [False, True])
async def test_a_run_that_went_on_unrecorded_is_let_go(failing: Tenant, store: Failing, fails: bool) -> None:
    agent, service, session = agent_on(failing, on_failure="go-on")
    service.script[1:] = [ConnectionError("gone")] if fails else service.script[1:]
    store.good, store.back = 4, 1 << 30
    with pytest.warns(UnrecordedWarning), suppress(ConnectionError):
        await agent.run("weather?", session=session)
    assert len(service.script) == (0 if fails else 1)
    chat = failing.conversation("s")
    assert (await chat.head()).runs == ()
    assert (await shown.events(chat))[-1] == "run-aborted failed"


@pytest.mark.parametrize("good", STEPS)
@pytest.mark.parametrize("mode", list(Mode))
async def test_after_a_run_that_went_on_unrecorded_the_next_request_is_a_valid_one(
    failing: Tenant, store: Failing, mode: Mode, good: int
) -> None:
    agent, service, session = agent_on(failing, mode=mode, on_failure="go-on")
    store.good, store.back = good, 1 << 30
    with pytest.warns(UnrecordedWarning):
        await agent.run("weather?", session=session)
    service.strict, service.held = True, await in_view(failing.conversation("s"))
    assert (await agent.run("thanks", session=session)).text == "bye"
    assert service.faults == []
    assert (await history.load(failing.conversation("s"))).open_calls == ()


@pytest.mark.parametrize("on_failure", ["stop", "go-on"])
async def test_a_run_within_one_that_went_on_unrecorded_goes_on_so_too_or_is_refused(
    failing: Tenant, store: Failing, on_failure: Any
) -> None:
    @tool
    async def ask() -> str:
        """Runs another agent in the session of this one."""
        return (await inner.run("inner?", session=session)).text

    inner = record(Agent(Service([[text("inner")]]), name="inner"), failing, on_failure=on_failure)
    service = Service([[call("c1", "ask")], [text("outer")], [text("bye")]], strict=False)
    outer = record(Agent(service, name="outer", tools=[ask]), failing, on_failure="go-on")
    session = outer.create_session(session_id="s")
    store.good, store.back = 2, 1 << 30
    with pytest.warns(UnrecordedWarning) as warned:
        assert (await outer.run("outer?", session=session)).text == "outer"
    assert len(warned) == (2 if on_failure == "go-on" else 1)
    told = "inner" if on_failure == "go-on" else "Error: Function failed."
    assert ("tool", ("result", "c1", told)) in service.requests[1]
    assert session.state["agent_eventlog"]["unrecorded"]["since"] == "a service call"
    assert (await outer.run("and?", session=session)).text == "bye"
    assert (await shown.events(failing.conversation("s"))).count("recording-gap") == 1


async def test_a_tools_result_that_is_no_json_leaves_no_call_open(tenant: Tenant) -> None:
    @tool
    async def odd() -> str:
        """Returns what no JSON can hold."""
        return "\ud800"

    service = Service([[call("c1", "odd")], [text("well")], [text("fine")]], strict=False)
    agent = record(Agent(service, name="a", tools=[odd]), tenant, on_failure="go-on")
    session = agent.create_session(session_id="s")
    with pytest.warns(UnrecordedWarning, match="lone surrogate: give well-formed text"):
        await agent.run("odd?", session=session)
    service.strict, service.held = True, await in_view(tenant.conversation("s"))
    assert (await agent.run("and?", session=session)).text == "fine"
    assert (await shown.view(tenant.conversation("s")))[2].startswith("result c1 -> No result")


async def test_a_run_that_somebody_took_over_stops_although_it_may_go_on_unrecorded(failing: Tenant) -> None:
    service = Service([[text("hello")]])
    agent = record(Agent(service, name="a", middleware=[taken_over(failing)]), failing, on_failure="go-on")
    with pytest.raises(RecordingFailed, match="replaced") as told:
        await agent.run("hi", session=agent.create_session(session_id="s"))
    assert isinstance(told.value.__cause__, RunFenced)


def taken_over(tenant: Tenant) -> Any:
    @chat_middleware
    async def takes_over(context: Any, call_next: Any) -> None:
        chat = tenant.conversation("s")
        (run,) = (await chat.head()).runs
        await chat.resume(run.run, force=True).__aenter__()
        await call_next()

    return takes_over


async def test_a_content_that_is_no_json_stops_the_run_with_its_path(failing: Tenant) -> None:
    agent, _, session = agent_on(failing)
    odd = Message("user", ["hi"], additional_properties={"weight": float("nan")})
    with pytest.raises(ValueError, match="weight: nan is not a finite number"):
        await agent.run(odd, session=session)


async def test_a_failure_does_not_hide_the_error_of_the_run_itself(failing: Tenant, store: Failing) -> None:
    service = Service([ConnectionError("gone")])
    agent = record(Agent(service, name="a"), failing, Mode.PER_RUN)
    store.good = 3
    with pytest.raises(ConnectionError, match="gone") as told:
        await agent.run("hi", session=agent.create_session(session_id="s"))
    assert any("a failed service call of agent 'a' could not be recorded" in note for note in told.value.__notes__)
