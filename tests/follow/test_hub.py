"""Followers share: a constant number of connections, one reading of what is new, and no delay by a slow one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import uuid4

import anyio
import pytest
from redis.asyncio import from_url

from eventlog import Conversation, EventLog, FollowerTooSlow, Kind, LogClosed, user
from eventlog.hub import Hub
from eventlog.identity import LogId
from eventlog.log_subscription import LogSubscription
from eventlog.store.memory import MemoryStore
from eventlog.store.port import Entry
from eventlog.tail import MOST_BYTES, MOST_ENTRIES, Mark, Tail
from tests.follow.following import PATIENCE, take, until, versions
from tests.loss.server import Server

pytestmark = pytest.mark.anyio


def chat(log: EventLog, name: str = "c") -> Conversation:
    return log.tenant("t").conversation(name)


async def fill(conversation: Conversation, count: int) -> None:
    await conversation.add(*(user(str(index)) for index in range(count)))


@asynccontextmanager
async def followers(log: EventLog, count: int, names: int, poll: float = 1000) -> AsyncIterator[list[LogSubscription]]:
    """So many followers of so many conversations, all caught up."""
    async with AsyncExitStack() as stack:
        found = []
        for number in range(count):
            found.append(await stack.enter_async_context(chat(log, f"c{number % names}").follow(poll=poll)))
            await until(found[-1], Kind.CAUGHT_UP)
        yield found


async def test_a_thousand_followers_hold_as_many_connections_as_one(own: Server) -> None:
    counts = []
    for count in (1, 1000):
        async with EventLog.open(own.url) as log, followers(log, count, 250) as following:
            await fill(chat(log, "c0"), 1)
            for follower in following[::250]:
                await take(follower, 1)
            counts.append(len(await own.clients()))
    assert counts[0] == counts[1] <= 3


class Counting(MemoryStore):
    """A store that counts readings."""

    reads = 0

    async def read(self, log: LogId, first: int, last: int | None, count: int, *, reverse: bool = False) -> list[Entry]:
        self.reads += 1
        return await super().read(log, first, last, count, reverse=reverse)


async def test_what_is_new_is_read_once_for_all_who_follow() -> None:
    store = Counting()
    log = EventLog(store)
    async with followers(log, 100, 1) as following:
        await fill(chat(log, "c0"), 1)
        for follower in following:
            await take(follower, 1)  # the first may be read by each: the hub had just begun
        before = store.reads
        for version in range(2, 22):
            await fill(chat(log, "c0"), 1)
            for follower in following:
                assert versions(await take(follower, 1)) == [version]
        assert store.reads - before <= 22  # of 2,000 that would have read for themselves


async def test_without_any_wake_up_everything_comes_within_the_polling_interval(log: EventLog) -> None:
    log.hub.hints = False
    async with followers(log, 20, 5, poll=0.1) as following, log.tenant("t").follow("now", poll=0.1) as all_of_them:
        await until(all_of_them, Kind.CAUGHT_UP)
        for round_ in range(5):
            for number in range(5):
                await fill(chat(log, f"c{number}"), 2)
            started = asyncio.get_running_loop().time()
            for follower in following:
                assert versions(await take(follower, 2)) == [2 * round_ + 1, 2 * round_ + 2]
            await take(all_of_them, 10)
            assert asyncio.get_running_loop().time() - started < 5  # a busy machine may take its time


async def test_a_hub_that_is_nowhere_to_be_heard_costs_only_the_polling_interval(log: EventLog) -> None:
    """Its task ends while somebody follows."""
    async with followers(log, 3, 1, poll=0.1) as following:
        running = log.hub._running
        assert running is not None
        running.cancel()
        await asyncio.wait([running])
        await fill(chat(log, "c0"), 1)
        for follower in following:
            assert versions(await take(follower, 1)) == [1]


async def keep_taking(follower: LogSubscription, seen: list[int]) -> None:
    while True:
        seen += versions(await take(follower, 1))


async def test_a_slow_follower_is_told_where_to_go_on_and_slows_nobody(log: EventLog) -> None:
    conversation = chat(log)
    async with conversation.follow(max_behind=1000) as slow, conversation.follow(max_behind=1000) as quick:
        await until(slow, Kind.CAUGHT_UP)
        await until(quick, Kind.CAUGHT_UP)
        await fill(conversation, 1)
        seen = versions(await take(slow, 1))
        for _ in range(15):
            await fill(conversation, 100)
            await take(quick, 100)
        with pytest.raises(FollowerTooSlow) as told:
            await keep_taking(slow, seen)
        assert [item async for item in slow] == []
        rest = versions(await until(conversation.follow(told.value.cursor), Kind.CAUGHT_UP))
        assert seen + rest == list(range(1, 1502))


@pytest.mark.parametrize("hints", [True, False], ids=["woken", "polling"])
async def test_a_follower_that_waited_is_not_slow_however_much_comes_at_once(log: EventLog, hints: bool) -> None:
    log.hub.hints = hints
    conversation = chat(log)
    async with conversation.follow(max_behind=100, poll=1000 if hints else 0.3) as follower:
        await until(follower, Kind.CAUGHT_UP)
        waiting = asyncio.ensure_future(anext(follower))
        await asyncio.sleep(0)
        for _ in range(3):
            await fill(conversation, 1000)
        with anyio.fail_after(PATIENCE):
            found = [await waiting]
        assert versions(found + await take(follower, 2999)) == list(range(1, 3001))


async def test_an_append_that_is_larger_than_a_tail_comes_whole_by_its_one_hint(log: EventLog) -> None:
    async with followers(log, 5, 1) as following:
        for round_ in range(3):
            await fill(chat(log, "c0"), 1000)
            for follower in following:
                assert versions(await take(follower, 1000)) == list(range(1000 * round_ + 1, 1000 * round_ + 1001))


async def test_a_replay_is_never_too_slow(log: EventLog) -> None:
    for _ in range(3):
        await fill(chat(log), 1000)
    assert len(versions(await until(chat(log).follow(max_behind=1), Kind.CAUGHT_UP))) == 3000


async def test_a_follower_of_a_log_that_is_closed_hears_so_at_once(server: str) -> None:
    async with EventLog.open(server) as log:
        waiting = []
        for follower in (chat(log).follow(poll=1000), log.tenant("t").follow("now", poll=1000)):
            await until(follower, Kind.CAUGHT_UP)
            waiting.append(asyncio.ensure_future(anext(follower)))
        await asyncio.sleep(0.05)  # they wait, or are about to: it makes no difference
    for one in waiting:
        with pytest.raises(LogClosed), anyio.fail_after(PATIENCE):
            await one


async def test_a_user_who_may_not_wait_on_the_feeds_polls(server: str) -> None:
    name = f"t{uuid4().hex[:12]}"
    async with from_url(server) as client, EventLog.open(server, namespace=name) as writer:
        await fill(chat(writer), 1)
        await client.acl_setuser(name, enabled=True, passwords="+word", keys=["*"], commands=["+@all", "-xread"])
        guest = f"{server}?username={name}&password=word"
        async with EventLog.open(guest, namespace=name) as log, chat(log).follow(poll=0.1) as follower:
            await until(follower, Kind.CAUGHT_UP)
            await fill(chat(writer), 1)
            assert versions(await take(follower, 1)) == [2]
        await client.acl_deluser(name)


async def test_no_task_outlives_the_log() -> None:
    before = asyncio.all_tasks()
    async with EventLog.open("memory://") as log, chat(log).follow() as follower:
        await until(follower, Kind.CAUGHT_UP)
        assert len(asyncio.all_tasks() - before) == 1
    assert asyncio.all_tasks() == before


async def test_the_hub_rests_when_nobody_follows_and_wakes_up_again(log: EventLog) -> None:
    before = asyncio.all_tasks()
    for _ in range(2):
        async with chat(log).follow(poll=1000) as follower:
            await until(follower, Kind.CAUGHT_UP)
            await fill(chat(log), 1)
            await take(follower, 1)
            await follower.aclose()
        async with chat(log).follow("now", poll=1000) as follower:
            await until(follower, Kind.CAUGHT_UP)
            await fill(chat(log), 1)
            await take(follower, 1)
        with anyio.fail_after(PATIENCE):
            while asyncio.all_tasks() - before:
                await anyio.sleep(0.01)


def entries(first: int, count: int, size: int = 1) -> list[Entry]:
    return [Entry(version, version * 7, b"x" * size) for version in range(first, first + count)]


def test_a_tail_is_bounded_by_count_and_by_bytes_and_knows_where_it_begins() -> None:
    tail = Tail(Mark(0, 0))
    tail.extend(entries(1, 2 * MOST_ENTRIES))
    assert (tail.base, len(tail.entries)) == (Mark(MOST_ENTRIES, MOST_ENTRIES * 7), MOST_ENTRIES)
    tail.extend(entries(2 * MOST_ENTRIES + 1, 5, MOST_BYTES // 2))
    assert [entry.version for entry in tail.entries] == [2 * MOST_ENTRIES + 4, 2 * MOST_ENTRIES + 5]
    assert tail.size == sum(len(entry.document) for entry in tail.entries)
    tail.extend(entries(2 * MOST_ENTRIES + 6, 1, MOST_BYTES + 1))
    assert (tail.entries, tail.size, tail.last.version) == ([], 0, 2 * MOST_ENTRIES + 6)


def test_a_tail_gives_what_follows_an_entry_only_when_that_very_entry_is_held() -> None:
    tail = Tail(Mark(4, 28))
    tail.extend(entries(5, 3))
    assert [entry.version for entry in tail.after(4, 28)] == [5, 6, 7]
    assert [entry.version for entry in tail.after(6, 42)] == [7]
    for version, stamp in ((4, 1), (6, 43), (3, 21), (8, 56), (7, 49)):
        assert tail.after(version, stamp) == []
    assert [tail.holds(version, version * 7) for version in (3, 4, 7, 8)] == [False, True, True, False]


async def test_all_tails_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventlog.hub.MOST_TAIL_BYTES", 20_000)
    log = EventLog(MemoryStore())
    async with followers(log, 50, 50) as following:
        for round_ in range(3):
            for number, follower in enumerate(following):
                await chat(log, f"c{number}").add(user("x" * 1000))
                assert versions(await take(follower, 1)) == [round_ + 1]
                kept = sum(tail.size for tail in log.hub._tails.values())
                assert kept == log.hub._tail_bytes <= 20_000
    assert isinstance(log.hub, Hub)
    assert (log.hub._tail_bytes, log.hub._tails) == (0, {})
