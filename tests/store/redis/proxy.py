"""A way to a server that can be made bad: it drops replies, cuts connections, holds back, or is slow."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from enum import Enum
from types import TracebackType
from urllib.parse import urlsplit

CHUNK = 64 * 1024


class Fate(Enum):
    """What becomes of a request."""

    PASS = "pass"
    CUT_REQUEST = "the connection is cut before the server sees it"
    CUT_REPLY = "the server does it, and the connection is cut before its reply"
    HOLD = "it never arrives, and the connection stays"
    HOLD_REPLY = "the server does it; its reply is held back, and the connection stays"


class Proxy:
    """Stands on a port of this machine in front of the server at ``url``.

    ``fate`` decides for each chunk of requests; ``pace`` in bytes a second slows requests down;
    ``connections`` counts those that were made.
    """

    def __init__(self, url: str) -> None:
        self._server = urlsplit(url)
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self.fate: Callable[[bytes], Fate] = lambda _: Fate.PASS
        self.pace: float | None = None
        self.pause_before_accepting = 0.0
        self.connections = 0

    async def __aenter__(self) -> Proxy:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._listener.sockets[0].getsockname()[1]
        self.url = f"redis://127.0.0.1:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Cut everything, and listen no longer."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self.cut()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def cut(self) -> None:
        """Cut every connection that is there."""
        for task in self._tasks:
            task.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there: asyncio.StreamWriter | None = None
        replies: asyncio.Task[None] | None = None
        try:
            await asyncio.sleep(self.pause_before_accepting)
            if self._server.scheme == "unix":
                back, there = await asyncio.open_unix_connection(self._server.path)
            else:
                back, there = await asyncio.open_connection(self._server.hostname, self._server.port)
            lost = asyncio.Event()
            held = asyncio.Event()
            replies = asyncio.get_running_loop().create_task(self._replies(back, writer, lost, held))
            await self._requests(reader, there, lost, held, replies)
        except (OSError, asyncio.CancelledError):
            pass  # an end went away, or the way was cut
        finally:
            for end in (writer, there):  # at once: a second cancellation must find them closed
                if end is not None:
                    end.transport.abort()
            if replies is not None:
                replies.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([replies])

    async def _requests(
        self,
        reader: asyncio.StreamReader,
        there: asyncio.StreamWriter,
        lost: asyncio.Event,
        held: asyncio.Event,
        replies: asyncio.Task[None],
    ) -> None:
        while chunk := await reader.read(CHUNK):
            fate = self.fate(chunk)
            if fate is Fate.CUT_REQUEST:
                return
            if fate is Fate.HOLD:
                continue
            if fate is Fate.CUT_REPLY:
                lost.set()
            elif fate is Fate.HOLD_REPLY:
                held.set()
            there.write(chunk)
            await there.drain()
            if self.pace is not None:
                await asyncio.sleep(len(chunk) / self.pace)
            if lost.is_set():
                await replies
                return

    @staticmethod
    async def _replies(
        back: asyncio.StreamReader, writer: asyncio.StreamWriter, lost: asyncio.Event, held: asyncio.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while chunk := await back.read(CHUNK):
                if lost.is_set():
                    return
                if not held.is_set():
                    writer.write(chunk)
                    await writer.drain()
        writer.transport.abort()
