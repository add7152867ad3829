"""One connection that every caller of a process shares: what is waiting goes out in one write.

redis-py makes the connection (addresses, TLS, authentication); from then on the bytes pass
straight between its transport and hiredis. A caller waits on a future of its own: when it is
cancelled nothing on the wire is touched, and replies stay matched to requests by their order.
A connection that breaks, or that makes no progress for ``timeout`` seconds, fails everything that
waits on it with ``ConnectionLost``; the next request makes a new one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol, cast

import hiredis
import redis.asyncio
from redis import exceptions as redis_errors

from eventlog.errors import InvalidInput, LogClosed, ServerUnavailable, ServerUnfit

Packed = bytes
Send = Callable[[Packed], Awaitable[Any]]
ReplyError = hiredis.ReplyError
PASSING = ("LOADING", "TRYAGAIN", "MASTERDOWN", "CLUSTERDOWN", "BUSY ")
"""How replies begin that say: not now. What was sent was not executed."""


class Way(Protocol):
    """A way to the server, or to the servers of a cluster. ``Wire`` says what each does."""

    greet: Callable[[Send], Awaitable[None]] | None

    async def execute(self, packed: Packed) -> Any: ...

    async def close(self) -> None: ...


class ConnectionLost(Exception):
    """The connection broke while a reply was awaited. ``sent`` is false when the request never left."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


def pack(*arguments: str | bytes | int) -> Packed:
    """A command in the wire's form."""
    return cast(bytes, hiredis.pack_command(arguments))  # type: ignore[arg-type]


class NotReplicated(Exception):
    """The server replied, and fewer replicas than wanted hold what it wrote. ``reply`` is its reply."""

    def __init__(self, acknowledged: object, wanted: int, reply: object) -> None:
        super().__init__(f"{acknowledged} of {wanted} replicas hold it")
        self.reply = reply


class _Line(asyncio.Protocol):
    """One live connection: writes batches, matches replies to futures in order.

    With ``replicas``, each batch is followed by one WAIT, and its replies are held back until that
    many replicas hold what the batch wrote.
    """

    def __init__(self, writer: asyncio.StreamWriter, timeout: float, replicas: int) -> None:
        self._writer = writer  # kept alive: it closes its transport when it is collected
        self._transport = cast(asyncio.Transport, writer.transport)
        self._timeout = timeout
        self._replicas = replicas
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(notEnoughData=self)
        self._unsent: list[tuple[Packed, asyncio.Future[Any]]] = []
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._flushing = False
        self._paused = False
        self._progress = self._loop.time()
        self._unwritten = 0
        self._watchdog: asyncio.TimerHandle | None = None
        self.lost: str | None = None
        self._transport.set_protocol(self)

    def send(self, packed: Packed) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        if self.lost is not None:
            future.set_exception(ConnectionLost(self.lost, sent=False))
            return future
        self._unsent.append((packed, future))
        if not self._flushing and not self._paused:
            self._flushing = True
            self._loop.call_soon(self._flush)
        return future

    def close(self, reason: str) -> None:
        self._fail(reason)
        self._transport.abort()

    def _flush(self) -> None:
        self._flushing = False
        if self.lost is not None or self._paused:
            return
        batch = [(packed, future) for packed, future in self._unsent if not future.done()]
        self._unsent.clear()
        if not batch:
            return
        if not self._waiting:
            self._progress = self._loop.time()
        if self._watchdog is None:
            self._watchdog = self._loop.call_later(self._timeout / 4, self._watch)
        if self._replicas:
            batch = self._held_back(batch)
        self._waiting.extend(future for _, future in batch)
        self._transport.write(batch[0][0] if len(batch) == 1 else b"".join([packed for packed, _ in batch]))

    def _held_back(self, batch: list[tuple[Packed, asyncio.Future[Any]]]) -> list[tuple[Packed, asyncio.Future[Any]]]:
        """The batch with a WAIT behind it; whoever waits for a reply gets it once replicas hold the batch."""
        replies: list[tuple[Packed, asyncio.Future[Any]]] = [
            (packed, self._loop.create_future()) for packed, _ in batch
        ]
        wait: asyncio.Future[Any] = self._loop.create_future()

        def deliver(_wait: asyncio.Future[Any]) -> None:
            lost = wait.exception()
            for (_, reply), (_, waiting) in zip(replies, batch, strict=True):
                error = reply.exception() or lost
                if waiting.done():
                    continue
                if error is not None:
                    waiting.set_exception(error)
                elif isinstance(reply.result(), ReplyError) or _enough(wait.result(), self._replicas):
                    waiting.set_result(reply.result())
                else:
                    waiting.set_exception(NotReplicated(wait.result(), self._replicas, reply.result()))

        wait.add_done_callback(deliver)
        milliseconds = int(self._timeout * 1000 / 2)
        return [*replies, (pack("WAIT", self._replicas, milliseconds), wait)]

    def _watch(self) -> None:
        self._watchdog = None
        if not self._waiting:
            return
        unwritten = self._transport.get_write_buffer_size()
        if unwritten < self._unwritten:
            self._progress = self._loop.time()  # a large request is still going out
        self._unwritten = unwritten
        quiet = self._loop.time() - self._progress
        if quiet >= self._timeout:
            self.close(f"no reply for {self._timeout:g} s")
        else:
            self._watchdog = self._loop.call_later(min(self._timeout - quiet, self._timeout / 4), self._watch)

    def data_received(self, data: bytes) -> None:
        self._progress = self._loop.time()
        try:
            self._reader.feed(data)
            while (reply := self._reader.gets()) is not self:
                future = self._waiting.popleft()
                if not future.done():
                    future.set_result(reply)
        except (hiredis.ProtocolError, IndexError) as error:
            self.close(f"the server does not speak the Redis protocol: {error}")

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(str(exc) if exc else "the server closed the connection")

    def _fail(self, reason: str) -> None:
        if self.lost is not None:
            return
        self.lost = reason
        if self._watchdog is not None:
            self._watchdog.cancel()
        for future in self._waiting:
            if not future.done():
                future.set_exception(ConnectionLost(reason, sent=True))
        for _, future in self._unsent:
            if not future.done():
                future.set_exception(ConnectionLost(reason, sent=False))
        self._waiting.clear()
        self._unsent.clear()


