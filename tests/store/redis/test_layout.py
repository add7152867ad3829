"""How a namespace is laid out, and that it is checked when a store connects."""

from __future__ import annotations

import asyncio
import re
from importlib.resources import files

import pytest
from redis.asyncio import Redis

from eventlog.errors import EventLogError, LayoutMismatch
from eventlog.identity import LogId, partition_of
from eventlog.store.conformance.suite import LOG, going_on, notes, put, start
from eventlog.store.conformance.tenancy import HOSTILE
from eventlog.store.port import OPERATION_WINDOW
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.store import RedisStore

pytestmark = pytest.mark.anyio
SCRIPTS = files("eventlog.store.redis")


def hash_tag(key: str) -> str:
    """The part of a key that a cluster hashes: between the first { and the next }, when not empty."""
    begin = key.index("{")
    tag = key[begin + 1 : key.index("}", begin)]
    assert tag
    return tag


async def test_the_first_to_connect_fixes_the_partitions(server: str, client: Redis, keys: Keys) -> None:
    first = await RedisStore.connect(server, namespace=keys.namespace, partitions=4)
    assert first.partitions == 4
    assert await client.hgetall(keys.meta) == {b"layout": b"1", b"partitions": b"4"}
    second = await RedisStore.connect(server, namespace=keys.namespace)
    assert second.partitions == 4
    with pytest.raises(LayoutMismatch) as refused:
        await RedisStore.connect(server, namespace=keys.namespace, partitions=16)
    assert str(refused.value) == (
        f"namespace '{keys.namespace}' has 4 partitions, not 16: leave partitions out, or use another namespace"
    )
    await first.close()
    await second.close()


async def test_of_those_that_lay_out_at_once_one_decides(server: str, keys: Keys) -> None:
    async def attempt(partitions: int) -> int:
        try:
            store = await RedisStore.connect(server, namespace=keys.namespace, partitions=partitions)
        except LayoutMismatch:
            return 0
        await store.close()
        return store.partitions

    counts = await asyncio.gather(*(attempt(partitions) for partitions in range(1, 9)))
    assert len([count for count in counts if count]) == 1


async def test_a_namespace_of_another_layout_is_refused_and_left_as_it_is(
    server: str, client: Redis, keys: Keys
) -> None:
    meta = {b"layout": b"2", b"partitions": b"16"}
    await client.hset(keys.meta, mapping=meta)
    with pytest.raises(LayoutMismatch, match=r"has layout b'2', this version reads 1: use the version that wrote it"):
        await RedisStore.connect(server, namespace=keys.namespace)
    assert await client.hgetall(keys.meta) == meta


async def test_a_namespace_whose_number_of_partitions_is_no_number_is_refused(
    server: str, client: Redis, keys: Keys
) -> None:
    for wrong in ("many", "0", "-1", "16.5", ""):
        await client.hset(keys.meta, mapping={"layout": "1", "partitions": wrong})
        with pytest.raises(EventLogError):
            await RedisStore.connect(server, namespace=keys.namespace)


async def test_a_namespace_that_is_something_else_is_refused(server: str, client: Redis, keys: Keys) -> None:
    await client.set(keys.meta, "mine")
    with pytest.raises(EventLogError, match="WRONGTYPE"):
        await RedisStore.connect(server, namespace=keys.namespace)
    assert await client.get(keys.meta) == b"mine"


@pytest.mark.parametrize("partitions", [0, -1, 16_385])
async def test_a_number_of_partitions_out_of_range_is_refused(server: str, keys: Keys, partitions: int) -> None:
    with pytest.raises(LayoutMismatch, match="partitions: choose 1 to 16,384"):
        await RedisStore.connect(server, namespace=keys.namespace, partitions=partitions)


