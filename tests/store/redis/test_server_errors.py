"""What the server refuses, forgets or breaks: nothing is half written, and the store recovers or says why."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from redis.asyncio import Redis

from eventlog.errors import EventLogError, ServerUnfit
from eventlog.store.conformance.suite import LEASE_MS, LOG, notes, put, start
from eventlog.store.port import OPERATION_WINDOW, Limits, RunClaim, Step
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.store import RedisStore
from tests.store.redis.conftest import connected

pytestmark = pytest.mark.anyio

READ = {
    b"stream": lambda client, key: client.xrange(key),
    b"hash": lambda client, key: client.hgetall(key),
    b"zset": lambda client, key: client.zrange(key, 0, -1, withscores=True),
    b"string": lambda client, key: client.get(key),
}


async def stored(client: Redis, keys: Keys) -> dict[bytes, Any]:
    """Everything that the namespace holds."""
    found = sorted([key async for key in client.scan_iter(f"*{keys.namespace}*", count=1_000)])
    return {key: await READ[await client.type(key)](client, key) for key in found}


async def test_a_server_out_of_memory_writes_nothing_and_is_unfit(
    own_store: RedisStore, own_client: Redis, keys: Keys
) -> None:
    await start(own_store, "run-1")
    before = await stored(own_client, keys)
    await own_client.config_set("maxmemory-policy", "noeviction")
    await own_client.config_set("maxmemory", 1_000_000)
    for operation in ("op-1", "op-2"):
        with pytest.raises(ServerUnfit, match=r"the server is out of memory and wrote nothing: .*; raise maxmemory"):
            await put(own_store, notes(*range(5)), operation)
    assert (await own_store.head(LOG)).last.version == 1
    await own_client.config_set("maxmemory", 0)
    assert await stored(own_client, keys) == before
    assert (await put(own_store, 1, "op-1")).first == 2


async def test_a_replica_writes_nothing_and_is_unfit(own_store: RedisStore, own_client: Redis) -> None:
    await put(own_store, 0, "op-0")
    await own_client.execute_command("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(ServerUnfit, match=r"the server is a replica and wrote nothing: .*; connect to its primary"):
        await put(own_store, 1, "op-1")
    assert (await own_store.head(LOG)).last.version == 1
    await own_client.execute_command("REPLICAOF", "NO", "ONE")
    assert (await put(own_store, 1, "op-1")).first == 2


async def test_a_user_without_the_right_is_told(own_server: str, own_client: Redis, keys: Keys) -> None:
    await own_client.execute_command("ACL", "SETUSER", "default", "+@all", "-evalsha", "-eval")
    async with connected(own_server, keys) as store:
        with pytest.raises(ServerUnfit, match=r"the user may not do this: .*; grant it"):
            await put(store, 1, "op-1")


@pytest.mark.parametrize("command", ["xadd", "hset", "hdel", "rename", "zadd"])
async def test_a_command_that_the_user_may_not_give_stops_a_first_append_before_it_writes(
    own_server: str, own_client: Redis, keys: Keys, command: str
) -> None:
    await own_client.execute_command("ACL", "SETUSER", "default", "+@all")
    async with connected(own_server, keys) as store:
        await own_client.execute_command("ACL", "SETUSER", "default", f"-{command}")
        before = await stored(own_client, keys)
        with pytest.raises(ServerUnfit, match="the user may not do this"):
            await put(store, notes(1, 2), "op-1")
        assert await stored(own_client, keys) == before
        await own_client.execute_command("ACL", "SETUSER", "default", "+@all")
        assert (await put(store, notes(1, 2), "op-1")).first == 1


async def test_a_full_generation_of_operations_that_may_not_be_turned_stops_an_append_before_it_writes(
    own_server: str, own_client: Redis, keys: Keys
) -> None:
    async with connected(own_server, keys) as store:
        for number in range(OPERATION_WINDOW):
            await put(store, number, f"op-{number}")
        await own_client.execute_command("ACL", "SETUSER", "default", "-rename")
        before = await stored(own_client, keys)
        with pytest.raises(ServerUnfit, match="the user may not do this"):
            await put(store, 1, "next")
        assert await stored(own_client, keys) == before
        await own_client.execute_command("ACL", "SETUSER", "default", "+@all")
        assert (await put(store, 1, "next")).first == OPERATION_WINDOW + 1


@pytest.mark.parametrize("which", ["log", "head", "ops", "old_ops", "feed", "conversations"])
async def test_a_key_of_the_wrong_type_stops_a_first_append_before_it_writes(
    store: RedisStore, client: Redis, keys: Keys, which: str
) -> None:
    await client.set(getattr(keys.of_log(LOG), which), "mine")
    before = await stored(client, keys)
    with pytest.raises(EventLogError, match="WRONGTYPE"):
        await put(store, notes(1, 2), "op-1")
    assert await stored(client, keys) == before


@pytest.mark.parametrize("which", ["log", "head", "ops", "old_ops", "feed"])
@pytest.mark.parametrize("operations", [1, OPERATION_WINDOW])
async def test_a_key_of_the_wrong_type_stops_a_later_append_before_it_writes(
    store: RedisStore, client: Redis, keys: Keys, which: str, operations: int
) -> None:
    for number in range(operations):
        await put(store, number, f"op-{number}")
    key = getattr(keys.of_log(LOG), which)
    await client.delete(key)
    await client.set(key, "mine")
    before = await stored(client, keys)
    with pytest.raises(EventLogError, match="WRONGTYPE"):
        await put(store, notes(1, 2), "next")
    assert await stored(client, keys) == before


async def test_a_run_is_opened_and_closed_beside_a_key_of_the_wrong_type_wholly_or_not_at_all(
    store: RedisStore, client: Redis, keys: Keys
) -> None:
    await start(store, "run-1")
    await client.delete(keys.of_log(LOG).feed)
    await client.set(keys.of_log(LOG).feed, "mine")
    before = await stored(client, keys)
    for claim in (
        RunClaim("run-1", Step.GO_ON, "aa", LEASE_MS, answers=(1,)),
        RunClaim("run-1", Step.GO_ON, "aa", LEASE_MS, closes=True),
        RunClaim("run-1", Step.FORCE, "bb", LEASE_MS),
    ):
        with pytest.raises(EventLogError, match="WRONGTYPE"):
            await put(store, 1, "op-1", claim=claim)
    assert await stored(client, keys) == before


async def test_operations_that_the_server_lost_do_not_tear_the_append_that_turns_their_generation(
    store: RedisStore, client: Redis, keys: Keys
) -> None:
    for number in range(OPERATION_WINDOW):
        await put(store, number, f"op-{number}")
    await client.delete(keys.of_log(LOG).ops)
    outcome = await put(store, notes(1, 2), "next")
    assert outcome.first == OPERATION_WINDOW + 1
    assert (await store.head(LOG)).last == outcome.cursor
    assert (await put(store, 3, "after")).first == OPERATION_WINDOW + 3


async def test_a_feed_that_another_wrote_to_stops_an_append_before_it_writes(
    store: RedisStore, client: Redis, keys: Keys
) -> None:
    await put(store, 1, "op-1")
    await client.xadd(keys.of_log(LOG).feed, {"c": "mine"})
    before = await stored(client, keys)
    with pytest.raises(EventLogError):
        await put(store, 2, "op-2")
    assert await stored(client, keys) == before


async def test_a_log_that_is_longer_than_its_head_says_stops_an_append_before_it_writes(
    store: RedisStore, client: Redis, keys: Keys
) -> None:
    outcome = await put(store, notes(1, 2, 3), "op-1")
    await client.hset(keys.of_log(LOG).head, "last", f"1-{outcome.cursor.stamp}")
    before = await stored(client, keys)
    with pytest.raises(EventLogError):
        await put(store, notes(4, 5, 6), "op-2")
    assert await stored(client, keys) == before


async def test_an_operation_of_many_thousand_results_is_whole(server: str, client: Redis, keys: Keys) -> None:
    async with connected(server, keys, limits=Limits(events=20_000)) as store:
        await start(store, "run-1")
        calls = tuple(range(1, 9_001))
        claim = RunClaim("run-1", Step.GO_ON, "aa", LEASE_MS, answers=calls)
        outcome = await put(store, notes(*calls), "op-1", claim=claim)
        assert (outcome.first, outcome.cursor.version) == (2, 9_001)
        assert (await store.head(LOG)).last == outcome.cursor
        await put(store, 1, "end", claim=RunClaim("run-1", Step.GO_ON, "aa", LEASE_MS, closes=True))
        assert not [
            name for name in await client.hkeys(keys.of_log(LOG).head) if name.startswith((b"run:", b"answer:"))
        ]


async def test_hundreds_of_superseded_runs_are_closed(server: str, keys: Keys) -> None:
    async with connected(server, keys) as store:
        runs = tuple(f"run-{number}" for number in range(500))
        await asyncio.gather(*(start(store, run, exclusive=False) for run in runs))
        assert len((await store.head(LOG)).runs) == 500
        await put(store, 1, "op-1", alone=True, supersedes=runs)
        assert (await store.head(LOG)).runs == ()
        await start(store, "next")


async def test_a_script_flush_in_mid_use_is_recovered_from(own_store: RedisStore, own_client: Redis) -> None:
    for number in range(20):
        flushed = own_client.script_flush()
        appended = (put(own_store, notes(1, 2), f"op-{number}-{index}") for index in range(10))
        await asyncio.gather(*appended, flushed)
    await own_client.script_flush()
    assert (await put(own_store, 1, "op-last")).first == 401
    assert [entry.version for entry in await own_store.read(LOG, 1, None, 1_000)] == list(range(1, 402))


async def test_the_script_is_sent_whole_only_when_the_server_does_not_know_it(
    own_store: RedisStore, own_client: Redis
) -> None:
    async def counts() -> tuple[int, int]:
        stats = await own_client.info("commandstats")
        calls = [stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("evalsha", "eval")]
        return calls[0], calls[1]

    for number in range(5):
        await put(own_store, number, f"op-{number}")
    assert await counts() == (5, 1)
    await own_client.script_flush()
    for number in range(5, 10):
        await put(own_store, number, f"op-{number}")
    assert await counts() == (10, 2)


async def test_killed_connections_are_made_anew_and_nothing_is_doubled(
    own_store: RedisStore, own_client: Redis
) -> None:
    random = Random(20_306)

    async def kill(connections: int) -> None:
        killed = 0
        while killed < connections:
            killed += await own_client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            await asyncio.sleep(random.random() * 0.02)

    killer = asyncio.ensure_future(kill(20))
    outcomes = []
    while not killer.done():
        number = len(outcomes)
        outcomes += await asyncio.gather(*(put(own_store, notes(1, 2), f"op-{number + index}") for index in range(5)))
        assert (await own_store.head(LOG)).last.version == 2 * len(outcomes)
    assert sorted(outcome.first for outcome in outcomes) == list(range(1, 2 * len(outcomes), 2))
    entries = await own_store.read(LOG, 1, None, 10_000)
    assert [entry.version for entry in entries] == list(range(1, 2 * len(outcomes) + 1))


async def test_a_missing_password_is_unfit(own_server: str, own_client: Redis, keys: Keys) -> None:
    await own_client.config_set("requirepass", "right")
    with pytest.raises(ServerUnfit, match="password"):
        await RedisStore.connect(own_server, namespace=keys.namespace, deadline=1)


async def test_a_wrong_password_is_unfit(own_server: str, own_client: Redis, keys: Keys) -> None:
    await own_client.config_set("requirepass", "right")
    url = own_server.replace("unix://", "unix://:wrong@")
    with pytest.raises(ServerUnfit, match="refuses the user or password") as unfit:
        await RedisStore.connect(url, namespace=keys.namespace, deadline=1)
    assert "wrong" not in str(unfit.value).replace("WRONGPASS", "")


async def test_the_right_password_opens(own_server: str, own_client: Redis, keys: Keys) -> None:
    await own_client.config_set("requirepass", "right")
    url = own_server.replace("unix://", "unix://:right@")
    async with connected(url, keys, deadline=5) as store:
        assert (await put(store, 1, "op-1")).first == 1
