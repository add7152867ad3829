"""Deleting a conversation: all of it or nothing, once, and never again the same versions."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

import anyio

from eventlog.errors import ConversationBusy, ConversationDeleted, EventLogError
from eventlog.identity import LogId, partition_of
from eventlog.store.conformance.suite import LOG, FeedEntry, Suite, going_on, notes, put, refused, request, start
from eventlog.store.port import DELETION, EXISTS, NONE, Head, LogStore

_LATER = 1 << 45
E = TypeVar("E", bound=EventLogError)


async def _raised(kind: type[E], attempt: Awaitable[object]) -> E:
    try:
        await attempt
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was due")


class Deleting(Suite):
    async def test_nothing_is_left_but_the_head_and_the_feed_names_it_in_order(self, store: LogStore) -> None:
        await put(store, notes(1, 2), "op-1")
        last = (await put(store, 3, "op-2")).cursor
        named, before = await self.feed(store, LOG), await store.now_ms()
        assert await store.delete(LOG)
        head = await store.head(LOG)
        assert (head.last, head.base.version, head.deleted, head.why, head.runs) == (last, 0, True, "deleted", ())
        assert before <= head.deleted_ms <= await store.now_ms()
        assert await store.read(LOG, 1, None, 10) == []
        assert await store.read(LOG, 1, None, 10, reverse=True) == []
        *former, entry = await self.feed(store, LOG)
        assert former == named
        assert entry == FeedEntry(LOG.path, 4, 0, DELETION, entry.stamp)
        assert 0 < entry.stamp < 1 << 63
        assert entry.stamp not in {one.stamp for one in named}
        assert await store.conversations(partition_of(LOG.path, store.partitions), 0, 10) == []

    async def test_deleting_again_is_true_and_writes_nothing(self, store: LogStore) -> None:
        await put(store, 1, "op-1")
        assert await store.delete(LOG)
        known = await self.known(store, LOG)
        assert await store.delete(LOG, force=True, why="expired")
        assert await store.delete(LOG, idle_since_ms=0)
        assert await self.known(store, LOG) == known

    async def test_one_that_never_was_is_false_and_writes_nothing(self, store: LogStore) -> None:
        for force, idle in ((False, None), (True, None), (False, _LATER)):
            assert not await store.delete(LOG, force=force, idle_since_ms=idle)
        known = await self.known(store, LOG)
        assert (known.head, known.feed) == (Head(LOG.cursor(0, 0), LOG.cursor(0, 0)), [])
        assert (await put(store, 1, "op-1", expected=NONE)).first == 1

    async def test_every_append_afterwards_is_refused(self, store: LogStore) -> None:
        cursor = (await put(store, 1, "op-1")).cursor
        await store.delete(LOG)
        known = await self.known(store, LOG)
        for expected in (NONE, EXISTS, cursor):
            await refused(ConversationDeleted, store, request(2, "op-2", expected=expected, cursor=cursor))
        await refused(ConversationDeleted, store, request(1, "op-1"))  # its record went with it
        error = await _raised(ConversationDeleted, start(store, "run-1"))
        assert str(error) == (
            "conversation 'support' of 'acme' was deleted, and nothing of it is left: use another conversation id"
        )
        assert await self.known(store, LOG) == known

    async def test_an_open_run_stands_in_the_way_unless_forced(self, store: LogStore) -> None:
        for lease_ms in (60_000, 1):
            log = LogId("acme", f"lease-{lease_ms}")
            await start(store, "run-1", lease_ms=lease_ms, log=log)
            await anyio.sleep(0.005)
            known = await self.known(store, log)
            busy = await _raised(ConversationBusy, store.delete(log))
            assert (busy.run, busy.expired) == ("run-1", lease_ms == 1)
            assert not await store.delete(log, idle_since_ms=_LATER), "one with an open run is not idle"
            assert await self.known(store, log) == known
            assert await store.delete(log, force=True)
            await refused(ConversationDeleted, store, request(2, "op-2", log=log, claim=going_on("run-1")))
            await _raised(ConversationDeleted, store.renew(log, "run-1", "aa", 1_000))
            assert (await store.head(log)).runs == ()

    async def test_a_run_that_ended_does_not(self, store: LogStore) -> None:
        await start(store, "run-1")
        await put(store, 2, "op-2", claim=going_on("run-1", closes=True))
        assert await store.delete(LOG)

    async def test_an_idle_one_is_one_to_which_nothing_was_appended_since(self, store: LogStore) -> None:
        await put(store, 1, "op-1")
        updated = (await store.head(LOG)).updated_ms
        assert not await store.delete(LOG, idle_since_ms=updated, why="expired")
        assert not (await store.head(LOG)).deleted
        assert await store.delete(LOG, idle_since_ms=updated + 1, why="expired")
        assert (await store.head(LOG)).why == "expired"

    async def test_others_are_left_alone(self, store: LogStore) -> None:
        partition = partition_of(LOG.path, store.partitions)
        names = (f"n{number}" for number in range(10_000))
        logs = [LogId("acme", name) for name in names if partition_of(f"acme/{name}", store.partitions) == partition][
            :4
        ]
        for log in logs:
            await put(store, notes(1, 2), "op-1", log=log)
        before = [(await store.head(log), await store.read(log, 1, None, 10)) for log in logs]
        assert await store.delete(logs[1])
        rest = [logs[0], *logs[2:]]
        assert await store.conversations(partition, 0, 10) == rest
        assert [(await store.head(log), await store.read(log, 1, None, 10)) for log in rest] == [before[0], *before[2:]]
        assert (await put(store, 3, "op-2", log=logs[2])).first == 3

    async def test_an_append_beside_it_is_there_before_and_gone_or_refused(self, store: LogStore) -> None:
        for turn in range(8):
            log, written = LogId("acme", f"race-{turn}"), list[int]()
            await put(store, 0, "op-first", log=log)

            async def append(number: int, log: LogId = log, written: list[int] = written) -> None:
                with suppress(ConversationDeleted):
                    written.append((await put(store, number, f"op-{number}", log=log)).cursor.version)

            async with anyio.create_task_group() as tasks:
                for number in range(20):
                    tasks.start_soon(append, number)
                    if number == 2 * turn:
                        tasks.start_soon(store.delete, log)
            assert sorted(written) == list(range(2, 2 + len(written)))
            head = await store.head(log)
            assert head.deleted
            assert head.last.version == 1 + len(written)
            assert await store.read(log, 1, None, 100) == []
            own = [entry for entry in await self.feed(store, log) if entry.path == log.path]
            assert [entry.first for entry in own] == list(range(1, 3 + len(written)))
            assert [entry.events for entry in own] == [1] * (1 + len(written)) + [0]

    async def test_a_page_goes_on_after_a_number_also_while_others_are_deleted(self, store: LogStore) -> None:
        partition = partition_of(LOG.path, store.partitions)
        names = (f"n{number}" for number in range(100_000))
        logs = [LogId("acme", name) for name in names if partition_of(f"acme/{name}", store.partitions) == partition][
            :12
        ]
        for log in logs:
            await put(store, notes(1, 2), "op-1", log=log)
            await put(store, 3, "op-2", log=log)
        whole = await store.conversations_after(partition, 0, 100)
        assert [log for _, log in whole] == logs
        numbers = [number for number, _ in whole]
        assert numbers == [1 + 2 * index for index in range(12)]
        assert await store.conversations_after(partition, numbers[-1], 100) == []
        assert await store.conversations_after(partition, 0, 0) == []
        assert await store.conversations_after(partition, numbers[3] - 1, 2) == whole[3:5]
        seen, after = list[LogId](), 0
        while page := await store.conversations_after(partition, after, 3):
            seen += [log for _, log in page]
            after = page[-1][0]
            await store.delete(page[-1][1])
            await store.delete(page[0][1])
        assert seen == logs
        left = [log for index, log in enumerate(logs) if index % 3 == 1]
        assert [log for _, log in await store.conversations_after(partition, 0, 100)] == left
