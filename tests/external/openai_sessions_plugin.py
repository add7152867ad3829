"""Runs the session tests that the OpenAI Agents SDK publishes against our session.

A pytest plugin, to be used inside an unpacked source distribution of the SDK: see ``test_openai_sessions.py``.
Its ``RedisSession`` is replaced by ours, and each of its fake clients by a client of a
database of its own on a real server. What cannot apply to us is left out: ``openai_sessions_left_out.txt``.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import agents.extensions.memory
import agents.extensions.memory.redis_session
import fakeredis.aioredis
import pytest
from redis.asyncio import Redis

from gateway.adapters.openai_agents import EventLogSession
from gateway.adapters.openai_agents.place import url_of

LEFT_OUT = Path(__file__).with_name("openai_sessions_left_out.txt")
SOCKET = os.environ.get("EVENTLOG_TEST_SOCKET", "")
"""The socket of a server with many databases."""

_databases = itertools.count()


def left_out() -> dict[str, str]:
    """The tests that cannot apply to us, each with its reason."""
    lines = [line for line in LEFT_OUT.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, _, reason in (line.partition(":") for line in lines)}


def client(*arguments: Any, **options: Any) -> Redis:
    """In place of a fake client: one of a database that nobody has used."""
    return Redis(unix_socket_path=SOCKET, db=next(_databases), decode_responses=options.get("decode_responses", False))


class RedisSession(EventLogSession):
    """Ours under the name that the tests expect, with the two attributes of theirs that tell of clients."""

    def __init__(self, session_id: str, **options: Any) -> None:
        super().__init__(session_id, **options)
        self._redis, self._owns_client = options.get("redis_client"), False

    @classmethod
    def from_url(cls, session_id: str, *, url: str, **options: Any) -> RedisSession:
        """A test may have put a client of its own in place of the one for the URL."""
        made = agents.extensions.memory.redis_session.redis.from_url(url)
        session = super().from_url(session_id, url=url_of(made), **options)
        assert isinstance(session, RedisSession)
        session._redis, session._owns_client = made, True
        return session


def pytest_configure(config: pytest.Config) -> None:
    if not SOCKET:
        raise pytest.UsageError("EVENTLOG_TEST_SOCKET names no server: start the tests by test_openai_sessions.py")
    fakeredis.aioredis.FakeRedis = client  # type: ignore[assignment, misc]
    agents.extensions.memory.redis_session.RedisSession = RedisSession  # type: ignore[assignment, misc]
    agents.extensions.memory.RedisSession = RedisSession  # type: ignore[attr-defined]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = left_out()
    found = {item.originalname for item in items if isinstance(item, pytest.Function)}
    unknown = set(names) - found
    if unknown and len(found) > 1:
        raise pytest.UsageError(f"{LEFT_OUT.name} names tests that are not there: {', '.join(sorted(unknown))}")
    out = [item for item in items if isinstance(item, pytest.Function) and item.originalname in names]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]
