"""A primary is killed under load and its replica takes its place."""

from __future__ import annotations

import time

import anyio
import pytest

from chaos.nodes import Nodes
from eventlog import EventLog
from eventlog.store.redis.keys import Keys
from tests.cluster.load import Writer, assert_feeds_are_dense, caught_up, following, writing, wrote

pytestmark = pytest.mark.anyio
WRITERS = 24


def on(nodes: Nodes, keys: Keys, writers: list[Writer], port: int) -> list[Writer]:
    """Those whose partitions the primary at this port serves."""
    return [writer for writer in writers if nodes.primary_of(keys.of_log(writer.chat.log).log).port == port]


async def test_what_a_replica_holds_survives_its_primary_and_writers_go_on(own_cluster: Nodes, keys: Keys) -> None:
    killed, heir = own_cluster.primaries[1], own_cluster.replicas[1]
    async with EventLog.open(
        own_cluster.primaries[1].url, namespace=keys.namespace, durability="replicated(1)", deadline=20
    ) as log:
        async with writing(log, WRITERS) as writers:
            await wrote(writers, since=0)
            hit = on(own_cluster, keys, writers, killed.port)
            others = [writer for writer in writers if writer not in hit]
            assert hit
            assert others

            killed.kill()
            moment = time.monotonic()
            await wrote(others, since=moment, count=1)
            assert not heir.is_primary(), "the others waited for the promotion"
            with anyio.fail_after(30):
                while not heir.is_primary():
                    await anyio.sleep(0.02)
            moment = time.monotonic()
            await wrote(others, since=moment)
            # The promoted one has no replica yet: nothing there is acknowledged until it has.
            assert sum(writer.since(moment) for writer in hit) == 0
            with anyio.fail_after(30):
                while not any(writer.unknown for writer in hit):
                    await anyio.sleep(0.02)
            await anyio.to_thread.run_sync(killed.start)
            await wrote(writers, since=time.monotonic())
        for writer in writers:
            await writer.assert_nothing_is_lost_or_doubled()
        await assert_feeds_are_dense(log, writers)


async def test_a_follower_of_the_tenant_goes_on_over_a_promotion(own_cluster: Nodes, keys: Keys) -> None:
    """A promotion in order loses nothing, with any durability: the primary hands over."""
    heir = own_cluster.replicas[0]
    async with EventLog.open(own_cluster.url, namespace=keys.namespace, deadline=20) as log:
        async with following(log) as seen:
            async with writing(log, WRITERS) as writers:
                await wrote(writers, since=0)
                heir.ask("CLUSTER", "FAILOVER")
                with anyio.fail_after(30):
                    while not heir.is_primary():
                        await anyio.sleep(0.02)
                await wrote(writers, since=time.monotonic())
            await caught_up(seen, writers)
        for writer in writers:
            await writer.assert_nothing_is_lost_or_doubled()
        await assert_feeds_are_dense(log, writers)
