"""Feeds are trimmed below every reader's mark, idle conversations expire, and readers that stand still are named."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import anyio
import pytest

from eventlog import EventLog
from eventlog.errors import InvalidInput
from eventlog.housekeeping import expire, standing_still, trim_feeds
from eventlog.store.memory import MemoryStore
from eventlog.store.memory_readers import MemoryReaders
from eventlog.store.readers import Advance, Hold, Mark, Settings
from tests.groups.running import consuming, passed
from tests.housekeeping.feeds import Seen, beside, chat, fill, nothing

pytestmark = pytest.mark.anyio


async def kept(one: EventLog) -> list[int]:
    store, _ = beside(one)
    return [entry.seq for entry in await store.read_feed(0, 1, 10_000)]


async def mark(one: EventLog, group: str, seq: int) -> None:
    """Register a reader that stands here, and that nobody holds."""
    store, readers = beside(one)
    [entry] = await store.read_feed(0, seq, 1)
    hold = Hold(group, 0, "aa")
    await readers.create(group, Settings())
    place = await readers.acquire(hold, "me", 60_000)
    assert place is not None
    await readers.advance(hold, Advance(place.mark, Mark(entry.seq, entry.stamp)), 60_000)
    await readers.release(hold)


async def test_the_newest_entries_stay_and_the_rest_goes(one: EventLog) -> None:
    await fill(one, "a", events=10)
    assert await trim_feeds(*beside(one), keep=20) == {}
    assert await trim_feeds(*beside(one), keep=4) == {0: 6}
    assert await kept(one) == [7, 8, 9, 10]
    assert await trim_feeds(*beside(one), keep=4) == {}
    assert await trim_feeds(*beside(one), keep=1) == {0: 3}
    with pytest.raises(InvalidInput, match="keep=0: keep at least the newest entry"):
        await trim_feeds(*beside(one), keep=0)


async def test_no_reader_loses_what_it_has_not_passed(one: EventLog) -> None:
    await fill(one, "a", events=10)
    await mark(one, "fast", 8)
    await mark(one, "slow", 3)
    assert await trim_feeds(*beside(one), keep=1) == {0: 2}
    assert await kept(one) == list(range(3, 11)), "the entry at the mark stays"
    await mark(one, "slow", 9)
    assert await trim_feeds(*beside(one), keep=1) == {0: 5}
    assert await kept(one) == [8, 9, 10]


async def test_a_group_without_a_mark_holds_everything_and_nothing_is_announced(one: EventLog) -> None:
    store, readers = beside(one)
    await fill(one, "a", events=5)
    await mark(one, "fast", 5)
    await readers.create("new", Settings())
    assert await trim_feeds(store, readers, keep=1) == {}
    assert (await store.feed_base(0)).announced == 0
    await readers.remove("new")
    assert await trim_feeds(store, readers, keep=1) == {0: 4}


async def test_a_group_from_now_holds_from_where_it_was_created(one: EventLog) -> None:
    await fill(one, "a", events=5)
    await one.group("late", start="now").create()
    await fill(one, "a", events=5)
    assert await trim_feeds(*beside(one), keep=1) == {0: 4}
    seen = Seen()
    async with consuming(one.group("late"), seen):
        await passed(one.group("late"))
    assert seen.of("a") == [6, 7, 8, 9, 10]


async def test_a_projections_reader_holds_as_a_group_does(one: EventLog) -> None:
    await fill(one, "a", events=5)
    await mark(one, "@history.1", 2)
    assert await trim_feeds(*beside(one), keep=1) == {0: 1}


class Creating:
    """Readers among which a group appears right after they were listed for the ``nth`` time."""

    def __init__(self, readers: MemoryReaders, nth: int, create: Callable[[], Awaitable[object]]) -> None:
        self._readers = readers
        self._create = create
        self.left = nth

    def __getattr__(self, name: str):  # type: ignore[no-untyped-def]
        return getattr(self._readers, name)

    async def groups(self) -> list[str]:
        found = await self._readers.groups()
        self.left -= 1
        if self.left == 0:
            await self._create()
        return found


@pytest.mark.parametrize("nth", [1, 2])
async def test_a_group_that_is_created_meanwhile_misses_nothing(nth: int) -> None:
    store = MemoryStore(partitions=1)
    log = EventLog(store)
    await fill(log, "a", "b", events=5)
    readers = Creating(MemoryReaders.of(store), nth, log.group("new").create)
    removed = await trim_feeds(store, readers, keep=1)  # type: ignore[arg-type]
    assert removed == ({} if nth == 1 else {0: 9})
    seen = Seen()
    async with consuming(log.group("new"), seen):
        await passed(log.group("new"))
    assert seen.of("a") == seen.of("b") == [1, 2, 3, 4, 5]


async def test_a_group_that_has_begun_meanwhile_misses_nothing() -> None:
    store = MemoryStore(partitions=1)
    log = EventLog(store)
    await fill(log, "a", events=10)
    readers = Creating(MemoryReaders.of(store), 1, lambda: mark(log, "new", 3))
    assert await trim_feeds(store, readers, keep=1) == {0: 2}  # type: ignore[arg-type]
    seen = Seen()
    async with consuming(log.group("new"), seen):
        await passed(log.group("new"))
    assert seen.of("a") == [4, 5, 6, 7, 8, 9, 10]


async def test_groups_come_and_go_beside_trimming_and_none_misses_anything(one: EventLog) -> None:
    store, readers = beside(one)
    over, trimmed = False, 0

    async def trim() -> None:
        nonlocal trimmed
        while not over:
            trimmed += sum((await trim_feeds(store, readers, keep=2)).values())
            await asyncio.sleep(0.001)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(trim)
        for turn in range(8):
            await fill(one, "a", f"c{turn}", events=4)
            group, seen = one.group(f"g{turn}"), Seen()
            async with consuming(group, seen):
                await fill(one, "b", events=2)
                await passed(group)
            assert seen.of("a") == list(range(1, 4 * turn + 5))
            assert seen.of("b") == list(range(1, 2 * turn + 3))
            assert seen.of(f"c{turn}") == [1, 2, 3, 4]
            if turn % 3:
                await group.remove()
        over = True
    assert trimmed > 0


async def test_idle_conversations_expire(one: EventLog) -> None:
    store, _ = beside(one)
    await fill(one, "a", "b", events=2)
    left = chat(one, "open").run(lease=0.01)
    await left._open()
    await asyncio.sleep(0.05)
    await fill(one, "b", "c", events=1)
    assert await expire(store, timedelta(hours=1)) == 0
    before = await store.now_ms()
    idle = timedelta(milliseconds=before - (await chat(one, "a").head()).updated_ms - 10)
    assert await expire(store, idle, partitions=[]) == 0
    assert await expire(store, idle) == 1
    assert (await chat(one, "a").head()).why == "expired"
    assert [name async for name in one.tenant("t").conversations()] == ["b", "open", "c"]
    assert await expire(store, idle) == 0
    with pytest.raises(InvalidInput, match="idle=0:00:00"):
        await expire(store, timedelta(0))


async def test_all_pages_of_idle_conversations_expire(one: EventLog) -> None:
    store, _ = beside(one)
    await fill(one, *(f"c{number}" for number in range(230)), events=1)
    await asyncio.sleep(0.02)
    assert await expire(store, timedelta(milliseconds=1)) == 230
    assert [name async for name in one.tenant("t").conversations()] == []


async def test_a_reader_that_nobody_holds_and_that_lags_stands_still(one: EventLog) -> None:
    store, readers = beside(one)
    await fill(one, "a", events=4)
    assert await standing_still(store, readers) == []
    await mark(one, "passed", 4)
    await mark(one, "slow", 1)
    await mark(one, "@history.1", 2)
    await one.group("new").create()
    assert [tuple(found) for found in await standing_still(store, readers)] == [
        ("new", 0, 4, 0),
        ("slow", 0, 3, 0),
        ("@history.1", 0, 2, 0),
    ]
    async with consuming(one.group("new"), nothing):
        await passed(one.group("new"))
        await fill(one, "a", events=1)
        assert "new" not in {found.name for found in await standing_still(store, readers)}


async def test_who_died_stands_still_from_the_end_of_its_lease_on(one: EventLog) -> None:
    store, readers = beside(one)
    await fill(one, "a", events=2)
    await readers.create("dead", Settings())
    place = await readers.acquire(Hold("dead", 0, "aa"), "me", 50)
    assert place is not None
    assert await standing_still(store, readers) == [], "it is held"
    await asyncio.sleep(0.1)
    [found] = await standing_still(store, readers)
    assert found == ("dead", 0, 2, place.lease_ms)
    assert await standing_still(store, readers, patience=timedelta(minutes=1)) == []
