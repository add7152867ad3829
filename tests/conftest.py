"""Servers and logs for the tests, and which of them were used."""

from __future__ import annotations

import shutil
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from eventlog import EventLog
from tests import servers

pytest.register_assert_rewrite("eventlog.store.conformance")  # failures of the shipped suite tell as much as others

CASES = Path(__file__).parents[2] / "shared" / "cases" / "history.json"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", type=Path, action="append", help="golden scenarios to run; the handed ones by default")
    parser.addoption(
        "--server",
        choices=("auto", "embedded", "redis", "docker"),
        default="auto",
        help="the server for tests that need one: auto is the embedded one and redis-server where it is found",
    )


def pytest_report_header(config: pytest.Config) -> str:
    return "servers: memory store, " + ", ".join(servers.describe(config.getoption("server")))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    kinds = servers.kinds(metafunc.config.getoption("server"))
    if "server" in metafunc.fixturenames:
        metafunc.parametrize("server", kinds, indirect=True, scope="session")
    elif "log" in metafunc.fixturenames:
        metafunc.parametrize("log", ["memory", *kinds], indirect=True)


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Started]:
    with servers.Started(tmp_path_factory.mktemp("servers")) as started:
        yield started
    shutil.rmtree(started.home, ignore_errors=True)


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest, started: servers.Started) -> str:
    """The URL of a real server."""
    return started.url(request.param)


@pytest.fixture
async def log(request: pytest.FixtureRequest, started: servers.Started) -> AsyncIterator[EventLog]:
    """A fresh log: in memory, and on each real server."""
    url = "memory://" if request.param == "memory" else started.url(request.param)
    async with EventLog.open(url, namespace=f"t{uuid4().hex[:12]}") as opened:
        yield opened


@pytest.fixture
async def served(server: str) -> AsyncIterator[EventLog]:
    """A fresh log on a real server."""
    async with EventLog.open(server, namespace=f"t{uuid4().hex[:12]}") as opened:
        yield opened


@pytest.fixture
def free_port() -> int:
    """A TCP port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
