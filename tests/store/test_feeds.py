"""The feeds: what was appended, in order, partition by partition."""

from __future__ import annotations

import anyio
import pytest

from eventlog import EventLog, user
from eventlog.store.memory import MemoryStore
from eventlog.store.redis.store import RedisStore

pytestmark = pytest.mark.anyio


def store_of(log: EventLog) -> MemoryStore | RedisStore:
    assert isinstance(log.store, (MemoryStore, RedisStore))
    return log.store


async def test_each_append_is_named_once_in_order(log: EventLog) -> None:
    store = store_of(log)
    chat = log.tenant("t").conversation("c")
    first = await chat.add(user("a"), user("b"))
    second = await chat.add(user("c"))
    [partition] = [number for number, end in enumerate(await store.feed_ends()) if end]
    entries = await store.read_feed(partition, 1, 10)
    assert [(entry.seq, entry.log, entry.first, entry.events, entry.stamp) for entry in entries] == [
        (1, chat.log, 1, 2, first.cursor.stamp),
        (2, chat.log, 3, 1, second.cursor.stamp),
    ]
    assert await store.read_feed(partition, 2, 10) == entries[1:]
    assert await store.read_feed(partition, 1, 1) == entries[:1]
    assert await store.read_feed(partition, 1, 0) == []


async def test_waiting_ends_with_the_next_append_or_with_time(log: EventLog) -> None:
    store = store_of(log)
    chat = log.tenant("t").conversation("c")
    ends = await store.feed_ends()
    assert await store.wait_feeds(ends, 0.01, 10) == []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(chat.add, user("a"))
        with anyio.fail_after(5):
            found = await store.wait_feeds(ends, 4, 10)
            while not found:
                found = await store.wait_feeds(ends, 4, 10)
    assert [(entry.log, entry.first) for entry in found] == [(chat.log, 1)]
    assert await store.wait_feeds(ends, 4, 10) == found
