"""What a benchmark measures with: a server, names of its own there, and how much of the work to do."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import redis.asyncio

from eventlog import EventLog
from eventlog.identity import new_stamp
from eventlog.server import EmbeddedServer
from eventlog.server.check import inspect


@dataclass(frozen=True)
class Size:
    """How often, and how much: the share of the full number of repetitions, messages, followers."""

    rounds: int = 7
    share: float = 1.0

    def of(self, whole: int, least: int = 1) -> int:
        """The share of the whole, and at least so many."""
        return min(whole, max(least, round(whole * self.share)))


FULL, QUICK = Size(), Size(2, 0.02)


@dataclass
class Bench:
    """One run on one server."""

    url: str
    server: str
    """Its name and version."""
    size: Size
    prefix: str = field(default_factory=lambda: f"bench-{new_stamp():x}")
    """Part of every key that a run makes."""
    _count: itertools.count[int] = field(default_factory=itertools.count)

    def name(self) -> str:
        """A name that was not used before: of a namespace, a key, a session."""
        return f"{self.prefix}-{next(self._count)}"

    @asynccontextmanager
    async def log(self, *, partitions: int | None = None) -> AsyncIterator[EventLog]:
        """A new log in a namespace of its own."""
        async with EventLog.open(self.url, namespace=self.name(), partitions=partitions) as log:
            yield log

    @asynccontextmanager
    async def client(self, **options: Any) -> AsyncIterator[Any]:
        """A bare client with redis-py's pool; untyped, as its replies are typed for each way to decode."""
        client: redis.asyncio.Redis = redis.asyncio.Redis.from_url(self.url, **options)
        try:
            yield client
        finally:
            await client.aclose()

    async def clear(self) -> None:
        """Delete what this run made, so that the next work begins on an empty server."""
        async with self.client() as client:
            names: list[bytes] = []
            async for key in client.scan_iter(match=f"*{self.prefix}*", count=1_000):
                names.append(key)
                if len(names) == 1_000:
                    await client.unlink(*names)
                    names.clear()
            if names:
                await client.unlink(*names)


@asynccontextmanager
async def opened(url: str | None, size: Size) -> AsyncIterator[Bench]:
    """Measure on this server, or on an embedded one of this run alone."""
    async with AsyncExitStack() as stack:
        embedded = url is None
        if url is None:
            data = stack.enter_context(tempfile.TemporaryDirectory())
            server = await EmbeddedServer.open(data)
            stack.push_async_callback(server.close)
            url = server.url
        report = await inspect(url)
        bench = Bench(url, f"{report.name} {report.version}{' embedded' if embedded else ''}", size)
        if not embedded:
            stack.push_async_callback(bench.clear)
        yield bench
