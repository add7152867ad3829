"""How an agent is recorded, and which runs are being recorded just now."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal
from weakref import WeakKeyDictionary

from agent_framework import AgentSession

from eventlog import Mode, Tenant
from gateway.adapters.agent_framework.watch import Watch

OnFailure = Literal["stop", "go-on"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What ``record`` was told."""

    tenant: Tenant
    mode: Mode
    own_stack: bool
    on_failure: OnFailure
    lease: float
    labels: dict[str, str] = field(default_factory=dict)


active: WeakKeyDictionary[AgentSession, Watch] = WeakKeyDictionary()
"""The run that each session is in. A session is in one at most: runs are exclusive."""

enclosing: ContextVar[Watch | None] = ContextVar("agent_eventlog_enclosing_run", default=None)
"""Within a tool: the run that called it, for which a sub-agent works."""
