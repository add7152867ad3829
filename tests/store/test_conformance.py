"""Every store passes one suite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from redis.asyncio import Redis, from_url

from eventlog.identity import LogId, partition_of
from eventlog.store.conformance import LIMITS, PARTITIONS, FeedEntry, LogStoreConformance
from eventlog.store.memory import MemoryStore
from eventlog.store.port import LogStore
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.store import RedisStore

pytestmark = pytest.mark.anyio


class TestMemoryStore(LogStoreConformance):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore(partitions=PARTITIONS, limits=LIMITS)

    async def mark_deleted(self, store: LogStore, log: LogId) -> None:
        assert isinstance(store, MemoryStore)
        await store.mark_deleted(log)

    async def trim(self, store: LogStore, log: LogId, version: int) -> None:
        assert isinstance(store, MemoryStore)
        await store.trim(log, version)

    async def lose(self, store: LogStore, log: LogId, version: int) -> None:
        assert isinstance(store, MemoryStore)
        kept = store._logs[log.path]
        del kept.entries[version:]
        kept.operations = {
            operation: record for operation, record in kept.operations.items() if record[0].first <= version
        }
        del store.feeds[partition_of(log.path, PARTITIONS)][version:]

    async def feed(self, store: LogStore, log: LogId) -> list[FeedEntry]:
        assert isinstance(store, MemoryStore)
        entries = store.feeds[partition_of(log.path, PARTITIONS)]
        return [FeedEntry(entry.log.path, entry.first, entry.events, entry.kinds, entry.stamp) for entry in entries]


class TestRedisStore(LogStoreConformance):
    @pytest.fixture
    async def store(self, server: str) -> AsyncIterator[RedisStore]:
        self.keys = Keys(f"t{uuid4().hex[:12]}", PARTITIONS)
        store = await RedisStore.connect(
            server, namespace=self.keys.namespace, partitions=PARTITIONS, limits=LIMITS, deadline=10
        )
        client: Redis
        async with from_url(server) as client:
            self.client = client
            yield store
        await store.close()

    async def mark_deleted(self, store: LogStore, log: LogId) -> None:
        await self.client.hset(self.keys.of_log(log).head, "state", "deleted")

    async def trim(self, store: LogStore, log: LogId, version: int) -> None:
        (last,) = await store.read(log, version, version, 1)
        keys = self.keys.of_log(log)
        await self.client.hset(keys.head, "base", log.cursor(last.version, last.stamp).entry_id)
        await self.client.xtrim(keys.log, minid=f"{version + 1}", approximate=False)

    async def lose(self, store: LogStore, log: LogId, version: int) -> None:
        """As a server does that was restored from an older file."""
        entries = await store.read(log, 1, None, 1_000)
        keys = self.keys.of_log(log)
        kept = [f"{entry.version}-{entry.stamp}" for entry in entries[:version]]
        records = await self.client.hgetall(keys.ops)
        feed = await self.client.xrange(keys.feed)
        await self.client.delete(keys.log, keys.ops, keys.feed)
        for identity, entry in zip(kept, entries, strict=False):
            await self.client.xadd(keys.log, {"e": entry.document}, id=identity)
        for operation, record in records.items():
            if int(record.partition(b":")[0]) <= version:
                await self.client.hset(keys.ops, operation, record)
        for identity, fields in feed[:version]:
            await self.client.xadd(keys.feed, fields, id=identity)
        await self.client.hset(keys.head, "last", kept[-1])

    async def feed(self, store: LogStore, log: LogId) -> list[FeedEntry]:
        entries = await self.client.xrange(self.keys.of_log(log).feed)
        assert [identity for identity, _ in entries] == [b"0-%d" % number for number in range(1, len(entries) + 1)]
        return [
            FeedEntry(
                fields[b"c"].decode(), int(fields[b"f"]), int(fields[b"n"]), fields[b"k"].decode(), int(fields[b"s"])
            )
            for _, fields in entries
        ]
