"""An append is atomic, its versions are dense, and it checks what the writer expects."""

from __future__ import annotations

import asyncio

from eventlog.errors import VersionConflict
from eventlog.events import Draft
from eventlog.identity import partition_of
from eventlog.store.conformance.suite import LOG, FeedEntry, Suite, notes, put, refused, request
from eventlog.store.port import ANY, EXISTS, NONE, Head, LogStore


class Appending(Suite):
    async def test_a_log_that_was_never_written_is_at_version_0(self, store: LogStore) -> None:
        head = await store.head(LOG)
        assert (head.last, head.base) == (LOG.cursor(0, 0), LOG.cursor(0, 0))
        assert (head.updated_ms, head.deleted, head.runs) == (0, False, ())
        assert await store.read(LOG, 1, None, 10) == []

    async def test_versions_count_from_1_with_no_gap(self, store: LogStore) -> None:
        for count, first in ((1, 1), (3, 2), (64, 5), (1, 69)):
            outcome = await put(store, notes(*range(count)), f"op-{first}")
            assert (outcome.first, list(outcome.versions)) == (first, list(range(first, first + count)))
        assert [entry.version for entry in await store.read(LOG, 1, None, 1_000)] == list(range(1, 70))

    async def test_the_outcome_names_its_operation_and_the_cursor_of_its_last_event(self, store: LogStore) -> None:
        outcome = await put(store, notes(1, 2), "op-1")
        entries = await store.read(LOG, 1, None, 10)
        assert (outcome.operation_id, outcome.duplicate) == ("op-1", False)
        assert outcome.cursor == LOG.cursor(2, entries[1].stamp)

    async def test_all_events_of_an_operation_bear_one_stamp_and_no_two_operations_share_it(
        self, store: LogStore
    ) -> None:
        for number in range(20):
            await put(store, notes(1, 2, 3), f"op-{number}")
        entries = await store.read(LOG, 1, None, 100)
        stamps = [{entry.stamp for entry in entries[at : at + 3]} for at in range(0, 60, 3)]
        assert all(len(stamp) == 1 for stamp in stamps)
        assert len(set.union(*stamps)) == 20
        assert all(0 < entry.stamp < 1 << 63 for entry in entries)

    async def test_documents_are_kept_byte_by_byte(self, store: LogStore) -> None:
        append = request(notes("\x00", "é\n\r\n$5\r\n", {"a": [1.5, None, True]}), "op-1")
        await store.append(append)
        kept = tuple(entry.document for entry in await store.read(LOG, 1, None, 10))
        assert kept == append.encoded.documents

    async def test_events_head_feed_and_list_of_conversations_change_together(self, store: LogStore) -> None:
        kinds = [Draft("note", {}), Draft("memo", {}), Draft("note", {})]
        outcome = await put(store, kinds, "op-1")
        head, entries, feed = await self.known(store, LOG)
        assert head.last == outcome.cursor
        assert head.updated_ms > 0
        assert len(entries) == 3
        assert feed == [FeedEntry(LOG.path, 1, 3, "note,memo", outcome.cursor.stamp)]
        assert await store.conversations(partition_of(LOG.path, store.partitions), 0, 10) == [LOG]

    async def test_the_feed_names_each_append_once_in_order(self, store: LogStore) -> None:
        appended = [await put(store, notes(*range(count)), f"op-{count}") for count in (1, 2, 3)]
        assert (await put(store, notes(0, 1), "op-2")).duplicate
        assert await self.feed(store, LOG) == [
            FeedEntry(LOG.path, outcome.first, len(outcome.versions), "note", outcome.cursor.stamp)
            for outcome in appended
        ]

    async def test_a_refused_append_leaves_everything_as_it_was(self, store: LogStore) -> None:
        await put(store, "first", "op-1")
        before = await self.known(store, LOG)
        await refused(VersionConflict, store, request(notes(1, 2), "op-2", expected=NONE))
        assert await self.known(store, LOG) == before
        assert not (await put(store, notes(1, 2), "op-2")).duplicate

    async def test_a_refused_first_append_leaves_no_trace(self, store: LogStore) -> None:
        await refused(VersionConflict, store, request("x", "op-1", expected=EXISTS))
        assert await self.known(store, LOG) == (Head(LOG.cursor(0, 0), LOG.cursor(0, 0)), [], [])
        assert await store.conversations(partition_of(LOG.path, store.partitions), 0, 10) == []

    async def test_appends_that_wait_side_by_side_are_each_whole(self, store: LogStore) -> None:
        outcomes = await asyncio.gather(*(put(store, notes(*range(5)), f"op-{number}") for number in range(100)))
        assert sorted(outcome.first for outcome in outcomes) == list(range(1, 501, 5))
        entries = await store.read(LOG, 1, None, 1_000)
        assert [entry.version for entry in entries] == list(range(1, 501))
        for outcome in outcomes:
            own = [entries[version - 1] for version in outcome.versions]
            assert {entry.stamp for entry in own} == {outcome.cursor.stamp}
            assert all(
                entry.document.startswith(b'{"id":"%b.%d"' % (outcome.operation_id.encode(), index))
                for index, entry in enumerate(own)
            )

    async def test_any_takes_the_log_as_it_is(self, store: LogStore) -> None:
        assert (await put(store, 1, "op-1", expected=ANY)).first == 1
        assert (await put(store, 2, "op-2", expected=ANY)).first == 2

    async def test_none_wants_a_log_that_was_never_written(self, store: LogStore) -> None:
        first = await put(store, 1, "op-1", expected=NONE)
        error = await refused(VersionConflict, store, request(2, "op-2", expected=NONE))
        assert error.actual == first.cursor

    async def test_exists_wants_a_log_that_was_written(self, store: LogStore) -> None:
        error = await refused(VersionConflict, store, request(1, "op-1", expected=EXISTS))
        assert error.actual == LOG.cursor(0, 0)
        await put(store, 1, "op-1")
        assert (await put(store, 2, "op-2", expected=EXISTS)).first == 2

    async def test_an_exact_cursor_wants_to_be_the_last(self, store: LogStore) -> None:
        first = await put(store, 1, "op-1", expected=LOG.cursor(0, 0))
        second = await put(store, 2, "op-2", expected=first.cursor)
        for stale in (LOG.cursor(0, 0), first.cursor, LOG.cursor(3, second.cursor.stamp)):
            error = await refused(VersionConflict, store, request(3, "op-3", expected=stale))
            assert error.actual == second.cursor

    async def test_the_right_version_with_another_stamp_conflicts(self, store: LogStore) -> None:
        first = await put(store, 1, "op-1")
        for stamp in (0, 1, first.cursor.stamp ^ 1):
            error = await refused(VersionConflict, store, request(2, "op-2", expected=LOG.cursor(1, stamp)))
            assert error.actual == first.cursor

    async def test_of_those_that_expect_the_same_cursor_one_wins(self, store: LogStore) -> None:
        base = (await put(store, 0, "op-0")).cursor

        async def attempt(number: int) -> int:
            try:
                return (await put(store, number, f"op-{number}", expected=base)).first
            except VersionConflict as conflict:
                return -conflict.actual.version

        assert sorted(await asyncio.gather(*(attempt(number) for number in range(1, 11)))) == [-2] * 9 + [2]
