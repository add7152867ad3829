"""Every store of views passes one suite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from eventlog.errors import InvalidInput
from eventlog.store.beside import views_beside
from eventlog.store.conformance import ViewStoreConformance
from eventlog.store.memory import MemoryStore
from eventlog.store.memory_readers import MemoryReaders
from eventlog.store.memory_views import MemoryViews
from eventlog.store.redis.readers import RedisReaders
from eventlog.store.redis.store import RedisStore
from eventlog.store.redis.views import RedisViews

pytestmark = pytest.mark.anyio
PARTITIONS = 4


class TestMemoryViews(ViewStoreConformance):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore(partitions=PARTITIONS)

    @pytest.fixture
    def readers(self, store: MemoryStore) -> MemoryReaders:
        return MemoryReaders.of(store)

    @pytest.fixture
    def views(self, store: MemoryStore) -> MemoryViews:
        return MemoryViews.of(store)


class TestRedisViews(ViewStoreConformance):
    @pytest.fixture
    async def store(self, server: str) -> AsyncIterator[RedisStore]:
        store = await RedisStore.connect(server, namespace=f"t{uuid4().hex[:12]}", partitions=PARTITIONS, deadline=10)
        yield store
        await store.close()

    @pytest.fixture
    async def readers(self, store: RedisStore) -> AsyncIterator[RedisReaders]:
        readers = RedisReaders(store)
        yield readers
        await readers.close()

    @pytest.fixture
    def views(self, store: RedisStore) -> RedisViews:
        return RedisViews(store)


def test_a_memory_store_has_one_store_of_views() -> None:
    store = MemoryStore()
    assert views_beside(store) is views_beside(store) is MemoryViews.of(store)
    assert views_beside(MemoryStore()) is not views_beside(store)


def test_a_store_of_another_kind_has_none() -> None:
    class Other(MemoryStore):
        pass

    assert isinstance(views_beside(Other()), MemoryViews)
    with pytest.raises(InvalidInput, match="a object has no views: projections need a store with feeds, readers and"):
        views_beside(object())  # type: ignore[arg-type]
