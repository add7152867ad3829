"""What every ``ReaderStore`` must do, as tests that anyone can run on theirs.

Subclass ``ReaderStoreConformance``, give it the pytest fixtures ``store`` (a fresh and empty
``LogStore`` with feeds) and ``readers`` (the ``ReaderStore`` beside it). Leases run by the store's
own clock, so a few tests wait for one to expire.
"""

from __future__ import annotations

import anyio

from eventlog.errors import FeedLost, GroupGone, ReaderFenced
from eventlog.identity import partition_of
from eventlog.reader import Store
from eventlog.store.conformance.suite import LOG, put
from eventlog.store.readers import (
    BEGINNING,
    NEVER,
    Advance,
    Ask,
    Counts,
    Hold,
    Mark,
    Place,
    ReaderStore,
    Settings,
    Waiting,
)

LONG, SHORT = 60_000, 40
GROUP = "billing / *"


async def marks(store: Store) -> tuple[int, list[Mark]]:
    """The partition of ``LOG`` after three appends, and the mark of each."""
    for number in range(3):
        await put(store, number, f"op-{number}")
    partition = partition_of(LOG.path, store.partitions)
    return partition, [Mark(entry.seq, entry.stamp) for entry in await store.read_feed(partition, 1, 10)]


async def fenced(readers: ReaderStore, hold: Hold) -> None:
    """Whatever this holder tries is refused."""
    for attempt in (
        readers.renew(hold, LONG, None),
        readers.advance(hold, Advance(None, None), LONG),
        readers.release(hold),
    ):
        try:
            await attempt
        except ReaderFenced:
            continue
        raise AssertionError(f"{hold} was not refused")


