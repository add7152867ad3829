"""A way to a server that can be led to another one, and that can lose replies.

Moved to another server, a connection of a client stays open: only its far end is another one. The client sees no
disconnect.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self

CHUNK = 1 << 16


class Fate(Enum):
    """What becomes of a chunk of requests."""

    PASS = "it arrives, and its reply too"
    LATE = "it arrives a little later"
    CUT_REQUEST = "the connection is cut before it arrives"
    CUT_REPLY = "it arrives, and the connection is cut before the reply"


class Switch:
    """Listens on a unix socket at ``url`` and passes on to the server's socket at ``target``."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.fate: Callable[[bytes], Fate] = lambda _: Fate.PASS
        self.is_open = True
        """Whether new connections are taken; else they wait."""
        self.connections = 0
        self._home = Path(tempfile.mkdtemp(prefix="switch"))
        self.url = f"unix://{self._home / 's'}"
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_unix_server(self._accept, str(self._home / "s"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self.cut()
        if self._tasks:
            await asyncio.wait(self._tasks)
        shutil.rmtree(self._home)

    def cut(self) -> None:
        """Cut every connection."""
        for task in self._tasks:
            task.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far: _Far | None = None
        with contextlib.suppress(OSError, asyncio.CancelledError):
            while not self.is_open:
                await asyncio.sleep(0.005)
            while chunk := await reader.read(CHUNK):
                if far is None or far.target != self.target:
                    if far is not None:
                        far.close()
                    far = await _Far.connect(self.target, writer)
                fate = self.fate(chunk)
                if fate is Fate.CUT_REQUEST:
                    break
                if fate is Fate.LATE:
                    await asyncio.sleep(0.002)
                if fate is Fate.CUT_REPLY:
                    far.is_mute = True
                await far.send(chunk)
                if fate is Fate.CUT_REPLY:
                    await far.heard.wait()
                    break
        if far is not None:
            far.close()
        writer.transport.abort()


class _Far:
    """The far end of one connection."""

    def __init__(self, target: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.target = target
        self.is_mute = False
        self.heard = asyncio.Event()
        """A reply came while it was mute, or the server went away."""
        self._reader = reader
        self._writer = writer
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def connect(cls, target: Path, client: asyncio.StreamWriter) -> _Far:
        reader, writer = await asyncio.open_unix_connection(str(target))
        far = cls(target, reader, writer)
        far._task = asyncio.get_running_loop().create_task(far._replies(client))
        return far

    async def send(self, chunk: bytes) -> None:
        self._writer.write(chunk)
        await self._writer.drain()

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._writer.transport.abort()

    async def _replies(self, client: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await self._reader.read(CHUNK):
                if self.is_mute:
                    self.heard.set()
                else:
                    client.write(chunk)
                    await client.drain()
        self.heard.set()
        client.transport.abort()
