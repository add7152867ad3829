"""Processes that are killed, and approvals that are answered in another one: on a real server."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

import pytest
from agent_framework import AgentSession, Content, Message

from eventlog import ConversationBusy, EventLog, Mode
from projections import recovery
from tests.adapters.agent_framework import shown
from tests.adapters.agent_framework.other_process import LEASE, agent_on
from tests.adapters.agent_framework.service import Service, text

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]
NO_RESULT = "No result: the run that made this call ended before the call was answered."


NAMESPACES: WeakKeyDictionary[EventLog, str] = WeakKeyDictionary()


@pytest.fixture
async def served(server: str) -> AsyncIterator[EventLog]:
    """A fresh log on a real server, whose namespace can be told to another process."""
    namespace = f"t{uuid4().hex[:12]}"
    async with EventLog.open(server, namespace=namespace) as log:
        NAMESPACES[log] = namespace
        yield log


def another_process(log: EventLog, url: str, mode: Mode, place: str, *, stores: bool = False) -> Any:
    arguments = (url, NAMESPACES[log], mode.value, "stores" if stores else "-", place)
    program = (sys.executable, "-m", "tests.adapters.agent_framework.other_process")
    return asyncio.create_subprocess_exec(*program, *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE)


async def in_another_process(log: EventLog, url: str, mode: Mode, place: str, *, stores: bool) -> tuple[int, str]:
    """Its exit code, and what it printed. Returns when its run, if it left one, may be taken for dead."""
    process = await another_process(log, url, mode, place, stores=stores)
    out, _ = await process.communicate()
    await expired(log)
    assert process.returncode is not None
    return process.returncode, out.decode()


async def expired(log: EventLog) -> None:
    """Returns when no run of the session may still be alive."""
    chat = log.tenant("t").conversation("s")
    while any(not left.expired for left in (await recovery.inspect(chat)).runs):
        await asyncio.sleep(0.02)


BEFORE = ["run-started per-service-call", "user: Oslo?", "sends [2]", "call c1 weather", "completed in conversation-1"]


@pytest.mark.parametrize("place", ["tool", "call"])
async def test_after_a_kill_the_service_is_gone_on_with_where_the_log_last_saw_it(
    served: EventLog, server: str, place: str
) -> None:
    code, _ = await in_another_process(served, server, Mode.PER_SERVICE_CALL, place, stores=True)
    assert code == -signal.SIGKILL
    service = Service([[text("fine")]], stores=True, strict=False)
    service.conversations["conversation-1"] = [("user", ("text", "Oslo?")), ("assistant", ("call", "c1", "weather"))]
    agent = agent_on(served, "per-service-call", service, place)
    session = agent.create_session(session_id="s")
    await agent.run("well?", session=session)
    found = await shown.events(served.tenant("t").conversation("s"))
    if place == "tool":
        assert service.continued == ["conversation-1"]
        assert service.requests == [
            [  # what the service has not seen, and no more
                ("tool", ("result", "c1", NO_RESULT)),
                ("user", ("text", "well?")),
            ]
        ]
        assert found == [
            *BEFORE,
            "run-aborted sealed",
            f"result c1 -> {NO_RESULT}, answers 4 (is_error) (synthetic)",
            "run-started per-service-call",
            "user: well?",
            "sends [7, 9], continues conversation-1",
            "assistant: fine",
            "completed in conversation-1",
            "run-committed completed",
        ]
    else:  # whether the service has the result cannot be known: it is told the whole history anew
        assert service.continued == [None]
        assert [role for role, _ in service.requests[0]] == ["user", "assistant", "tool", "user"]
        assert found[5:12] == [
            "result c1 -> 3 C in Oslo, answers 4",
            "sends [6], continues conversation-1",
            "run-aborted sealed",
            "run-started per-service-call",
            "user: well?",
            "sends [6, 10]",
            "assistant: fine",
        ]
    assert session.service_session_id == "conversation-1"


@pytest.mark.parametrize("mode", list(Mode))
async def test_after_a_kill_the_history_is_what_the_mode_says_and_nothing_is_lost_from_the_log(
    served: EventLog, server: str, mode: Mode
) -> None:
    code, _ = await in_another_process(served, server, mode, "call", stores=False)
    assert code == -signal.SIGKILL
    chat = served.tenant("t").conversation("s")
    assert await shown.view(chat) == (["user: Oslo?", "call c1 weather"] if mode == Mode.PER_SERVICE_CALL else [])
    service = Service([[text("fine")]])
    agent = agent_on(served, mode.value, service, "-")
    service.held = (
        []
        if mode == Mode.PER_RUN
        else [("user", ("text", "Oslo?")), ("assistant", ("call", "c1", "weather", '{"city": "Oslo"}'))]
    )
    await agent.run("well?", session=agent.create_session(session_id="s"))
    assert service.faults == []
    assert await shown.view(chat) == (
        ["user: Oslo?", "call c1 weather", "result c1 -> 3 C in Oslo", "user: well?", "assistant: fine"]
        if mode == Mode.PER_SERVICE_CALL
        else ["user: well?", "assistant: fine"]
    )
    assert (await shown.events(chat))[5:8] == ["result c1 -> 3 C in Oslo, answers 4", "sends [6]", "run-aborted sealed"]


async def test_an_approval_that_is_asked_for_in_one_process_is_answered_in_another(
    served: EventLog, server: str
) -> None:
    code, out = await in_another_process(served, server, Mode.PER_SERVICE_CALL, "asks", stores=False)
    assert code == 0
    kept: dict[str, Any] = json.loads(out)
    service = Service([[text("done")], [text("bye")]], strict=False)
    agent = agent_on(served, "per-service-call", service, "here")
    answers = [Content.from_dict(request).to_function_approval_response(True) for request in kept["requests"]]
    await agent.run(Message("user", answers), session=AgentSession.from_dict(kept["session"]))
    await agent.run("thanks", session=agent.create_session(session_id="s"))  # a session object of its own again
    assert (await shown.events(served.tenant("t").conversation("s")))[3:12] == [
        "call c1 book",
        "completed",
        "approval-requested 4",
        "run-committed completed",
        "run-started per-service-call",
        "approval-resolved approved 4",
        "result c1 -> booked Oslo in here, answers 4",
        "sends [10]",
        "assistant: done",
    ]
    assert [role for role, _ in service.requests[1]] == ["user", "assistant", "tool", "assistant", "user"]


async def test_while_another_process_is_at_work_a_session_is_taken_and_once_it_is_killed_it_is_free(
    served: EventLog, server: str
) -> None:
    process = await another_process(served, server, Mode.PER_SERVICE_CALL, "hangs")
    try:
        assert await process.stdout.readline() == b"hanging\n"
        service = Service([[text("fine")]])
        agent = agent_on(served, "per-service-call", service, "-")
        session = agent.create_session(session_id="s")
        chat = served.tenant("t").conversation("s")
        (taken,) = (await chat.head()).runs
        lasts = await chat.store.now_ms() + int(3 * LEASE * 1000)
        while await chat.store.now_ms() < lasts:  # alive, it keeps its run for longer than a lease
            with pytest.raises(ConversationBusy, match="is open"):
                await agent.run("well?", session=session)
            await asyncio.sleep(0.05)
        assert (await chat.head()).runs[0].run == taken.run
        assert service.requests == []
    finally:
        process.kill()
        await process.wait()
    await expired(served)
    service.held = [("user", ("text", "Oslo?")), ("assistant", ("call", "c1", "weather", '{"city": "Oslo"}'))]
    assert (await agent.run("well?", session=session)).text == "fine"
    assert service.faults == []
    assert "run-aborted sealed" in await shown.events(chat)
