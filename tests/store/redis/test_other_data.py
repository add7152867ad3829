"""A server that comes back with other data under a living handle."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis

from eventlog import EventLog, LayoutMismatch, user
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.store import RedisStore

pytestmark = pytest.mark.anyio


async def cut(log: EventLog) -> None:
    """Break the connection that appends share, as a restart does."""
    assert isinstance(log.store, RedisStore)
    line = log.store._appends._line
    assert line is not None
    line.close("cut")


async def test_a_namespace_that_was_wiped_is_laid_out_as_before(server: str, keys: Keys) -> None:
    async with EventLog.open(server, namespace=keys.namespace, partitions=5) as log, Redis.from_url(server) as client:
        await log.tenant("t").conversation("c").add(user("before"))
        await client.delete(Keys(keys.namespace, 5).meta)
        await cut(log)
        await log.tenant("t").conversation("c").add(user("on"))
        assert await client.hget(Keys(keys.namespace, 5).meta, "partitions") == b"5"


async def test_a_namespace_that_was_laid_out_otherwise_is_not_written_to(server: str, keys: Keys) -> None:
    async with EventLog.open(server, namespace=keys.namespace, partitions=5) as log, Redis.from_url(server) as client:
        await log.tenant("t").conversation("c").add(user("before"))
        before = {key async for key in client.scan_iter(f"{{{keys.namespace}:*")}
        await client.hset(Keys(keys.namespace, 5).meta, "partitions", "16")
        await cut(log)
        with pytest.raises(LayoutMismatch, match="has 16 partitions now, not 5 as before"):
            await log.tenant("t").conversation("c").add(user("on"))
        with pytest.raises(LayoutMismatch):
            await log.tenant("t").conversation("other").add(user("on"))
        assert {key async for key in client.scan_iter(f"{{{keys.namespace}:*")} == before
