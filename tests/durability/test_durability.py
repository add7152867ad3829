"""What is asked of a server at connect, and what an acknowledged append has reached."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import pytest
import redis
import redis.asyncio

from eventlog import EventLog, InvalidInput, OutcomeUnknown, ServerUnfit, VersionConflict, user
from eventlog.durability import ALWAYS, EVERYSEC, MEMORY, Durability, replicated
from eventlog.server.binary import find
from tests.servers import wait_for

pytestmark = pytest.mark.anyio


class Pair:
    """A primary and its replica, on sockets in one directory."""

    def __init__(self, home: Path, executable: str) -> None:
        self._executable = executable
        self._home = home
        self._processes: list[subprocess.Popen[bytes]] = []
        self.primary = self.start("primary", "--port", "0")
        self.replica = ""

    def start(self, name: str, *options: str) -> str:
        (self._home / name).mkdir()
        socket = self._home / f"{name}.sock"
        command = [self._executable, "--unixsocket", str(socket), "--dir", str(self._home / name), *options]
        settings = ["--save", "", "--repl-diskless-sync-delay", "0", "--repl-timeout", "60"]
        self._processes.append(subprocess.Popen([*command, *settings], stdout=subprocess.DEVNULL))
        with redis.Redis(unix_socket_path=str(socket)) as client:
            wait_for(client, name)
        return f"unix://{socket}"

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


@pytest.fixture(params=["embedded", "redis"])
def executable(request: pytest.FixtureRequest) -> str:
    if request.param == "embedded":
        return str(find(None).path)
    found = shutil.which("redis-server")
    if found is None:
        pytest.skip("no redis-server on PATH")
    return found


@pytest.fixture
def lonely(tmp_path: Path, executable: str) -> Iterator[str]:
    """The URL of a server that keeps nothing on disk and has no replica."""
    pair = Pair(tmp_path, executable)
    yield pair.primary
    pair.end()


@pytest.fixture
async def client(lonely: str) -> AsyncIterator[redis.asyncio.Redis]:
    opened: redis.asyncio.Redis = redis.asyncio.Redis.from_url(lonely)
    yield opened
    await opened.aclose()


def test_a_durability_is_read_from_its_text() -> None:
    for durability in (MEMORY, EVERYSEC, ALWAYS, replicated(2)):
        assert Durability.parse(str(durability)) == durability


@pytest.mark.parametrize("text", ["", "fsync", "replicated", "replicated(0)", "replicated(-1)", "replicated(100)"])
def test_what_is_no_durability_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a durability: choose memory"):
        Durability.parse(text)


@pytest.mark.parametrize("durability", ["everysec", "always"])
async def test_a_server_without_an_append_only_file_is_refused(lonely: str, durability: str) -> None:
    with pytest.raises(ServerUnfit, match="keeps none: CONFIG SET appendonly yes"):
        async with EventLog.open(lonely, durability=durability):
            pytest.fail("it was opened")


async def test_it_is_taken_when_nothing_is_to_be_kept(lonely: str) -> None:
    async with EventLog.open(lonely, durability="memory") as log:
        assert any("appendonly is no" in note for note in log.notes)
        await log.tenant("t").conversation("c").add(user("hello"))


async def test_a_server_that_syncs_less_often_than_asked_is_refused(lonely: str, client: redis.asyncio.Redis) -> None:
    await client.config_set("appendonly", "yes")
    with pytest.raises(ServerUnfit, match="needs appendfsync always, and the server has everysec: CONFIG SET"):
        async with EventLog.open(lonely, durability="always"):
            pytest.fail("it was opened")
    await client.config_set("appendfsync", "always")
    async with EventLog.open(lonely, durability="always"):
        pass
    async with EventLog.open(lonely, durability="everysec"):
        pass
    await client.config_set("appendfsync", "no")
    with pytest.raises(ServerUnfit, match="needs appendfsync everysec, and the server has no"):
        async with EventLog.open(lonely, durability="everysec"):
            pytest.fail("it was opened")


async def test_a_server_that_may_evict_is_refused(lonely: str, client: redis.asyncio.Redis) -> None:
    await client.config_set("maxmemory", "100mb")
    await client.config_set("maxmemory-policy", "allkeys-lru")
    with pytest.raises(ServerUnfit, match="may evict keys"):
        async with EventLog.open(lonely, durability="memory"):
            pytest.fail("it was opened")


async def test_a_server_without_the_replicas_asked_for_is_refused(lonely: str) -> None:
    with pytest.raises(ServerUnfit, match="needs 1 connected replicas, the server has 0: connect replicas"):
        async with EventLog.open(lonely, durability=replicated(1)):
            pytest.fail("it was opened")


@pytest.fixture
async def replicating(
    tmp_path: Path, executable: str, free_port: int
) -> AsyncIterator[tuple[str, redis.asyncio.Redis]]:
    """A primary with a connected replica: the primary's URL, and a client of the replica."""
    pair = Pair(tmp_path, executable)
    async with redis.asyncio.Redis.from_url(pair.primary) as primary:
        await primary.config_set("port", free_port)
        replica = pair.start("replica", "--port", "0", "--replicaof", "127.0.0.1", str(free_port))
        async with redis.asyncio.Redis.from_url(replica) as client:
            with anyio.fail_after(20):
                while (await primary.info("replication")).get("slave0", {}).get("state") != "online":
                    await anyio.sleep(0.01)
            yield pair.primary, client
    pair.end()


async def test_an_acknowledged_append_is_on_the_replica(replicating: tuple[str, redis.asyncio.Redis]) -> None:
    url, replica = replicating
    async with EventLog.open(url, durability="replicated(1)", namespace="r") as log:
        chat = log.tenant("t").conversation("c")
        for number in range(50):
            appended = await chat.add(user(str(number)))
            [(entry, _)] = await replica.xrevrange(await _log_key(replica), count=1)
            assert entry.decode() == appended.cursor.entry_id


async def test_an_append_that_no_replica_holds_is_of_unknown_outcome_and_confirmed_later(
    replicating: tuple[str, redis.asyncio.Redis],
) -> None:
    url, replica = replicating
    async with EventLog.open(url, durability="replicated(1)", namespace="r") as log:
        first = await log.tenant("t").conversation("c").add(user("on both"))
    async with EventLog.open(url, durability="replicated(1)", namespace="r", deadline=0.6) as log:
        chat = log.tenant("t").conversation("c")
        process = int((await replica.info("server"))["process_id"])
        os.kill(process, signal.SIGSTOP)
        try:
            with pytest.raises(OutcomeUnknown, match="is on the primary, but 0 of 1 replicas hold it") as unknown:
                await chat.add(user("on one"), operation_id="mine")
            assert unknown.value.operation_id == "mine"
            with pytest.raises(OutcomeUnknown):
                await chat.add(user("on one"), operation_id="mine")
            with pytest.raises(VersionConflict):
                await chat.add(user("refused all the same"), expected=first.cursor)
        finally:
            os.kill(process, signal.SIGCONT)
    async with EventLog.open(url, durability="replicated(1)", namespace="r") as log:
        confirmed = await log.tenant("t").conversation("c").add(user("on one"), operation_id="mine")
        assert confirmed.duplicate
        [(entry, _)] = await replica.xrevrange(await _log_key(replica), count=1)
        assert entry.decode() == confirmed.cursor.entry_id


async def _log_key(client: redis.asyncio.Redis) -> bytes:
    [key] = [key async for key in client.scan_iter("{r:*}:log:*")]
    return bytes(key)
