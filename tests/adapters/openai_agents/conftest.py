"""Sessions on every kind of log, and an SDK that sends no traces."""

from __future__ import annotations

from collections.abc import Callable

import agents
import pytest

from eventlog import EventLog
from gateway.adapters.openai_agents import EventLogSession

MakeSession = Callable[..., EventLogSession]


@pytest.fixture(scope="session", autouse=True)
def _no_traces() -> None:
    agents.set_tracing_disabled(True)


@pytest.fixture
def make(log: EventLog) -> MakeSession:
    """Makes a session of the tenant ``t``; each call makes another object, as another process would have it."""
    return lambda name="s", **options: EventLogSession(name, tenant=log.tenant("t"), **options)
