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


_innermost: WeakKeyDictionary[AgentSession, Watch] = WeakKeyDictionary()
"""The run that each session is in; the one within it, where a tool runs an agent in its own run's session."""

enclosing: ContextVar[Watch | None] = ContextVar("agent_eventlog_enclosing_run", default=None)
"""Within a tool: the run that called it, for which a sub-agent works."""


def active(session: AgentSession | None) -> Watch | None:
    """The run that this session is in just now, as seen from here: within a tool, the one that the tool runs."""
    last = watch = innermost(session)
    caller = enclosing.get()
    while watch is not None and watch.parent is not caller:
        watch = watch.around
    return watch or last


def innermost(session: AgentSession | None) -> Watch | None:
    """The run that began last of those that this session is in."""
    return None if session is None else _innermost.get(session)


def enter(watch: Watch) -> None:
    """Its session is in this run from now on. Nothing when it is already."""
    last = inner = _innermost.get(watch.session)
    while inner is not None and inner is not watch:
        inner = inner.around
    if inner is None:
        watch.around, watch.over = last, False
        _innermost[watch.session] = watch


def leave(watch: Watch) -> None:
    """Its session is in this run no longer, and again in the one around it."""
    watch.over = True
    inner = _innermost.get(watch.session)
    if inner is watch and watch.around is None:
        del _innermost[watch.session]
    elif inner is watch and watch.around is not None:
        _innermost[watch.session] = watch.around
    while inner is not None and inner is not watch:
        if inner.around is watch:
            inner.around = watch.around
        inner = inner.around
