"""The real servers that tests run on: found or started, and named."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import redis
from testcontainers.core.container import DockerContainer

from eventlog.server.binary import find


def kinds(choice: str) -> list[str]:
    """The kinds of server to run on."""
    if choice != "auto":
        return [choice]
    return ["embedded", "redis"] if shutil.which("redis-server") else ["embedded"]


def describe(choice: str) -> list[str]:
    """The servers for a person to read."""
    return [_describe(kind) for kind in kinds(choice)] + (
        [] if "redis" in kinds(choice) or choice != "auto" else ["no redis-server on PATH"]
    )


def _describe(kind: str) -> str:
    if kind == "docker":
        return "docker (testcontainers)"
    return f"{kind} ({_executable(kind)})"


def _executable(kind: str) -> str:
    if kind == "redis":
        found = shutil.which("redis-server")
        assert found, "redis-server is not on PATH: install it, or choose --server=embedded"
        return found
    return str(find(None).path)


class Started:
    """The servers that this test session started; they end with it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._urls: dict[str, str] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Started:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def url(self, kind: str) -> str:
        """The server's URL; it is started the first time."""
        if kind not in self._urls:
            self._urls[kind] = self._container() if kind == "docker" else self._process(kind)
        return self._urls[kind]

    def _process(self, kind: str) -> str:
        socket = self.home / f"{kind}.sock"
        directory = self.home / kind
        directory.mkdir()
        command = [_executable(kind), "--port", "0", "--unixsocket", str(socket), "--save", ""]
        process = subprocess.Popen(
            [*command, "--appendonly", "yes", "--dir", str(directory)], stdout=subprocess.DEVNULL
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)
        client = self._stack.enter_context(redis.Redis(unix_socket_path=str(socket)))
        wait_for(client, command[0])
        return f"unix://{socket}"

    def _container(self) -> str:
        image = os.environ.get("EVENTLOG_TEST_IMAGE", "valkey/valkey:8")
        command = ["--appendonly", "yes"]  # the image's entry point takes options for the server
        container = self._stack.enter_context(DockerContainer(image).with_command(command).with_exposed_ports(6379))
        host, port = container.get_container_host_ip(), int(container.get_exposed_port(6379))
        wait_for(self._stack.enter_context(redis.Redis(host, port)), image)
        return f"redis://{host}:{port}"


def wait_for(client: redis.Redis, name: str) -> None:
    """Wait until the server answers."""
    deadline = time.monotonic() + 30
    while True:
        try:
            client.ping()
        except redis.ConnectionError:
            assert time.monotonic() < deadline, f"{name} did not start"
            time.sleep(0.01)
        else:
            return
