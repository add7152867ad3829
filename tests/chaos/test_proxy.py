"""What the way to the server can do to those who use it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Lost
from redis.exceptions import TimeoutError as Silent

from chaos.chance import chance
from chaos.proxy import Proxy
from eventlog.server.embedded import EmbeddedServer

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def way(data: Path, kind: type[Proxy] = Proxy) -> AsyncIterator[tuple[Proxy, Redis, Callable[[], Redis]]]:
    """A proxy before a server, the server by itself, and clients through the proxy that try once."""
    clients: list[Redis] = []

    def client(socket: str | None = None) -> Redis:
        path = socket or proxy.url.removeprefix("unix://")
        clients.append(Redis(unix_socket_path=path, socket_timeout=5, retry=Retry(NoBackoff(), 0)))
        return clients[-1]

    with TemporaryDirectory() as sockets:
        async with await EmbeddedServer.open(data) as server:
            socket = Path(server.url.removeprefix("unix://"))
            async with kind(Path(sockets) / "p", lambda: socket, chance(1, "way")) as proxy:
                try:
                    yield proxy, client(str(socket)), client
                finally:
                    for one in clients:
                        await one.aclose()


async def test_what_is_sent_arrives(tmp_path: Path) -> None:
    async with way(tmp_path) as (_, server, client):
        assert await client().incr("n") == 1
        assert await server.get("n") == b"1"


async def test_a_lost_reply_is_of_something_that_was_done(tmp_path: Path) -> None:
    async with way(tmp_path) as (proxy, server, client):
        mine = client()
        await mine.ping()
        proxy.lose = 1
        with pytest.raises((Lost, Silent)):
            await mine.incr("n")
        assert await server.get("n") == b"1"
        assert await mine.incr("n") == 2
        assert proxy.lost == 1


async def test_a_dropped_request_never_arrives(tmp_path: Path) -> None:
    async with way(tmp_path) as (proxy, server, client):
        mine = client()
        await mine.ping()
        proxy.drop = 1
        with pytest.raises((Lost, Silent)):
            await mine.incr("n")
        assert await server.get("n") is None
        assert proxy.dropped == 1


async def test_a_cut_ends_connections_and_new_ones_are_good(tmp_path: Path) -> None:
    async with way(tmp_path) as (proxy, _, client):
        mine = client()
        await mine.ping()
        proxy.cut(1.0)
        with pytest.raises((Lost, Silent)):
            await mine.ping()
        assert await mine.ping()


async def test_a_connection_that_is_cut_before_it_is_served_is_closed(tmp_path: Path) -> None:
    class Hasty(Proxy):
        def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            super()._accept(reader, writer)
            self.cut(1.0)

    async with way(tmp_path, Hasty) as (_, _, client):
        with pytest.raises(Lost):
            await client().ping()


async def test_what_is_held_arrives_later(tmp_path: Path) -> None:
    async with way(tmp_path) as (proxy, _, client):
        mine = client()
        await mine.ping()
        begun = time.monotonic()
        held = asyncio.create_task(proxy.hold(0.3))
        await asyncio.sleep(0)
        assert await mine.incr("n") == 1
        assert time.monotonic() - begun >= 0.3
        await held


async def test_in_a_blackout_something_was_done_and_nobody_can_ask(tmp_path: Path) -> None:
    async with way(tmp_path) as (proxy, server, client):
        mine = client()
        await mine.ping()
        proxy.black_out(30.0)
        with pytest.raises((Lost, Silent)):
            await mine.incr("n")
        assert await server.get("n") == b"1"
        with pytest.raises((Lost, Silent)):
            await mine.get("n")
        proxy.mend()
        assert await mine.get("n") == b"1"
