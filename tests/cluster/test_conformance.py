"""A log on a cluster passes the suites that every store passes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from redis.asyncio import RedisCluster

from chaos.nodes import Nodes
from eventlog.store.conformance import LIMITS, PARTITIONS, ReaderStoreConformance, ViewStoreConformance
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.readers import RedisReaders
from eventlog.store.redis.store import RedisStore
from eventlog.store.redis.views import RedisViews
from tests.store import test_conformance as single

pytestmark = pytest.mark.anyio


class TestClusterStore(single.TestRedisStore):
    @pytest.fixture
    async def store(self, cluster: Nodes) -> AsyncIterator[RedisStore]:
        self.keys = Keys(f"t{uuid4().hex[:12]}", PARTITIONS)
        store = await RedisStore.connect(
            cluster.url, namespace=self.keys.namespace, partitions=PARTITIONS, limits=LIMITS, deadline=10
        )
        async with RedisCluster.from_url(cluster.url) as client:
            self.client = client  # type: ignore[assignment]
            yield store
        await store.close()


class _OnCluster:
    @pytest.fixture
    async def store(self, cluster: Nodes) -> AsyncIterator[RedisStore]:
        store = await RedisStore.connect(cluster.url, namespace=f"t{uuid4().hex[:12]}", partitions=4, deadline=10)
        yield store
        await store.close()

    @pytest.fixture
    async def readers(self, store: RedisStore) -> AsyncIterator[RedisReaders]:
        readers = RedisReaders(store)
        yield readers
        await readers.close()


class TestClusterReaders(_OnCluster, ReaderStoreConformance):
    pass


class TestClusterViews(_OnCluster, ViewStoreConformance):
    @pytest.fixture
    def views(self, store: RedisStore) -> RedisViews:
        return RedisViews(store)
