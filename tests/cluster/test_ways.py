"""Nodes that are away or mislead, and what goes on without them."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from chaos.nodes import Nodes
from eventlog import EventLog, LogClosed, ServerUnavailable, user
from eventlog.store.redis.cluster import Cluster
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.store import RedisStore
from eventlog.store.redis.wire import ConnectionLost, ReplyError, pack

pytestmark = pytest.mark.anyio


async def test_a_stalled_node_keeps_nobody_from_news_of_the_others(own_cluster: Nodes, keys: Keys) -> None:
    async with EventLog.open(own_cluster.url, namespace=keys.namespace, deadline=20) as log:
        assert isinstance(log.store, RedisStore)
        stalled = own_cluster.primaries[2]
        chats = [log.tenant("acme").conversation(f"c{number}") for number in range(64)]
        there = [chat for chat in chats if own_cluster.primary_of(keys.of_log(chat.log).feed) is not stalled]
        await there[0].add(user("it is connected"))
        ends = await log.store.feed_ends()
        stalled.stall()
        try:
            await there[0].add(user("hello"))
            with anyio.fail_after(1):
                (found,) = await log.store.wait_feeds(ends, 1, 10)
            assert found.log == there[0].log
        finally:
            stalled.go_on()


async def test_who_writes_to_a_node_that_is_gone_for_good_is_told_and_the_others_are_not_disturbed(
    own_cluster: Nodes, keys: Keys
) -> None:
    gone = own_cluster.primaries[0]
    async with EventLog.open(own_cluster.url, namespace=keys.namespace, deadline=1) as log:
        chats = [log.tenant("acme").conversation(f"c{number}") for number in range(64)]
        there = {own_cluster.primary_of(keys.of_log(chat.log).feed): chat for chat in chats}
        own_cluster.replicas[0].kill()
        gone.kill()
        with pytest.raises(ServerUnavailable, match=r"(no answer|nothing was appended) within 1 s: cannot connect"):
            await there[gone].add(user("hello"))
        for node in own_cluster.primaries[1:]:
            await there[node].add(user("hello"))


async def test_a_log_on_a_cluster_that_is_closed_says_so(cluster: Nodes, keys: Keys) -> None:
    async with EventLog.open(cluster.url, namespace=keys.namespace) as log:
        chat = log.tenant("acme").conversation("c")
    with pytest.raises(LogClosed, match="the log is closed: open it again"):
        await chat.add(user("hello"))


class Misled:
    """A way to a node that sends every command to another."""

    def __init__(self, other: str) -> None:
        self._other = other.removeprefix("redis://")

    async def execute(self, _packed: bytes) -> ReplyError:
        await asyncio.sleep(0)
        return ReplyError(f"MOVED 1 {self._other}")

    async def close(self) -> None:
        pass


async def test_nodes_that_send_a_command_in_circles_are_told_of(cluster: Nodes) -> None:
    way = Cluster(cluster.url, "home")
    try:
        await way.execute(pack("TIME"))
        urls = [node.url for node in cluster.primaries]
        for number, url in enumerate(urls):
            if url in way._wires:
                await way._wires[url].close()
            way._wires[url] = Misled(urls[(number + 1) % len(urls)])  # type: ignore[assignment]
        with pytest.raises(ConnectionLost, match="the nodes of the cluster send slot 2258 in circles") as lost:
            await way.execute(pack("GET", "hello{world"))
        assert not lost.value.sent
    finally:
        await way.close()