class ReaderStoreConformance:
    """Every test of the suite."""

    async def test_a_group_keeps_what_it_was_created_with(self, store: Store, readers: ReaderStore) -> None:
        settings = Settings("acme", (Mark(3, 7), *[BEGINNING] * (store.partitions - 1)))
        assert await readers.create(GROUP, settings) == settings
        assert await readers.create(GROUP, Settings()) == settings
        assert await readers.settings(GROUP) == settings
        await readers.create("another", Settings())
        assert await readers.groups() == ["another", GROUP]

    async def test_what_was_never_created_or_was_removed_is_gone(self, store: Store, readers: ReaderStore) -> None:
        await readers.create(GROUP, Settings())
        partition, (first, *_) = await marks(store)
        hold = Hold(GROUP, partition, "aa")
        await readers.acquire(hold, "one", LONG)
        await readers.advance(hold, Advance(None, first, waiting={LOG.path: Waiting(1, 1, 1)}), LONG)
        await readers.remove(GROUP)
        for attempt in (
            readers.settings(GROUP),
            readers.roll(GROUP),
            readers.join(GROUP, "m", "m", LONG),
            readers.pause(GROUP, True),
        ):
            try:
                await attempt
            except GroupGone:
                continue
            raise AssertionError("a removed group answered")
        await fenced_or_gone(readers, hold)
        assert await readers.groups() == []
        assert await readers.place(GROUP, partition) == Place()
        assert await readers.counts(GROUP, partition) == Counts(0, 0, 0)

    async def test_members_stand_in_the_order_they_joined_until_their_lease_ends(self, readers: ReaderStore) -> None:
        await readers.create(GROUP, Settings())
        await readers.join(GROUP, "z", "first", LONG)
        await anyio.sleep(0.002)  # two members of one millisecond stand by id
        await readers.join(GROUP, "b", "second", SHORT)
        roll = await readers.join(GROUP, "z", "first", LONG)
        assert [(one.id, one.name) for one in roll.members] == [("z", "first"), ("b", "second")]
        await _until_alone(readers, "z")
        assert [one.id for one in (await readers.join(GROUP, "z", "first", LONG)).members] == ["z"]
        await readers.leave(GROUP, "z")
        await readers.leave(GROUP, "z")
        assert (await readers.roll(GROUP)).members == ()

    async def test_a_group_is_paused_and_goes_on(self, readers: ReaderStore) -> None:
        await readers.create(GROUP, Settings())
        assert not (await readers.join(GROUP, "m", "m", LONG)).paused
        await readers.pause(GROUP, True)
        assert (await readers.roll(GROUP)).paused
        assert (await readers.join(GROUP, "m", "m", LONG)).paused
        await readers.pause(GROUP, False)
        assert not (await readers.join(GROUP, "m", "m", LONG)).paused

    async def test_a_reader_has_one_holder_at_a_time(self, readers: ReaderStore) -> None:
        first, second = Hold(GROUP, 0, "aa"), Hold(GROUP, 0, "bb")
        place = await readers.acquire(first, "one", LONG)
        assert place is not None
        assert (place.mark, place.generation, place.window) == (None, 1, 0)
        assert await readers.acquire(second, "two", LONG) is None
        assert await readers.acquire(first, "one", LONG) == place, "asked twice, taken once"
        await fenced(readers, second)
        assert (await readers.place(GROUP, 0)).holder == "one"
        await readers.release(first)
        assert (await readers.place(GROUP, 0))[1:4] == ("", 0, 0)
        place = await readers.acquire(second, "two", LONG)
        assert place is not None
        assert place.generation == 2
        await fenced(readers, first)

    async def test_an_expired_reader_is_kept_by_its_holder_or_taken_by_another(self, readers: ReaderStore) -> None:
        first, second = Hold(GROUP, 0, "aa"), Hold(GROUP, 0, "bb")
        await readers.acquire(first, "one", 1)
        await anyio.sleep(0.01)
        await readers.renew(first, SHORT, None)
        assert await readers.acquire(second, "two", LONG) is None
        await readers.renew(first, 1, None)
        with anyio.fail_after(10):
            while await readers.acquire(second, "two", LONG) is None:
                await anyio.sleep(0.005)
        await fenced(readers, first)

    async def test_a_step_is_taken_once_and_whole(self, store: Store, readers: ReaderStore) -> None:
        partition, (first, second, _) = await marks(store)
        hold, waiting = Hold(GROUP, partition, "aa"), Waiting(2, 5, 77, 1, 3, 1_234, True)
        await readers.acquire(hold, "one", LONG)
        step = Advance(None, first, 2, {"a/b": waiting, "c/d": waiting}, {"1@a/b": b"why"})
        for _ in range(2):
            assert await readers.advance(hold, step, LONG) == Counts(2, 1, 0)
        place = await readers.place(GROUP, partition)
        assert (place.mark, place.window) == (first, 2)
        assert await readers.waiting(GROUP, partition) == {"a/b": waiting, "c/d": waiting}
        assert [item async for item in readers.parked(GROUP, partition)] == [("1@a/b", b"why")]
        assert await readers.parked_one(GROUP, partition, "1@a/b") == b"why"
        assert await readers.parked_one(GROUP, partition, "2@a/b") is None
        step = Advance(first, second, 0, {"a/b": None, "c/d": waiting._replace(due_ms=NEVER)}, {"1@a/b": None})
        assert await readers.advance(hold, step, LONG) == Counts(1, 0, 0)
        assert await readers.waiting(GROUP, partition) == {"c/d": waiting._replace(due_ms=NEVER)}

    async def test_a_mark_that_is_not_where_it_was_left_is_not_moved(self, store: Store, readers: ReaderStore) -> None:
        partition, (first, second, third) = await marks(store)
        hold = Hold(GROUP, partition, "aa")
        await readers.acquire(hold, "one", LONG)
        await readers.advance(hold, Advance(None, second), LONG)
        for before, mark in ((None, third), (first, third), (None, first)):
            try:
                await readers.advance(hold, Advance(before, mark, parked={"1@a/b": b"x"}), LONG)
            except ReaderFenced:
                continue
            raise AssertionError("the mark moved")
        assert (await readers.place(GROUP, partition)).mark == second
        assert (await readers.counts(GROUP, partition)).parked == 0

    async def test_a_mark_names_only_an_entry_that_is_there(self, store: Store, readers: ReaderStore) -> None:
        partition, (first, second, third) = await marks(store)
        hold = Hold(GROUP, partition, "aa")
        await readers.acquire(hold, "one", LONG)
        await readers.advance(hold, Advance(None, first), LONG)
        for gone in (Mark(second.seq, second.stamp ^ 1), Mark(third.seq + 1, third.stamp)):
            try:
                await readers.advance(hold, Advance(first, gone, waiting={"a/b": Waiting(1, 1, 1)}), LONG)
            except FeedLost:
                continue
            raise AssertionError("a mark named what is not there")
        assert (await readers.place(GROUP, partition)).mark == first
        assert (await readers.counts(GROUP, partition)).waiting == 0

    async def test_a_long_step_is_taken_whole(self, readers: ReaderStore) -> None:
        hold = Hold(GROUP, 0, "aa")
        await readers.acquire(hold, "one", LONG)
        waiting = {f"a/{number}": Waiting(number, number, number) for number in range(1, 3_001)}
        parked = {f"{number}@a/b": b"%d" % number for number in range(1, 2_001)}
        assert await readers.advance(hold, Advance(None, None, 0, dict(waiting), dict(parked)), LONG) == Counts(
            3_000, 2_000, 0
        )
        assert await readers.waiting(GROUP, 0) == waiting
        assert {name: document async for name, document in readers.parked(GROUP, 0)} == parked

    async def test_what_is_asked_stays_until_it_is_done(self, readers: ReaderStore) -> None:
        hold = Hold(GROUP, 0, "aa")
        await readers.acquire(hold, "one", LONG)
        await readers.advance(hold, Advance(None, None, parked={"1@a/b": b"x", "2@a/b": b"y"}), LONG)
        assert not await readers.ask(GROUP, 0, "3@a/b", Ask.REPLAY)
        assert await readers.ask(GROUP, 0, "1@a/b", Ask.REPLAY)
        assert await readers.ask(GROUP, 0, "2@a/b", Ask.DROP)
        assert await readers.asked(GROUP, 0) == {"1@a/b": Ask.REPLAY, "2@a/b": Ask.DROP}
        assert await readers.renew(hold, LONG, None) == Counts(0, 2, 2)
        assert await readers.advance(hold, Advance(None, None, parked={"2@a/b": None}, done={"1@a/b"}), LONG) == Counts(
            0, 1, 0
        )

    async def test_groups_are_apart(self, store: Store, readers: ReaderStore) -> None:
        partition, (first, *_) = await marks(store)
        names = ("a", "a:waiting", "a%3Awaiting", "a*")
        for name in names:
            assert await readers.acquire(Hold(name, partition, "aa"), name, LONG) is not None
        await readers.advance(Hold("a", partition, "aa"), Advance(None, first, waiting={"x/y": Waiting(1, 1, 1)}), LONG)
        for name in names[1:]:
            assert (await readers.place(name, partition)).mark is None
            assert await readers.counts(name, partition) == Counts(0, 0, 0)
        await readers.remove("a:waiting")
        assert (await readers.place("a", partition)).mark == first

    async def test_waiting_ends_with_an_append(self, store: Store, readers: ReaderStore) -> None:
        partition, found = await marks(store)
        assert await readers.wait({partition: len(found)}, 0.01) == {}
        with anyio.fail_after(10):
            assert list(await readers.wait({partition: 0}, 5)) == [partition]
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(put, store, "more", "op-more")
                grown: dict[int, int] = {}
                while not grown:
                    grown = await readers.wait({partition: len(found)}, 1)
        assert grown == {partition: len(found) + 1}


async def fenced_or_gone(readers: ReaderStore, hold: Hold) -> None:
    """A holder of a removed reader moves nothing; giving up what nobody holds is no harm."""
    for attempt in (readers.renew(hold, LONG, None), readers.advance(hold, Advance(None, None), LONG)):
        try:
            await attempt
        except ReaderFenced:
            continue
        raise AssertionError(f"{hold} was not refused")


async def _until_alone(readers: ReaderStore, member: str) -> None:
    with anyio.fail_after(10):
        while [one.id for one in (await readers.roll(GROUP)).members] != [member]:
            await anyio.sleep(0.005)
