"""Real servers that a test may stop, kill, demote and put on other files; each in a directory of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import redis.exceptions
from redis.asyncio import Redis

PATIENCE = 30.0
_AGAIN = 0.01


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """One server. Its address stays the same however often it is started again.

    ``files`` is its data directory. It listens on a unix socket, and on ``port`` for replicas of it.
    """

    def __init__(self, executable: str, *, fsync: str = "everysec", **options: str) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="loss"))  # short: a socket's path has at most 107 bytes
        self.files = self.home / "data"
        self.files.mkdir()
        self.socket = self.home / "s"
        self.url = f"unix://{self.socket}"
        self.port = free_port()
        self._executable = executable
        self._options = {"appendfsync": fsync, **options}
        self._process: subprocess.Popen[bytes] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        shutil.rmtree(self.home)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start it on what is in ``files``, and wait until it has read that."""
        self._launch()
        await self._answers()

    def _launch(self) -> None:
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "unixsocket": str(self.socket),
            "dir": str(self.files),
            "appendonly": "yes",
            "save": "",
            "repl-diskless-sync": "yes",
            "repl-diskless-sync-delay": "0",
            **self._options,
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        with (self.home / "server.log").open("ab") as log:
            self._process = subprocess.Popen([self._executable, *words], stdout=log, stderr=log)

    async def stop(self) -> None:
        """End it in order: all that it acknowledged is in its files."""
        assert self._process is not None
        self._process.terminate()
        await anyio.to_thread.run_sync(self._process.wait)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Redis]:
        async with Redis(unix_socket_path=str(self.socket), decode_responses=True) as client:
            yield client

    async def replicate(self, primary: Server) -> None:
        """Become a replica, and wait until it has all that the primary has."""
        async with self.client() as client, primary.client() as other:
            await client.replicaof("127.0.0.1", str(primary.port))
            with anyio.fail_after(PATIENCE):
                while True:
                    ours, theirs = await client.info("replication"), await other.info("replication")
                    linked = ours.get("master_link_status") == "up"
                    if linked and ours["slave_repl_offset"] == theirs["master_repl_offset"]:
                        return
                    await anyio.sleep(_AGAIN)

    async def promote(self) -> None:
        """Follow nobody from now on; what it has is the truth."""
        async with self.client() as client:
            await client.replicaof("NO", "ONE")

    async def clients(self) -> set[int]:
        """The ids of the connections to it."""
        async with self.client() as client:
            own = int(await client.client_id())
            return {int(one["id"]) for one in await client.client_list()} - {own}

    async def _answers(self) -> None:
        with anyio.fail_after(PATIENCE):
            while True:
                assert self._process is not None
                assert self._process.poll() is None, (self.home / "server.log").read_text(errors="replace")[-2000:]
                with suppress(redis.exceptions.ConnectionError, OSError):  # one that is loading is the former
                    async with self.client() as client:
                        if int((await client.info("server"))["process_id"]) == self.pid:
                            return
                await anyio.sleep(_AGAIN)


def kill(pid: int) -> None:
    """Kill a server that a test started through something else."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