async def _reply(line: _Line, packed: Packed) -> Any:
    """The reply, whether replicas hold what was written or not."""
    try:
        return await line.send(packed)
    except NotReplicated as error:
        return error.reply


def _enough(acknowledged: object, replicas: int) -> bool:
    return isinstance(acknowledged, int) and acknowledged >= replicas


class Wire:
    """A shared connection to one server, made anew when it broke. It belongs to the event loop it was made in.

    ``timeout`` in seconds bounds connecting and the wait for a server that says nothing. With
    ``replicas``, a reply is given once that many replicas hold what was written, else
    ``NotReplicated`` is raised.
    """

    def __init__(self, url: str, *, timeout: float = 5.0, replicas: int = 0) -> None:
        self._pool = redis.asyncio.ConnectionPool.from_url(
            url, protocol=2, socket_connect_timeout=timeout, socket_timeout=timeout
        )
        self._timeout = timeout
        self._replicas = replicas
        self._loop = asyncio.get_running_loop()
        self._line: _Line | None = None
        self._connecting: asyncio.Task[_Line] | None = None
        self._closed = False
        self.greet: Callable[[Send], Awaitable[None]] | None = None
        """Called with each new connection before anybody uses it; what it raises, its users get."""

    async def execute(self, packed: Packed) -> Any:
        """Send a command and return its reply, which may be a ``ReplyError``.

        Raises ``ConnectionLost`` when the reply was lost, ``ServerUnavailable`` or ``ServerUnfit``
        when no connection can be made, ``LogClosed`` once it is closed.
        """
        if self._closed:
            raise LogClosed("the log is closed: open it again")
        if asyncio.get_running_loop() is not self._loop:
            raise InvalidInput("the log was opened in another event loop: open one in each")
        line = self._line
        if line is None or line.lost is not None:
            line = await self._connected()
        return await line.send(packed)

    async def ask(self, packed: Packed) -> Any:
        """As ``execute``, with ASKING before it: for a slot that this node of a cluster is being given."""
        if self._closed:
            raise LogClosed("the log is closed: open it again")
        line = self._line
        if line is None or line.lost is not None:
            line = await self._connected()
        # Neither is dropped when the caller is cancelled: an ASKING alone would let the next command in.
        both = asyncio.gather(line.send(pack("ASKING")), line.send(packed), return_exceptions=True)
        _, reply = await asyncio.shield(both)
        if isinstance(reply, BaseException) and not isinstance(reply, ReplyError):
            raise reply
        return reply

    async def close(self) -> None:
        """Close the connection; whoever still waits on it gets ``ConnectionLost`` or ``LogClosed``."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        if self._line is not None:
            self._line.close("the log was closed")

    async def _connected(self) -> _Line:
        if self._connecting is None:
            # A task of its own: a caller that is cancelled must not take the others' connection away.
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(self._settle)
        connecting = self._connecting
        await asyncio.wait([connecting])
        if connecting.cancelled():
            raise LogClosed("the log was closed while it connected: open it again")
        return connecting.result()

    def _settle(self, task: asyncio.Task[_Line]) -> None:
        self._connecting = None
        if not task.cancelled() and task.exception() is None:
            self._line = task.result()

    async def _connect(self) -> _Line:
        connection = self._pool.make_connection()  # type: ignore[no-untyped-call]
        try:
            async with asyncio.timeout(self._timeout):
                await connection.connect()
        except TimeoutError as error:
            raise ServerUnavailable(
                f"{connection!r} did not let us in within {self._timeout:g} s: see whether it is the server"
            ) from error
        except (redis_errors.RedisError, OSError) as error:
            if isinstance(error.__cause__ or error, redis_errors.AuthenticationError):
                raise ServerUnfit(
                    f"{connection!r} refuses the user or password: {error}; write them as redis://USER:PASSWORD@HOST"
                ) from error
            raise ServerUnavailable(f"cannot connect to {connection!r}: {error}; start it or mend the URL") from error
        # redis-py has shaken hands; its transport is ours from here on, and it must not close it.
        writer = cast(asyncio.StreamWriter, connection._writer)
        connection._writer = connection._reader = None
        line = _Line(writer, self._timeout, self._replicas)
        if self.greet is not None:
            try:
                await self.greet(partial(_reply, line))
            except ConnectionLost as error:
                raise ServerUnavailable(f"{connection!r} broke off at once: {error}") from error
            except BaseException:
                line.close("it was not let in")
                raise
        return line
