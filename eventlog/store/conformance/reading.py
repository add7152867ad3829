"""Reading a log in both directions, and listing conversations."""

from __future__ import annotations

from eventlog.identity import LogId, partition_of
from eventlog.store.conformance.suite import LOG, PARTITIONS, Suite, notes, put
from eventlog.store.port import LogStore

SPANS: tuple[tuple[int, int | None, int], ...] = (
    (1, None, 100), (1, None, 1), (1, None, 3), (3, None, 100), (3, 5, 100), (3, 5, 2), (3, 3, 1), (10, 10, 5),
    (10, None, 5), (11, None, 5), (11, 20, 5), (8, 20, 100), (5, 3, 100), (1, 0, 10), (0, None, 100), (0, 2, 100),
    (1, None, 0), (1, 5, 0),
)  # fmt: skip
"""Bounds and counts on a log of ten events."""


class Reading(Suite):
    async def test_both_bounds_are_included_and_the_count_cuts(self, store: LogStore) -> None:
        await put(store, notes(*range(7)), "op-1")
        await put(store, notes(*range(3)), "op-2")
        for first, last, count in SPANS:
            wanted = [version for version in range(1, 11) if first <= version <= (last or (10 if last is None else 0))]
            forward = await store.read(LOG, first, last, count)
            assert [entry.version for entry in forward] == wanted[:count], (first, last, count)
            backward = await store.read(LOG, first, last, count, reverse=True)
            assert [entry.version for entry in backward] == wanted[::-1][:count], (first, last, count)

    async def test_both_directions_give_the_same_entries(self, store: LogStore) -> None:
        for number in range(20):
            await put(store, notes(number, number), f"op-{number}")
        forward = await store.read(LOG, 1, None, 100)
        assert await store.read(LOG, 1, None, 100, reverse=True) == forward[::-1]
        one_by_one = [(await store.read(LOG, version, version, 1))[0] for version in range(1, 41)]
        assert one_by_one == forward

    async def test_versions_are_numbers_10_comes_after_9(self, store: LogStore) -> None:
        for number in range(1, 121):
            await put(store, number, f"op-{number}")
        assert [entry.version for entry in await store.read(LOG, 9, 101, 1_000)] == list(range(9, 102))

    async def test_what_was_trimmed_is_not_read(self, store: LogStore) -> None:
        await put(store, notes(*range(10)), "op-1")
        await self.trim(store, LOG, 4)
        assert [entry.version for entry in await store.read(LOG, 1, None, 3)] == [5, 6, 7]
        assert [entry.version for entry in await store.read(LOG, 3, 6, 10, reverse=True)] == [6, 5]
        assert await store.read(LOG, 1, 4, 10) == []

    async def test_the_head_follows_each_append(self, store: LogStore) -> None:
        before = 0
        for number in range(1, 6):
            outcome = await put(store, number, f"op-{number}")
            head = await store.head(LOG)
            assert head.last == outcome.cursor
            assert head.updated_ms >= before
            before = head.updated_ms

    async def test_conversations_come_in_the_order_of_their_first_append(self, store: LogStore) -> None:
        assert store.partitions == PARTITIONS
        # Names that sort backwards, first appended as fast as it goes: only the order itself can tell.
        names = (f"c{number:05}" for number in range(9_999, 0, -1))
        logs = [log for name in names if partition_of((log := LogId("acme", name)).path, PARTITIONS) == 3][:100]
        for log in logs:
            await put(store, 1, "op-1", log=log)
        for log in logs[::7]:
            await put(store, 2, "op-2", log=log)
        assert await store.conversations(3, 0, 1_000) == logs

    async def test_conversations_are_listed_in_pages(self, store: LogStore) -> None:
        logs = [log for n in range(600) if partition_of((log := LogId("acme", f"c{n}")).path, PARTITIONS) == 3][:25]
        for log in logs:
            await put(store, 1, "op-1", log=log)
        whole = await store.conversations(3, 0, 100)
        assert set(whole) == set(logs)
        assert len(whole) == 25
        paged: list[LogId] = []
        while page := await store.conversations(3, len(paged), 10):
            paged += page
        assert paged == whole
        assert await store.conversations(3, 25, 10) == []
        assert await store.conversations(3, 0, 0) == []
        assert await store.conversations(3, 5, 0) == []
