"""A feed whose beginning was trimmed: nobody skips anything, and whoever begins anew gets it all."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from eventlog import EventLog, Kind, LogLost, Truncated
from eventlog.delivery import Delivery
from eventlog.errors import Gap
from eventlog.identity import partition_of
from eventlog.reader import Reader
from eventlog.store.conformance.suite import notes
from eventlog.store.memory import MemoryStore
from eventlog.store.readers import Advance, Mark, Settings
from tests.follow.following import events_of, take, until
from tests.groups.running import consuming, passed
from tests.housekeeping.feeds import Seen, beside, chat, fill, nothing

pytestmark = pytest.mark.anyio


async def reader_at(one: EventLog, name: str, mark: Mark | None) -> Reader:
    """A held reader whose stored mark is this."""
    store, readers = beside(one)
    await readers.create(name, Settings())
    reader = await Reader.acquire(store, readers, name, 0, start=Mark(0, 0), holder="me", lease=60)
    assert reader is not None
    if mark is not None:
        await reader.advance(Advance(None, mark))
    return reader


async def feed(one: EventLog) -> list[Mark]:
    store, _ = beside(one)
    return [Mark(entry.seq, entry.stamp) for entry in await store.read_feed(0, 1, 10_000)]


async def test_a_reader_at_the_base_goes_on_and_one_below_is_told(one: EventLog) -> None:
    store, _ = beside(one)
    await fill(one, "a", events=6)
    marks = await feed(one)
    readers = {seq: await reader_at(one, f"r{seq}", marks[seq - 1]) for seq in (2, 3, 4)} | {
        0: await reader_at(one, "r0", None)
    }
    await store.trim_feed(0, 4)
    for seq, wanted in ((3, [4, 5, 6]), (4, [5, 6])):
        for count in (100, 1):
            found = await readers[seq].fetch(readers[seq].mark, count)
            assert [entry.seq for entry in found] == wanted[:count]
    for seq in (0, 2):
        with pytest.raises(Truncated, match=rf"trimmed, up to entry 3, and group 'r{seq}' had passed entry {seq} only"):
            await readers[seq].fetch(readers[seq].mark, 100)
    with pytest.raises(LogLost):
        await readers[3].fetch(Mark(3, marks[2].stamp ^ 1), 100)
    await readers[3].advance(Advance(None, marks[4]))
    assert readers[3].mark == marks[4]


async def test_a_reader_at_the_base_of_which_all_is_passed_gets_nothing_and_no_error(one: EventLog) -> None:
    store, _ = beside(one)
    await fill(one, "a", events=2)
    marks = await feed(one)
    reader = await reader_at(one, "r", marks[0])
    await store.trim_feed(0, 2)
    assert [entry.seq for entry in await reader.fetch(marks[0], 10)] == [2]
    assert await reader.fetch(marks[1], 10) == []


async def test_a_follower_of_the_tenant_at_the_base_goes_on_and_one_below_is_told(one: EventLog) -> None:
    store, _ = beside(one)
    await fill(one, "a", events=4)
    cursors = [item.cursor for item in await take(one.tenant("t").follow(), 4)]
    await store.trim_feed(0, 4)
    for after in ("start", cursors[0], str(cursors[1])):
        with pytest.raises(Truncated, match="the feed begins with 4: follow from `now`, then read the conversations"):
            await until(one.tenant("t").follow(after), Kind.CAUGHT_UP)
    for cursor, left in ((cursors[2], [4]), (cursors[3], [])):
        items = await until(one.tenant("t").follow(cursor), Kind.CAUGHT_UP)
        assert [event.version for event in events_of(items)] == left


async def test_a_cursor_within_an_operation_that_the_feed_no_longer_names_is_told(one: EventLog) -> None:
    store, _ = beside(one)
    await chat(one).append(*notes(1, 2, 3))
    await fill(one, "b", events=1)
    cursor = (await take(one.tenant("t").follow(), 2))[-1].cursor
    await store.trim_feed(0, 2)
    with pytest.raises(Truncated):
        await until(one.tenant("t").follow(cursor), Kind.CAUGHT_UP)


async def test_a_live_follower_that_the_trimming_overtakes_is_told(one: EventLog) -> None:
    store, _ = beside(one)
    await fill(one, "a")
    follower = one.tenant("t").follow(poll=0.05)
    await until(follower, Kind.CAUGHT_UP)
    one.hub.hints = False
    await fill(one, "a", "b")
    await store.trim_feed(0, 9)
    with anyio.fail_after(20), pytest.raises(Truncated):
        await take(follower, 100)


async def test_a_hub_that_the_trimming_overtakes_has_everybody_look() -> None:
    """The feeds are shown to it trimmed beyond where it was: it must not take what is left for all there is."""

    class Late(MemoryStore):
        held = False

        async def wait_feeds(self, after, seconds, count):  # type: ignore[no-untyped-def]
            while self.held:
                await asyncio.sleep(0.005)
            return await super().wait_feeds(after, min(seconds, 0.05), count)

    store = Late(partitions=1)
    log = EventLog(store)
    await fill(log, "a", "b")
    followers = [chat(log, name).follow(poll=60) for name in "ab"]
    tenant = log.tenant("t").follow(poll=60)
    for follower in (*followers, tenant):
        await until(follower, Kind.CAUGHT_UP)
    store.held = True
    await asyncio.sleep(0.1)
    await fill(log, "a", "b")
    await store.trim_feed(0, 12)
    store.held = False
    with anyio.fail_after(10):
        for follower in followers:
            assert [event.version for event in events_of(await take(follower, 3))] == [4, 5, 6]
        with pytest.raises(Truncated):
            await take(tenant, 100)
    await log.hub.close()


async def test_a_group_from_the_beginning_reads_the_logs_and_then_the_feed(one: EventLog) -> None:
    store, _ = beside(one)
    await fill(one, "a", "b", events=5)
    await chat(one, "c").append(*notes(1, 2, 3))
    await fill(one, "gone", "other", events=2)
    await chat(one, "gone").delete()
    await store.trim_feed(0, 9)
    group, seen = one.group("g"), Seen()
    async with consuming(group, seen):
        await passed(group)
        await fill(one, "a", "new", events=2)
        await passed(group)
    assert seen.of("a") == list(range(1, 8))
    assert seen.of("b") == [1, 2, 3, 4, 5]
    assert seen.of("c") == [1, 2, 3]
    assert seen.of("new") == seen.of("other") == [1, 2]
    assert seen.of("gone") == []
    assert (await group.status()).lag == 0


async def test_a_group_of_a_tenant_reads_its_own_logs(one: EventLog) -> None:
    store, _ = beside(one)
    await fill(one, "a", tenant="blue")
    await fill(one, "b", tenant="red")
    await store.trim_feed(0, 6)
    group, seen = one.group("g", tenant="blue"), Seen()
    async with consuming(group, seen):
        await passed(group)
    assert seen == [("a", 1), ("a", 2), ("a", 3)]


async def test_what_is_appended_while_a_group_joins_comes_once_and_in_order(one: EventLog) -> None:
    store, _ = beside(one)
    names = [f"c{number}" for number in range(12)]
    await fill(one, *names, events=2)
    await store.trim_feed(0, 20)
    group, seen, over = one.group("g"), Seen(), False

    async def append(name: str) -> None:
        while not over:
            await chat(one, name).append(*notes(1, 2))
            await asyncio.sleep(0.001)

    async with anyio.create_task_group() as tasks:
        for name in (*names[:4], "new"):
            tasks.start_soon(append, name)
        async with consuming(group, seen):
            await asyncio.sleep(0.4)
            over = True
            await asyncio.sleep(0.1)
            await passed(group)
    for name in (*names, "new"):
        assert seen.of(name) == list(range(1, (await chat(one, name).head()).last.version + 1)), name


async def test_a_group_that_joined_goes_on_where_it_was(one: EventLog) -> None:
    store, _ = beside(one)
    await fill(one, "a", "b", events=4)
    await store.trim_feed(0, 6)
    group, seen = one.group("g"), Seen()

    async def some(delivery: Delivery) -> None:
        await seen(delivery)
        if delivery.conversation.conversation == "b":
            await delivery.retry(0.2)

    async with consuming(group, some):
        await asyncio.sleep(0.1)
    seen.clear()
    async with consuming(group, seen):
        await passed(group)
    assert seen.of("b") == [1, 2, 3, 4]
    assert set(seen.of("a")) <= {1, 2, 3, 4}


async def test_an_announced_trim_is_reason_enough_to_read_the_logs(one: EventLog) -> None:
    store, _ = beside(one)
    await fill(one, "a", "b", events=2)
    await store.announce_trim(0, 3)
    group, seen = one.group("g"), Seen()
    async with consuming(group, seen):
        await passed(group)
    assert sorted(seen) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    place = (await group.status()).partitions[0].place
    assert place.mark == (await feed(one))[-1]


async def test_a_group_whose_mark_is_below_the_base_says_so_and_delivers_nothing(one: EventLog) -> None:
    store, _ = beside(one)
    await fill(one, "a", events=2)
    group, seen = one.group("g"), Seen()
    async with consuming(group, nothing):
        await passed(group)
    await fill(one, "a", "b", events=4)
    await store.trim_feed(0, 8)
    with anyio.fail_after(20), pytest.raises(Gap) as told:
        await group.consume(seen, lease=1.5, poll=0.05)
    assert isinstance(told.value, Truncated)
    assert "remove the group and make it again, it then reads the conversations themselves" in str(told.value)
    assert seen == []
    await group.remove()
    async with consuming(group, seen):
        await passed(group)
    assert sorted(seen) == [("a", version) for version in range(1, 7)] + [("b", version) for version in range(1, 5)]


async def test_conversations_of_other_partitions_are_not_read() -> None:
    log = EventLog(MemoryStore(partitions=4))
    store, _ = beside(log)
    names = [f"c{number}" for number in range(20)]
    await fill(log, *names, events=2)
    trimmed = partition_of("t/c0", 4)
    await store.trim_feed(trimmed, 3)
    group, seen = log.group("g"), Seen()
    async with consuming(group, seen):
        await passed(group)
    assert sorted(seen) == sorted((name, version) for name in names for version in (1, 2))
