"""A server that could lose events is refused, or warned of."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis, from_url

from eventlog.errors import ServerUnavailable, ServerUnfit
from eventlog.server import EmbeddedServer, check
from eventlog.server.binary import Binary
from eventlog.server.check import inspect
from tests.server.conftest import connected, until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def embedded(data: Path, executable: str) -> AsyncIterator[EmbeddedServer]:
    async with await EmbeddedServer.open(data, executable=executable) as opened:
        yield opened


class Told:
    """A client of a server that says what the test wants."""

    def __init__(self, **info: Any) -> None:
        self._info = {
            "redis_version": "7.2.4",
            "role": "master",
            "cluster_enabled": 0,
            "aof_enabled": 1,
        } | info

    async def info(self) -> dict[str, Any]:
        return self._info

    async def config_get(self, *names: str) -> dict[bytes, bytes]:
        return {b"maxmemory": b"0", b"maxmemory-policy": b"noeviction", b"appendfsync": b"everysec"}


@pytest.mark.parametrize("decode", [False, True])
async def test_the_report_says_what_the_server_is(embedded: EmbeddedServer, binary: Binary, decode: bool) -> None:
    client: Redis = from_url(embedded.url, decode_responses=decode)
    report = await check(client)
    await client.aclose()
    assert (report.name, report.version) == (binary.name, ".".join(map(str, binary.version)))
    assert (report.role, report.appendonly, report.appendfsync) == ("master", True, "everysec")
    assert (report.maxmemory_policy, report.warnings) == ("noeviction", ())


async def test_a_server_that_may_evict_is_refused(embedded: EmbeddedServer) -> None:
    async with connected(embedded.url) as client:
        await client.config_set("maxmemory-policy", "allkeys-lru")
        assert "set it to noeviction" in (await check(client)).warnings[0]
        await client.config_set("maxmemory", "100mb")
        with pytest.raises(ServerUnfit, match=r"maxmemory 104857600 bytes, maxmemory-policy allkeys-lru"):
            await check(client)
        await client.config_set("maxmemory-policy", "noeviction")
        assert (await check(client)).warnings == ()


async def test_a_server_that_may_evict_is_refused_also_where_config_is_forbidden(
    embedded: EmbeddedServer,
) -> None:
    async with connected(embedded.url) as client:
        await client.config_set("maxmemory-policy", "volatile-ttl", "maxmemory", "100mb")
        await client.acl_setuser("guest", enabled=True, passwords="+word", keys="*", commands=["+@all", "-config"])
        async with connected(f"{embedded.url}?username=guest&password=word") as guest:
            with pytest.raises(ServerUnfit, match="volatile-ttl"):
                await check(guest)


async def test_where_config_is_forbidden_it_is_a_warning(embedded: EmbeddedServer) -> None:
    async with connected(embedded.url) as client:
        await client.acl_setuser("guest", enabled=True, passwords="+word", keys="*", commands=["+@all", "-config"])
    async with connected(f"{embedded.url}?username=guest&password=word") as guest:
        report = await check(guest)
    assert report.appendfsync is None
    assert report.appendonly is True
    assert len(report.warnings) == 1
    assert "CONFIG is forbidden" in report.warnings[0]


async def test_where_info_is_forbidden_it_is_refused(embedded: EmbeddedServer) -> None:
    async with connected(embedded.url) as client:
        await client.acl_setuser("guest", enabled=True, passwords="+word", keys="*", commands=["+@all", "-info"])
    async with connected(f"{embedded.url}?username=guest&password=word") as guest:
        with pytest.raises(ServerUnfit, match=r"\+info"):
            await check(guest)


async def test_a_replica_is_refused(embedded: EmbeddedServer) -> None:
    async with connected(embedded.url) as client:
        await client.replicaof("127.0.0.1", "1")
        with pytest.raises(ServerUnfit, match="primary"):
            await check(client)
        await client.replicaof("NO", "ONE")


async def test_a_server_that_keeps_nothing_on_disk_is_warned_of(embedded: EmbeddedServer) -> None:
    async with connected(embedded.url) as client:
        await client.config_set("appendfsync", "no")
        assert "power cut" in (await check(client)).warnings[0]
        await client.config_set("appendonly", "no")
        assert "appendonly is no" in (await check(client)).warnings[0]


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        ({"redis_version": "6.2.14"}, "redis 6.2.14: 7.0 or newer"),
        ({"redis_version": "10.0.0", "cluster_enabled": 1}, "cluster_enabled:1"),
        ({"redis_version": ""}, "no version"),
    ],
)
async def test_an_old_server_and_a_node_of_a_cluster_are_refused(said: dict[str, Any], refusal: str) -> None:
    client: Any = Told(**said)
    with pytest.raises(ServerUnfit, match=refusal):
        await check(client)


@pytest.fixture
async def started(tmp_path: Path, executable: str) -> AsyncIterator[Callable[..., str]]:
    """Starts a server with these options; returns its URL."""
    processes = []

    def start(*options: str) -> str:
        socket = tmp_path / f"s{len(processes)}"
        where = ("--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(tmp_path))
        processes.append(subprocess.Popen([executable, *where, *options], stdout=subprocess.DEVNULL))
        return f"unix://{socket}"

    yield start
    for process in processes:
        process.terminate()
        process.wait()


async def listening(url: str) -> None:
    path = url.removeprefix("unix://")

    def takes_connections() -> bool:  # its file is there a moment earlier
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(path) == 0

    await until(takes_connections, f"a server listens at {path}")


@pytest.mark.parametrize("protocol", ["2", "3"])
@pytest.mark.parametrize("login", ["", "&password=wrong", "&username=somebody&password=secret"])
async def test_a_server_that_refuses_the_password_says_where_to_give_it(
    started: Callable[..., str], login: str, protocol: str
) -> None:
    url = started("--requirepass", "secret")
    await listening(url)
    with pytest.raises(ServerUnfit, match=r"refuses the user or password .*redis://USER:PASSWORD@HOST"):
        await inspect(f"{url}?protocol={protocol}{login}")
    assert (await inspect(f"{url}?protocol={protocol}&password=secret")).role == "master"


async def test_a_password_that_nobody_asked_for_is_refused(embedded: EmbeddedServer) -> None:
    with pytest.raises(ServerUnfit, match="refuses the user or password"):
        await inspect(f"{embedded.url}?username=somebody&password=word")


@pytest.mark.parametrize("name", ["", "SECRET-INFO"])
async def test_a_server_without_info_is_refused(started: Callable[..., str], name: str) -> None:
    url = started("--rename-command", "INFO", name)
    await listening(url)
    with pytest.raises(ServerUnfit, match=r"does not answer INFO \(.*unknown command.*rename-command INFO"):
        await inspect(url)


async def test_what_does_not_speak_the_protocol_is_refused() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        with pytest.raises(ServerUnfit, match="does not speak the Redis protocol"):
            await inspect(f"redis://127.0.0.1:{port}")


async def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    client: Redis = from_url(f"unix://{tmp_path}/none")
    with pytest.raises(ServerUnavailable, match="does not answer"):
        await check(client)
    await client.aclose()
