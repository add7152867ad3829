"""How a test makes a server forget."""

from __future__ import annotations

import shutil

from redis.asyncio import from_url

from eventlog import Conversation, EventLog
from eventlog.store.memory import MemoryStore
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.store import RedisStore
from tests.loss.server import Server


async def keep(server: Server) -> None:
    """Remember what it holds."""
    await server.stop()
    shutil.copytree(server.files, server.home / "kept")
    await server.start()


async def lose(server: Server) -> None:
    """Let it forget what came after ``keep``, as one that is restored from a backup does."""
    await server.stop()
    shutil.rmtree(server.files)
    shutil.copytree(server.home / "kept", server.files)
    await server.start()


async def trim(log: EventLog, url: str, conversation: Conversation, version: int) -> None:
    """Trim a log up to this version, as the layout says."""
    store = log.store
    if isinstance(store, MemoryStore):
        await store.trim(conversation.log, version)
        return
    keys = keys_of(store).of_log(conversation.log)
    [last] = await store.read(conversation.log, version, version, 1)
    async with from_url(url) as client:
        await client.hset(keys.head, "base", f"{last.version}-{last.stamp}")
        await client.xtrim(keys.log, minid=f"{version + 1}", approximate=False)


def keys_of(store: object) -> Keys:
    assert isinstance(store, RedisStore)
    return store._keys
