"""Playing a scripted conversation through the real framework, recorded or not."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_framework import Agent, AgentResponse, AgentSession
from agent_framework.exceptions import AgentFrameworkException

from eventlog import Conversation, Mode, Tenant
from gateway.adapters.agent_framework import record
from projections import history
from tests.adapters.agent_framework.service import Reply, Service, Spoken

SESSION = "s"
Say = str | Callable[["Played"], Any]
"""What a caller says: a text, or what it makes of what was played so far."""


@dataclass
class Turn:
    """One run of the agent."""

    say: Say
    until: str = "end"
    """``end``; ``cancel``: when a reply or tool hangs; ``close``: the consumer closes the stream after one update."""


@dataclass
class Scenario:
    name: str
    script: Callable[[], Sequence[Reply]]
    turns: Sequence[Turn | str]
    tools: Callable[[Stage], Sequence[Any]] = lambda stage: ()
    middleware: Callable[[Stage], Sequence[Any]] = lambda stage: ()
    providers: Callable[[], Sequence[Any]] = lambda: ()
    limits: dict[str, Any] = field(default_factory=dict)
    streams: bool | None = None
    """None: it is played both ways."""
    per_call: bool = True
    """Whether the framework can play it with its own history kept per service call."""
    stored: bool = True
    """Whether it can be played on a service that keeps the conversation."""


class Stage:
    """What tools and middleware of a scenario may need."""

    def __init__(self) -> None:
        self.hanging = asyncio.Event()
        """Set by a tool that hangs."""
        self.ran: list[str] = []
        """The tools that ran, in order."""


@dataclass
class Played:
    service: Service
    stage: Stage
    session: AgentSession
    outcomes: list[Any] = field(default_factory=list)
    """Of each turn, what its caller saw."""
    responses: list[AgentResponse[Any] | None] = field(default_factory=list)
    held: list[list[Spoken]] = field(default_factory=list)
    """Of each turn, what the service held after it."""
    views: list[list[Spoken]] = field(default_factory=list)
    """Of each turn, what the log's service view held after it."""


async def play(
    scenario: Scenario,
    *,
    tenant: Tenant | None,
    mode: Mode = Mode.PER_SERVICE_CALL,
    streams: bool = False,
    per_call: bool = False,
    stores: bool = False,
    strict: bool = True,
) -> Played:
    stage = Stage()
    service = Service(
        scenario.script(), stores=stores, strict=strict, function_invocation_configuration=scenario.limits or None
    )
    agent: Agent[Any] = Agent(
        service,
        name="agent",
        tools=list(scenario.tools(stage)),
        middleware=list(scenario.middleware(stage)),
        context_providers=list(scenario.providers()),
        require_per_service_call_history_persistence=per_call,
    )
    if tenant is not None:
        record(agent, tenant, mode)
    played = Played(service, stage, agent.create_session(session_id=SESSION))
    for one in scenario.turns:
        turn = one if isinstance(one, Turn) else Turn(one)
        before = list(service.held)
        said = turn.say if isinstance(turn.say, str) else turn.say(played)
        outcome, failed = await _turn(agent, played, turn, said, streams)
        if failed and mode == Mode.PER_RUN:
            service.held = before  # what a run did counts when it ends well, or not at all
        played.outcomes.append(outcome)
        played.held.append(list(service.held))
        if tenant is not None:
            played.views.append(await in_view(tenant.conversation(SESSION)))
    return played


async def _turn(agent: Agent[Any], played: Played, turn: Turn, said: Any, streams: bool) -> tuple[Any, bool]:
    updates: list[Any] = []

    async def run() -> AgentResponse[Any] | None:
        if not streams:
            return await agent.run(said, session=played.session)
        stream = agent.run(said, session=played.session, stream=True)
        async with stream:
            async for update in stream:
                updates.append(update.to_dict())
                if turn.until == "close":
                    break
        if turn.until == "close":
            return None
        return await stream.get_final_response()

    task = asyncio.create_task(run())
    if turn.until == "cancel":
        waits = [asyncio.create_task(event.wait()) for event in (played.service.reached, played.stage.hanging)]
        await asyncio.wait([task, *waits], return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        task.cancel()
        played.service.reached.clear()
        played.stage.hanging.clear()
    try:
        response = await task
    except (AgentFrameworkException, asyncio.CancelledError, RuntimeError) as error:
        played.responses.append(None)
        return stable({"raised": f"{type(error).__name__}: {error}", "updates": updates}), True
    played.responses.append(response)
    if response is None:
        return stable({"closed": True, "updates": updates}), True
    return stable({"response": response.to_dict(), "updates": updates}), False


def stable(document: Any) -> Any:
    """The document with the random ids of the framework numbered by their first appearance."""
    names: dict[str, str] = {}
    written = json.dumps(document, default=str, sort_keys=True)
    found = re.sub(r"af-call-[0-9a-f]{32}", lambda match: names.setdefault(match[0], f"call-{len(names)}"), written)
    return json.loads(found)


async def in_view(conversation: Conversation) -> list[Spoken]:
    """What the log's service view says, in the service's words."""
    view = await history.load(conversation)
    return [(_role(message), _read(part)) for message in view.messages for part in message.parts]


def _role(message: Any) -> str:
    return ((message.extra or {}).get("agent_framework") or {}).get("role", message.role)


def _read(part: dict[str, Any]) -> tuple[Any, ...]:
    kind = part["type"]
    if kind in ("text", "reasoning"):
        return (kind, part["content"])
    if kind == "tool_call":
        return ("call", part["id"], part["name"], part.get("arguments"))
    if kind == "tool_call_response":
        return ("result", part["id"], part["response"])
    if kind == "blob":
        return ("data", f"data:{part['mime_type']};base64,{part['content']}")
    if kind == "uri":
        return ("uri", part["uri"])
    return (kind, part["id"]) if kind.startswith("function_approval") else (kind,)