async def test_the_keys_are_those_of_the_layout(store: RedisStore, client: Redis, keys: Keys) -> None:
    await start(store, "run-1", exclusive=False)
    for number in range(OPERATION_WINDOW + 1):
        await put(store, number, f"op-{number}", claim=going_on("run-1"))
    base = f"{{{keys.namespace}:{partition_of('acme/support', 16)}}}:"
    found = {key.decode(): (await client.type(key)).decode() async for key in client.scan_iter(f"*{keys.namespace}*")}
    assert found == {
        f"{base}log:acme/support": "stream",
        f"{base}head:acme/support": "hash",
        f"{base}ops:acme/support": "hash",
        f"{base}old-ops:acme/support": "hash",
        f"{base}feed": "stream",
        f"{base}conversations": "zset",
        f"{keys.namespace}:meta": "hash",
    }


async def test_entries_are_those_of_the_layout(store: RedisStore, client: Redis, keys: Keys) -> None:
    outcome = await put(store, notes(1, 2), "op-1")
    where, stamp = keys.of_log(LOG), outcome.cursor.stamp
    entries = await store.read(LOG, 1, None, 10)
    assert await client.xrange(where.log) == [
        (f"{entry.version}-{stamp}".encode(), {b"e": entry.document}) for entry in entries
    ]
    assert await client.xrange(where.feed) == [
        (b"0-1", {b"c": b"acme/support", b"f": b"1", b"n": b"2", b"k": b"note", b"s": b"%d" % stamp})
    ]
    assert await client.hget(where.head, "last") == f"2-{stamp}".encode()
    assert await client.zrange(where.conversations, 0, -1) == [b"acme/support"]


async def test_every_key_of_a_partition_bears_its_hash_tag(store: RedisStore, client: Redis, keys: Keys) -> None:
    logs = [LogId(name, other) for name, other in zip(HOSTILE, reversed(HOSTILE), strict=True)]
    for log in logs:
        await put(store, 1, "op-1", log=log)
        tag = f"{keys.namespace}:{partition_of(log.path, 16)}"
        assert {hash_tag(key) for key in keys.of_log(log)} == {tag}
    tags = {f"{keys.namespace}:{partition}" for partition in range(16)}
    async for key in client.scan_iter(f"*{keys.namespace}*", count=1_000):
        assert key.decode() == keys.meta or hash_tag(key.decode()) in tags


@pytest.mark.parametrize("script", sorted(path.name for path in SCRIPTS.iterdir() if path.name.endswith(".lua")))
def test_a_script_touches_only_the_keys_it_was_given(script: str) -> None:
    code = re.sub(r"--.*", "", SCRIPTS.joinpath(script).read_text())
    each = r"^local ((?:\w+, )*\w+) = ((?:KEYS\[\d\](?:, )?)+|unpack\(KEYS(?:, 1, \d)?\))$"
    named = re.search(each, code, re.MULTILINE)
    assert named is not None, "the keys are not named in one statement"
    names = set(named[1].split(", "))
    assert named[2].startswith("unpack(") or len(names) == named[2].count("KEYS[")
    for name in names:
        values = re.findall(rf"(?:\blocal|,|^) *{name}\b[^=~()\n]*=(?!=)", code, re.MULTILINE)
        assert len(values) == 1, f"{name} is given another value"
    # `write` is a script's own way of giving many arguments to `call(command, key, …)`.
    commands = re.findall(r"\b(?:redis\.)?(?:p?call|write)\('(\w+)'(?:, *([^,()]+?) *)?[,)]", code)
    assert len(commands) == len(re.findall(r"\b(?:p?call|write)\((?!command, (?:key\b|KEYS\[key\]))", code)) > 0
    for command, key in commands:
        assert command == "TIME" or key in names or re.fullmatch(r"KEYS\[\w+\]", key), f"{command} {key}"
    renames = re.findall(r"'RENAME', *(\w+), *(\w+)", code)
    assert len(renames) == code.count("'RENAME'")
    assert all({old, new} <= names for old, new in renames)
