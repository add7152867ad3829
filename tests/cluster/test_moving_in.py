"""A log moves from one server to a cluster as it is: keys are copied, cursors go on."""

from __future__ import annotations

import pytest
from redis.asyncio import RedisCluster, from_url

from chaos.nodes import Nodes
from eventlog import EventLog, user
from eventlog.store.redis.keys import Keys

pytestmark = pytest.mark.anyio


async def test_cursors_and_operations_of_a_single_server_go_on_on_the_cluster(
    server: str, cluster: Nodes, client: RedisCluster, keys: Keys
) -> None:
    async with EventLog.open(server, namespace=keys.namespace) as log:
        cursors = {}
        for number in range(64):
            chat = log.tenant("acme").conversation(f"c{number}")
            cursors[chat.id] = (await chat.add(user("one"), user("two"), operation_id="first")).cursor
    async with from_url(server) as source:
        async for key in source.scan_iter(f"*{keys.namespace}:*"):
            await client.restore(key, 0, await source.dump(key))
    async with EventLog.open(cluster.url, namespace=keys.namespace) as log:
        for id, cursor in cursors.items():
            chat = log.tenant("acme").conversation(id)
            again = await chat.add(user("one"), user("two"), operation_id="first")
            assert (again.duplicate, again.cursor) == (True, cursor)
            assert (await chat.add(user("three"), operation_id="second")).first == 3
            assert [event.id async for event in chat.read(cursor)] == ["second.0"]
