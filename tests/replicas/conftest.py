"""A primary with a replica, a way to it that can be moved, and how often chance is tried."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator

import pytest

from eventlog.server.binary import find
from tests import servers
from tests.loss.server import Server
from tests.loss.switch import Switch

TRIES = int(os.environ.get("EVENTLOG_REPLICA_TRIES", "10"))
"""How often a promotion is tried."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "executable" in metafunc.fixturenames:
        kinds = [kind for kind in servers.kinds(metafunc.config.getoption("server")) if kind != "docker"]
        metafunc.parametrize("executable", kinds or ["embedded"], indirect=True)


@pytest.fixture
def executable(request: pytest.FixtureRequest) -> str:
    """A server's executable: the embedded one's, and redis-server where it is found."""
    found = shutil.which("redis-server") if request.param == "redis" else str(find(None).path)
    assert found, "redis-server is not on PATH"
    return found


@pytest.fixture
async def primary(executable: str) -> AsyncIterator[Server]:
    async with Server(executable) as server:
        yield server


@pytest.fixture
async def replica(executable: str) -> AsyncIterator[Server]:
    async with Server(executable) as server:
        yield server


@pytest.fixture
async def switch(primary: Server) -> AsyncIterator[Switch]:
    """The address that clients use: of the primary, until it is moved."""
    async with Switch(primary.socket) as switch:
        yield switch
