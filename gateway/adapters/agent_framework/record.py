"""One call that records an agent."""

from __future__ import annotations

from typing import TypeVar

from agent_framework import AgentMiddlewareLayer, BaseAgent, ChatMiddlewareLayer, HistoryProvider

from eventlog import InvalidInput, Mode, Tenant
from eventlog.conversation import DEFAULT_LEASE, check_lease, check_mode
from gateway.adapters.agent_framework.history_provider import EventLogHistory
from gateway.adapters.agent_framework.run_middleware import AgentRunRecorder
from gateway.adapters.agent_framework.settings import OnFailure, Settings

AgentT = TypeVar("AgentT", bound=BaseAgent)


def record(
    agent: AgentT,
    tenant: Tenant,
    mode: Mode | str = Mode.PER_SERVICE_CALL,
    *,
    own_stack: bool = False,
    on_failure: OnFailure = "stop",
    lease: float = DEFAULT_LEASE,
    labels: dict[str, str] | None = None,
) -> AgentT:
    """Record all runs of the agent in the tenant's log, and load its histories from there; the same agent.

    A session's id is its conversation. ``mode`` says when what a run did enters the history: with
    each completed service call, or with the end of the run. ``own_stack``: the agent's chat client
    is a stack of your own and is left as it is; put a ``ServiceCallRecorder`` into it next to the
    service. What cannot be written to the log stops the run (``on_failure="stop"``), or the run
    goes on unrecorded (``"go-on"``): a warning, a mark in the session's state, and an event once
    the log can be written again say so. Raises ``InvalidInput`` for an agent that cannot be recorded.
    """
    name = agent.name or agent.id
    if on_failure not in ("stop", "go-on"):
        raise InvalidInput(f"on_failure={on_failure!r}: choose 'stop' or 'go-on'")
    if not isinstance(agent, AgentMiddlewareLayer):
        raise InvalidInput(f"agent {name!r} is a {type(agent).__name__} and runs no middleware: use Agent(…)")
    client = getattr(agent, "client", None)
    if not own_stack and not isinstance(client, ChatMiddlewareLayer):
        raise InvalidInput(
            f"the chat client of agent {name!r} is a {type(client).__name__} and runs no middleware: "
            "give it ChatMiddlewareLayer, or own_stack=True"
        )
    for provider in agent.context_providers:
        if isinstance(provider, EventLogHistory):
            raise InvalidInput(f"agent {name!r} is recorded already: record it once")
        if isinstance(provider, HistoryProvider) and provider.load_messages:
            raise InvalidInput(
                f"agent {name!r} loads its history from {provider.source_id!r} already: take that provider out, or "
                "give it load_messages=False"
            )
    settings = Settings(tenant, check_mode(mode), own_stack, on_failure, check_lease(lease), dict(labels or {}))
    agent.context_providers.append(EventLogHistory(tenant, injects=not own_stack))
    agent.middleware = [*(agent.middleware or []), AgentRunRecorder(settings)]
    return agent
