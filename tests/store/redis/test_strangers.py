"""Keys that another program wrote to are called unreadable; they do not crash a reader."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis

from eventlog import Draft, EventLog
from eventlog.errors import EventLogError, Unreadable
from eventlog.store.conformance.suite import LOG, put
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.store import RedisStore

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("last", "x"),
        ("last", ""),
        ("base", "x"),
        ("base", "1-"),
        ("updated", "x"),
        ("run:r", "x"),
        ("run:r", "m|1|x|0|1|1|aa|h"),
        (b"run:\xff", "m|1|1|0|1|1|aa|h"),
        ("run:r", b"m|1|1|0|1|1|aa|\xff"),
    ],
)
async def test_a_head(store: RedisStore, client: Redis, keys: Keys, field: str | bytes, value: str | bytes) -> None:
    await put(store, 1, "op-1")
    await client.hset(keys.of_log(LOG).head, field, value)
    with pytest.raises(Unreadable):
        await store.head(LOG)


async def test_an_entry_of_a_log(store: RedisStore, client: Redis, keys: Keys) -> None:
    conversation = EventLog(store).tenant(LOG.tenant).conversation(LOG.conversation)
    await conversation.append(Draft("note", {}))
    for stamp, fields in enumerate(({"x": "y"}, {"e": "{}"}), 1):
        await client.xadd(keys.of_log(LOG).log, fields, id=f"2-{stamp}")
        with pytest.raises(Unreadable):
            assert [event async for event in conversation.read()]
        await client.xdel(keys.of_log(LOG).log, f"2-{stamp}")


@pytest.mark.parametrize("path", [b"\xff/x", b"no-slash"])
async def test_a_list_of_conversations(store: RedisStore, client: Redis, keys: Keys, path: bytes) -> None:
    await put(store, 1, "op-1")
    await client.zadd(keys.conversations(3), {path: 1})
    with pytest.raises(Unreadable):
        await store.conversations(3, 0, 10)


async def test_an_operations_record(store: RedisStore, client: Redis, keys: Keys) -> None:
    outcome = await put(store, 1, "op-1")
    await client.hset(keys.of_log(LOG).ops, "op-1", "x")
    with pytest.raises(EventLogError):
        await put(store, 1, "op-1")
    assert (await store.head(LOG)).last == outcome.cursor
