"""Every store of readers passes one suite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from eventlog.store.conformance.readers import ReaderStoreConformance
from eventlog.store.memory import MemoryStore
from eventlog.store.memory_readers import MemoryReaders
from eventlog.store.redis.readers import RedisReaders
from eventlog.store.redis.store import RedisStore

pytestmark = pytest.mark.anyio


class TestMemoryReaders(ReaderStoreConformance):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore(partitions=4)

    @pytest.fixture
    def readers(self, store: MemoryStore) -> MemoryReaders:
        return MemoryReaders(store)


class TestRedisReaders(ReaderStoreConformance):
    @pytest.fixture
    async def store(self, server: str) -> AsyncIterator[RedisStore]:
        store = await RedisStore.connect(server, namespace=f"t{uuid4().hex[:12]}", partitions=4, deadline=10)
        yield store
        await store.close()

    @pytest.fixture
    async def readers(self, store: RedisStore) -> AsyncIterator[RedisReaders]:
        readers = RedisReaders(store)
        yield readers
        await readers.close()
