"""A cluster is recognised by any of its nodes, and looked at as a whole before it is used."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chaos.nodes import Node, Nodes
from eventlog import EventLog, ServerUnfit, user
from eventlog.server.check import inspect
from eventlog.store.redis.keys import Keys
from tests.cluster.conftest import executable

pytestmark = pytest.mark.anyio


async def test_any_node_is_a_way_in_also_a_replica(cluster: Nodes, keys: Keys) -> None:
    written = []
    for number, node in enumerate(cluster.all):
        async with EventLog.open(node.url, namespace=keys.namespace) as log:
            written.append(f"from node {number}")
            await log.tenant("acme").conversation(f"c{number}").add(user(written[-1]))
    async with EventLog.open(cluster.url, namespace=keys.namespace) as log:
        found = [id async for id in log.tenant("acme").conversations()]
    assert sorted(found) == [f"c{number}" for number in range(len(cluster.all))]


async def test_the_report_is_on_all_primaries_and_tells_the_weakest(cluster: Nodes) -> None:
    report = await inspect(cluster.replicas[1].url)
    assert (report.clustered, report.role, report.appendonly, report.replicas) == (True, "master", True, 1)
    assert (report.appendfsync, report.warnings) == ("everysec", ())
    weak = cluster.primaries[2].client
    weak.config_set("appendfsync", "no")
    try:
        report = await inspect(cluster.url)
        assert report.appendfsync == "no"
        assert "set it to everysec or always" in report.warnings[0].lower()
        with pytest.raises(ServerUnfit, match="needs appendfsync everysec, and the server has no"):
            async with EventLog.open(cluster.url):
                pass
    finally:
        weak.config_set("appendfsync", "everysec")


async def test_one_node_that_may_evict_is_enough_to_be_refused(cluster: Nodes) -> None:
    weak = cluster.primaries[1].client
    weak.config_set("maxmemory-policy", "allkeys-lru")
    weak.config_set("maxmemory", "100mb")
    try:
        with pytest.raises(ServerUnfit, match="maxmemory-policy allkeys-lru"):
            await inspect(cluster.url)
    finally:
        weak.config_set("maxmemory", "0")
        weak.config_set("maxmemory-policy", "noeviction")


async def test_more_replicas_than_a_primary_has_are_refused(cluster: Nodes) -> None:
    with pytest.raises(ServerUnfit, match=r"replicated\(2\) needs 2 connected replicas, the server has 1"):
        async with EventLog.open(cluster.url, durability="replicated(2)"):
            pass


@pytest.fixture
def lonely(request: pytest.FixtureRequest, cluster: Nodes) -> Iterator[Node]:
    """A node of a cluster that serves nothing."""
    node = Node(executable(request.config), cluster.home)
    node.start()
    yield node
    node.end()


async def test_a_cluster_with_slots_that_nobody_serves_is_refused(lonely: Node) -> None:
    with pytest.raises(
        ServerUnfit, match=r"cluster_enabled:1\) in which nobody serves 16,384 of 16,384 slots: give them to nodes"
    ):
        await inspect(lonely.url)
    lonely.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16_380)
    with pytest.raises(ServerUnfit, match="nobody serves 3 of 16,384 slots"):
        await inspect(lonely.url)
