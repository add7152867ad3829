"""Partitions spread over the primaries; whoever follows, consumes or projects gets them all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from redis.asyncio import RedisCluster

from chaos.nodes import PRIMARIES, Nodes
from eventlog import EventLog, Followed, Kind, user
from eventlog.consumer_group import ConsumerGroup
from eventlog.delivery import Delivery
from eventlog.store.beside import readers_beside
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.store import RedisStore
from projections import BUILT_IN, Projector, Verifying
from projections.live import Live
from tests.follow.following import take, versions
from tests.groups.running import consuming, passed, until

pytestmark = pytest.mark.anyio
CONVERSATIONS = 64


async def fill(log: EventLog, each: int = 2) -> None:
    """Conversations on every node, and in every partition."""
    async with anyio.create_task_group() as tasks:
        for number in range(CONVERSATIONS):
            tasks.start_soon(_fill, log, number, each)


async def _fill(log: EventLog, number: int, each: int) -> None:
    chat = log.tenant("acme").conversation(f"c{number}")
    for turn in range(each):
        await chat.add(user(f"{number}.{turn}"))


async def test_the_partitions_spread_over_the_primaries(cluster: Nodes, one: EventLog, keys: Keys) -> None:
    await fill(one)
    there = {node.port: set(node.client.scan_iter(f"*{keys.namespace}:*", count=1_000)) for node in cluster.primaries}
    feeds = {port: {key for key in found if key.endswith("}:feed")} for port, found in there.items()}
    assert sum(map(len, feeds.values())) == keys.partitions
    assert all(feeds.values()), "a primary has no partition"
    for port, found in there.items():
        tags = {key[: key.index("}") + 1] for key in found if "{" in key}
        assert tags == {key.removesuffix(":feed") for key in feeds[port]}, "a partition is torn"


async def test_connections_are_two_for_each_node_whatever_the_load(cluster: Nodes, keys: Keys) -> None:
    before = _connections(cluster)
    async with EventLog.open(cluster.url, namespace=keys.namespace) as log:
        followers = [log.tenant("acme").conversation(f"c{number}").follow() for number in range(CONVERSATIONS)]
        async with anyio.create_task_group() as tasks:
            for follower in followers:
                tasks.start_soon(take, follower, 2)
            await fill(log)
        assert [now - then for now, then in zip(_connections(cluster), before, strict=True)] == [2] * PRIMARIES


def _connections(cluster: Nodes) -> list[int]:
    return [len(node.client.client_list(_type="normal")) for node in cluster.primaries]


async def test_a_script_that_a_node_forgot_is_sent_again_to_that_node(cluster: Nodes, one: EventLog) -> None:
    await fill(one, 1)
    cluster.primaries[1].client.script_flush()
    await fill(one, 1)
    for number in range(CONVERSATIONS):
        assert (await one.store.head(one.tenant("acme").conversation(f"c{number}").log)).last.version == 2


async def test_a_follower_gets_what_is_appended_on_any_node_soon(one: EventLog) -> None:
    slow = 30.0  # the follower's own looking: what comes before it came by the hint
    followers = [one.tenant("acme").conversation(f"c{number}").follow(poll=slow) for number in range(CONVERSATIONS)]
    with anyio.fail_after(slow / 2):
        async with anyio.create_task_group() as tasks:
            for follower in followers:
                tasks.start_soon(_up_to, follower, 3)
            await anyio.lowlevel.checkpoint()
            await fill(one, 3)


async def _up_to(follower: AsyncIterator[Followed[Any]], events: int) -> None:
    assert versions(await take(follower, events)) == list(range(1, events + 1))


async def test_a_tenant_is_followed_over_all_nodes_and_from_its_cursor(one: EventLog) -> None:
    await fill(one, 1)
    follower = one.tenant("acme").follow()
    items = await take(follower, CONVERSATIONS)
    assert len({item.event.id for item in items if item.event}) == CONVERSATIONS
    await fill(one, 1)
    on = one.tenant("acme").follow(after=items[-1].cursor)
    again = [item for item in await take(on, CONVERSATIONS) if item.kind is Kind.EVENT]
    assert {item.event.version for item in again if item.event} == {2}


async def test_the_members_of_a_group_share_the_partitions_of_all_nodes(one: EventLog) -> None:
    seen: dict[str, list[int]] = {}

    async def handle(delivery: Delivery) -> None:
        seen.setdefault(delivery.key.conversation, []).append(delivery.event.version)

    group = one.group("workers")
    async with consuming(group, handle), consuming(group, handle):
        await until(_two_hold(group))
        await fill(one, 3)
        await passed(group)
    assert seen == {f"c{number}": [1, 2, 3] for number in range(CONVERSATIONS)}


def _two_hold(group: ConsumerGroup) -> Callable[[], Awaitable[bool]]:
    async def two() -> bool:
        holders = {one.place.holder for one in (await group.status()).partitions}
        return len(holders - {""}) == 2

    return two


async def test_a_group_hears_of_news_on_any_node_by_the_hint(one: EventLog) -> None:
    store, open_readers = readers_beside(one.store)
    readers = open_readers()
    after = dict.fromkeys(range(store.partitions), 0)
    assert await readers.wait(after, 0.05) == {}
    heard: dict[int, int] = {}
    await fill(one, 1)
    with anyio.fail_after(10):
        while len(heard) < store.partitions:
            found = await readers.wait({p: seq for p, seq in after.items() if p not in heard}, 1.0)
            heard.update(found)
    assert set(heard.values()) == {1}


async def test_projections_cover_all_nodes_and_agree_with_the_log(one: EventLog) -> None:
    await fill(one, 2)
    projector, live = Projector(one, BUILT_IN, poll=0.05), Live.of(one.store)
    await projector.catch_up()
    await fill(one, 1)
    await projector.catch_up()
    for projection in BUILT_IN:
        view = await live.view(projection)
        kept = [log for partition in range(live.store.partitions) async for log, _ in live.views.kept(view, partition)]
        assert len(kept) == CONVERSATIONS
        assert [one async for one in Verifying(live, projection, view).differences()] == []


async def test_no_script_and_no_command_touches_two_slots(client: RedisCluster, one: EventLog, keys: Keys) -> None:
    """The other tests would fail on such a one; here the layout itself is looked at."""
    await fill(one, 1)
    assert isinstance(one.store, RedisStore)
    for number in range(CONVERSATIONS):
        chat = one.tenant("acme").conversation(f"c{number}")
        of_log = keys.of_log(chat.log)
        assert len({client.keyslot(key) for key in of_log}) == 1
        assert client.keyslot(keys.feed_base(int(of_log.feed.split(":")[1].rstrip("}")))) == client.keyslot(of_log.feed)
