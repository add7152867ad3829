"""Clusters for the tests: one that all share, and one for each test that breaks it."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import pytest
from redis.asyncio import RedisCluster

from chaos.nodes import Nodes
from eventlog import EventLog
from eventlog.server.binary import find
from eventlog.store.redis.keys import Keys


def executable(config: pytest.Config) -> str:
    """The embedded server's, or redis-server where that is asked for."""
    found = shutil.which("redis-server") if config.getoption("server") == "redis" else str(find(None).path)
    assert found, "redis-server is not on PATH"
    return found


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Nodes]:
    """A cluster that nobody breaks."""
    with Nodes(executable(request.config)) as started:
        yield started


@pytest.fixture
def own_cluster(request: pytest.FixtureRequest) -> Iterator[Nodes]:
    """A cluster that this test alone uses, and may mistreat."""
    with Nodes(executable(request.config)) as started:
        yield started


@pytest.fixture
def keys() -> Keys:
    """The keys of a namespace that nobody else uses."""
    return Keys(f"t{uuid4().hex[:12]}", 16)


@pytest.fixture
async def client(cluster: Nodes) -> AsyncIterator[RedisCluster]:
    """A plain client of the shared cluster."""
    async with RedisCluster.from_url(cluster.url) as opened:
        yield opened


@pytest.fixture
async def one(cluster: Nodes, keys: Keys) -> AsyncIterator[EventLog]:
    """A fresh log on the shared cluster."""
    async with EventLog.open(cluster.url, namespace=keys.namespace) as opened:
        yield opened
