"""Stores on real servers, with a plain client beside them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from redis.asyncio import Redis, from_url

from eventlog.store.redis.keys import Keys
from eventlog.store.redis.store import RedisStore
from tests import servers


@asynccontextmanager
async def connected(url: str, keys: Keys, **options: Any) -> AsyncIterator[RedisStore]:
    """A store on the namespace of ``keys``, closed whatever happens."""
    opened = await RedisStore.connect(url, namespace=keys.namespace, **options)
    try:
        yield opened
    finally:
        await opened.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "own_server" in metafunc.fixturenames:
        kinds = [kind for kind in servers.kinds(metafunc.config.getoption("server")) if kind != "docker"]
        metafunc.parametrize("own_server", kinds or ["embedded"], indirect=True)


@pytest.fixture
def own_server(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server that this test alone uses, and may mistreat."""
    home = Path(tempfile.mkdtemp(prefix="own"))  # short: a socket's path has at most 107 bytes
    with servers.Started(home) as started:
        yield started.url(request.param)
    shutil.rmtree(home)


@pytest.fixture
def keys() -> Keys:
    """The keys of a namespace that nobody else uses."""
    return Keys(f"t{uuid4().hex[:12]}", 16)


@pytest.fixture
async def store(server: str, keys: Keys) -> AsyncIterator[RedisStore]:
    async with connected(server, keys, deadline=10) as opened:
        yield opened


@pytest.fixture
async def client(server: str) -> AsyncIterator[Redis]:
    async with from_url(server) as opened:
        yield opened


@pytest.fixture
async def own_store(own_server: str, keys: Keys) -> AsyncIterator[RedisStore]:
    async with connected(own_server, keys, deadline=10) as opened:
        yield opened


@pytest.fixture
async def own_client(own_server: str) -> AsyncIterator[Redis]:
    async with from_url(own_server) as opened:
        yield opened
