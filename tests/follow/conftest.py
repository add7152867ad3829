"""Servers that a follower must survive."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator

import pytest

from eventlog.server.binary import find
from tests import servers
from tests.loss.server import Server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "own" in metafunc.fixturenames:
        kinds = [kind for kind in servers.kinds(metafunc.config.getoption("server")) if kind != "docker"]
        metafunc.parametrize("own", kinds or ["embedded"], indirect=True)


@pytest.fixture
async def own(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    """A server that this test alone uses, and may kill. What it acknowledged is in its files."""
    found = shutil.which("redis-server") if request.param == "redis" else str(find(None).path)
    assert found, "redis-server is not on PATH"
    async with Server(found, fsync="always") as server:
        yield server
