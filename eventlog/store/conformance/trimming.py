"""Trimming a feed: from its beginning, never all of it, and never without a trace."""

from __future__ import annotations

import anyio
import anyio.lowlevel

from eventlog.identity import LogId, partition_of
from eventlog.reader import Store
from eventlog.store.conformance.suite import LOG, Suite, put
from eventlog.store.port import FeedBase, FeedEntry


async def filled(store: Store, count: int = 10) -> tuple[int, list[FeedEntry]]:
    """The partition of ``LOG`` after so many appends, and its feed."""
    for number in range(count):
        await put(store, number, f"op-{number}")
    partition = partition_of(LOG.path, store.partitions)
    return partition, await store.read_feed(partition, 1, 1_000)


def base_of(entry: FeedEntry) -> FeedBase:
    return FeedBase(entry.seq, entry.stamp, entry.seq + 1)


class Trimming(Suite):
    async def test_what_is_below_goes_and_the_last_of_it_is_kept_in_mind(self, store: Store) -> None:
        partition, feed = await filled(store)
        assert await store.feed_base(partition) == FeedBase(0, 0, 0)
        assert await store.trim_feed(partition, 4) == 3
        assert await store.feed_base(partition) == base_of(feed[2])
        assert await store.read_feed(partition, 1, 100) == feed[3:]
        assert await store.read_feed(partition, 3, 2) == feed[3:5]
        assert await store.read_feed(partition, 4, 2) == feed[3:5]
        assert await store.trim_feed(partition, 6) == 2
        assert await store.feed_base(partition) == base_of(feed[4])
        assert (await store.feed_ends())[partition] == 10

    async def test_the_newest_entry_always_stays(self, store: Store) -> None:
        partition, feed = await filled(store, 3)
        assert await store.trim_feed(partition, 1_000) == 2
        assert await store.feed_base(partition) == base_of(feed[1])
        assert await store.read_feed(partition, 1, 100) == feed[2:]
        assert await store.trim_feed(partition, 1_000) == 0
        await put(store, "next", "op-next")
        assert (await store.read_feed(partition, 4, 10))[0].seq == 4, "numbers go on"
        assert await store.read_feed(partition, 1, 1) == feed[2:]

    async def test_where_nothing_is_below_nothing_happens(self, store: Store) -> None:
        partition, feed = await filled(store)
        await store.trim_feed(partition, 5)
        base = await store.feed_base(partition)
        for below in (-3, 0, 1, 4, 5):
            assert await store.trim_feed(partition, below) == 0
        assert await store.feed_base(partition) == base
        assert await store.read_feed(partition, 1, 100) == feed[4:]
        other = (partition + 1) % store.partitions
        assert await store.trim_feed(other, 5) == 0
        assert await store.feed_base(other) == FeedBase()
        assert await store.read_feed(other, 1, 5) == []

    async def test_logs_and_conversations_are_not_touched(self, store: Store) -> None:
        partition, _ = await filled(store)
        before = await store.head(LOG), await store.read(LOG, 1, None, 100)
        await store.trim_feed(partition, 9)
        assert (await store.head(LOG), await store.read(LOG, 1, None, 100)) == before
        assert await store.conversations_after(partition, 0, 10) == [(1, LOG)]
        assert (await put(store, 10, "op-10")).first == 11

    async def test_what_is_announced_only_grows_and_removes_nothing(self, store: Store) -> None:
        partition, feed = await filled(store)
        for below, announced in ((4, 4), (2, 4), (7, 7)):
            await store.announce_trim(partition, below)
            assert await store.feed_base(partition) == FeedBase(0, 0, announced)
        assert await store.read_feed(partition, 1, 100) == feed
        await store.trim_feed(partition, 4)
        assert await store.feed_base(partition) == FeedBase(3, feed[2].stamp, 7)
        await store.trim_feed(partition, 9)
        assert await store.feed_base(partition) == base_of(feed[7])

    async def test_a_wait_for_what_was_trimmed_gives_what_is_left(self, store: Store) -> None:
        partition, feed = await filled(store)
        await store.trim_feed(partition, 8)
        after = [0] * store.partitions
        with anyio.fail_after(10):
            assert await store.wait_feeds(after, 5, 100) == feed[7:]

    async def test_appends_beside_it_are_all_named(self, store: Store) -> None:
        partition, _ = await filled(store, 1)
        over = False

        async def trim() -> None:
            while not over:
                await store.trim_feed(partition, (await store.feed_ends())[partition] - 2)
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(trim)
            for number in range(60):
                await put(store, number, f"op-beside-{number}")
                base = await store.feed_base(partition)
                kept = await store.read_feed(partition, base.seq + 1, 100)
                assert kept, "the newest entry was trimmed"
            over = True
        base, kept = await store.feed_base(partition), await store.read_feed(partition, 1, 100)
        assert [entry.seq for entry in kept] == list(range(base.seq + 1, 62))

    async def test_a_deletion_is_an_entry_like_others(self, store: Store) -> None:
        partition, _ = await filled(store, 2)
        await store.delete(LOG)
        assert await store.trim_feed(partition, 100) == 2
        (entry,) = await store.read_feed(partition, 1, 10)
        assert (entry.seq, entry.log, entry.is_deletion, entry.first) == (3, LogId(*LOG), True, 3)
