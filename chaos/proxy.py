"""The way from the processes to the server, which can be made bad."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from random import Random

_CHUNK = 64 * 1024
Ways = dict[str, "Proxy"]
"""A way of its own for each kind of process: what happens on one leaves the others alone."""


class Proxy:
    """Listens on a unix socket and passes bytes on to that of the server, wherever it is now, unless told otherwise."""

    def __init__(self, at: Path, to: Callable[[], Path], draw: Random) -> None:
        self.url = f"unix://{at}"
        self._at = at
        self._to = to
        self._draw = draw
        self._listener: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._darkness: set[asyncio.Task[None]] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._refuses = False
        self.lose = 0
        """So many requests more are done by the server and their replies never come."""
        self.drop = 0
        """So many requests more never reach the server."""
        self._dark_for = 0.0
        self.lost = 0
        self.dropped = 0
        self.cuts = 0

    async def __aenter__(self) -> Proxy:
        self._listener = await asyncio.start_unix_server(self._accept, str(self._at))
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._listener is not None:
            self._listener.close()
        self.cut(1.0)
        while self._tasks:
            await asyncio.wait(self._tasks)

    def cut(self, part: float) -> None:
        """Cut about this part of the connections."""
        for task in list(self._tasks):
            if self._draw.random() < part:
                task.cancel()
                self.cuts += 1

    async def hold(self, seconds: float) -> None:
        """Nothing passes for a while, and no connection ends."""
        self._open.clear()
        await asyncio.sleep(seconds)
        self._open.set()

    async def refuse(self, seconds: float) -> None:
        """Cut everything, and take no new connection for a while."""
        self._refuses = True
        self.cut(1.0)
        await asyncio.sleep(seconds)
        self._refuses = False

    def black_out(self, seconds: float) -> None:
        """The next reply never comes, and from then on no new connection for a while: nobody can ask again."""
        self.lose += 1
        self._dark_for = seconds

    def mend(self) -> None:
        """From now on it is a good way."""
        self.lose = self.drop = 0
        self._dark_for = 0.0
        self._refuses = False
        self._open.set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # One that was cut before it began has closed nothing.
        task.add_done_callback(lambda _: writer.transport.abort())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there: asyncio.StreamWriter | None = None
        back: asyncio.Task[None] | None = None
        try:
            if not self._refuses:
                replies, there = await asyncio.open_unix_connection(str(self._to()))
                back = asyncio.get_running_loop().create_task(self._replies(replies, writer))
                await self._requests(reader, there, back)
        except (OSError, asyncio.CancelledError):
            pass  # an end went away, or the way was cut
        finally:
            if there is not None:
                there.transport.abort()
            if back is not None:
                back.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([back])

    async def _requests(
        self, reader: asyncio.StreamReader, there: asyncio.StreamWriter, back: asyncio.Task[None]
    ) -> None:
        while chunk := await reader.read(_CHUNK):
            await self._open.wait()
            if self.drop > 0:
                self.drop -= 1
                self.dropped += 1
                return
            if self.lose > 0:
                self.lose -= 1
                self.lost += 1
                seconds, self._dark_for = self._dark_for, 0.0
                self._refuses = self._refuses or seconds > 0
                await self._swallow(chunk, there, back)
                if seconds:
                    darkness = asyncio.get_running_loop().create_task(self.refuse(seconds))
                    self._darkness.add(darkness)
                    darkness.add_done_callback(self._darkness.discard)
                return
            there.write(chunk)
            await there.drain()

    async def _swallow(self, chunk: bytes, there: asyncio.StreamWriter, back: asyncio.Task[None]) -> None:
        """The server does all it was sent, then sees the end; its replies go nowhere."""
        back.cancel()
        there.write(chunk)
        await there.drain()
        there.write_eof()
        await asyncio.sleep(0.01)

    async def _replies(self, replies: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await replies.read(_CHUNK):
                await self._open.wait()
                writer.write(chunk)
                await writer.drain()
        writer.transport.abort()
