"""Slots move from one primary to another while writers write to them and followers follow."""

from __future__ import annotations

import time

import anyio
import pytest

from chaos import moving
from chaos.nodes import Nodes
from eventlog import EventLog, ServerUnavailable, user
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.routing import slot_of
from tests.cluster.load import assert_feeds_are_dense, caught_up, following, writing, wrote

pytestmark = pytest.mark.anyio
WRITERS = 24


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "way" in metafunc.fixturenames:
        # Redis moves slots key by key only.
        ways = ["key by key"] if metafunc.config.getoption("server") == "redis" else ["atomically", "key by key"]
        metafunc.parametrize("way", ways)


async def test_no_append_is_lost_or_doubled_while_slots_move(own_cluster: Nodes, keys: Keys, way: str) -> None:
    move = moving.atomically if way == "atomically" else moving.key_by_key
    slots = [slot_of(keys.feed(partition).encode()) for partition in range(keys.partitions)]
    async with EventLog.open(own_cluster.url, namespace=keys.namespace, deadline=20) as log:
        async with following(log) as seen:
            async with writing(log, WRITERS) as writers:
                await wrote(writers, since=0)
                for partition in range(0, keys.partitions, 3):
                    source = own_cluster.primary_of(keys.feed(partition))
                    target = next(node for node in own_cluster.primaries if node is not source)
                    await move(own_cluster, slots[partition], source, target)
                    assert own_cluster.primary_of(keys.feed(partition)) is target
                await wrote(writers, since=time.monotonic())
            await caught_up(seen, writers)
        assert sum(writer.unknown for writer in writers) == 0
        for writer in writers:
            await writer.assert_nothing_is_lost_or_doubled()
        await assert_feeds_are_dense(log, writers)


async def test_while_a_slot_is_torn_reads_find_what_moved_and_appends_wait(own_cluster: Nodes, keys: Keys) -> None:
    async with EventLog.open(own_cluster.url, namespace=keys.namespace, deadline=20) as log:
        chat = log.tenant("acme").conversation("torn")
        await chat.add(user("before"), operation_id="before")
        of_log = keys.of_log(chat.log)
        slot, source = slot_of(of_log.log.encode()), own_cluster.primary_of(of_log.log)
        target = next(node for node in own_cluster.primaries if node is not source)
        moving.begin(slot, source, target)
        moving.carry(of_log.log, source, target)
        moving.carry(of_log.head, source, target)

        assert [event.id async for event in chat.read()] == ["before.0"]
        assert (await log.store.head(chat.log)).last.version == 1
        done = anyio.Event()

        async def append() -> None:
            await chat.add(user("meanwhile"), operation_id="meanwhile")
            done.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(append)
            with anyio.move_on_after(0.3):
                await done.wait()
            assert not done.is_set()
            while found := source.ask("CLUSTER", "GETKEYSINSLOT", slot, 1):
                moving.carry(found[0], source, target)
            moving.end(own_cluster, slot, source, target)
        assert [event.id async for event in chat.read()] == ["before.0", "meanwhile.0"]


async def test_an_append_that_is_given_up_while_a_slot_is_torn_was_not_made(own_cluster: Nodes, keys: Keys) -> None:
    async with EventLog.open(own_cluster.url, namespace=keys.namespace, deadline=1) as log:
        chat = log.tenant("acme").conversation("torn")
        await chat.add(user("before"), operation_id="before")
        of_log = keys.of_log(chat.log)
        slot, source = slot_of(of_log.log.encode()), own_cluster.primary_of(of_log.log)
        target = next(node for node in own_cluster.primaries if node is not source)
        moving.begin(slot, source, target)
        moving.carry(of_log.feed, source, target)
        with pytest.raises(ServerUnavailable, match="nothing was appended within 1 s: TRYAGAIN"):
            await chat.add(user("meanwhile"), operation_id="meanwhile")
        assert [event.id async for event in chat.read()] == ["before.0"]
