"""What a group promises its consumers, on every store."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import anyio
import pytest

from eventlog import EventLog, InvalidInput
from eventlog.consumer_group import ConsumerGroup
from eventlog.delivery import Delivery
from eventlog.errors import GroupGone, ReaderFenced
from eventlog.reader import Reader, Store
from eventlog.sharing import Backoff
from eventlog.store.beside import readers_beside
from eventlog.store.conformance.suite import notes
from eventlog.store.readers import Advance, Mark, ReaderStore, Settings
from tests.groups.running import QUICK, consuming, held, passed, until

pytestmark = pytest.mark.anyio
Seen = list[tuple[str, int, int]]


def collect(seen: Seen):  # type: ignore[no-untyped-def]
    async def handle(delivery: Delivery) -> None:
        seen.append((delivery.conversation.conversation, delivery.version, delivery.count))

    return handle


async def fill(log: EventLog, *names: str, events: int = 3, tenant: str = "t") -> None:
    for name in names:
        for number in range(events):
            await log.tenant(tenant).conversation(name).append(*notes(number))


async def parked(group: ConsumerGroup) -> list[tuple[str, int]]:
    return sorted([(one.conversation, one.version) async for one in group.parked()])


async def test_each_event_is_handled_once_and_in_order_and_new_ones_come_by_themselves(log: EventLog) -> None:
    await fill(log, "a", "b")
    group, seen = log.group("g"), Seen()
    async with consuming(group, collect(seen)):
        await passed(group)
        await fill(log, "b", "c")
        await passed(group)
    assert sorted(seen) == sorted(
        [("a", v, 1) for v in (1, 2, 3)] + [("b", v, 1) for v in range(1, 7)] + [("c", v, 1) for v in (1, 2, 3)]
    )
    for name in "abc":
        assert [v for n, v, _ in seen if n == name] == sorted(v for n, v, _ in seen if n == name)


async def test_a_group_goes_on_where_it_was(log: EventLog) -> None:
    seen = Seen()
    for number in range(3):
        await fill(log, "a", events=2)
        async with consuming(log.group("g"), collect(seen)):
            await passed(log.group("g"))
        assert len(seen) == 2 * number + 2


async def test_now_is_when_the_group_was_created_and_not_when_it_consumes(log: EventLog) -> None:
    await fill(log, "a", "b")
    await log.group("g", start="now").create()
    await fill(log, "a", events=1)
    seen = Seen()
    async with consuming(log.group("g"), collect(seen)):
        await passed(log.group("g"))
    assert seen == [("a", 4, 1)]


async def test_a_conversation_whose_event_fails_waits_and_others_go_on(log: EventLog) -> None:
    await fill(log, "a", "b", events=4)
    group, seen, failed = log.group("g"), Seen(), anyio.Event()

    async def handle(delivery: Delivery) -> None:
        if delivery.key[1:] == ("a", 2) and delivery.count < 3:
            failed.set()
            raise ValueError("not yet")
        seen.append((delivery.conversation.conversation, delivery.version, delivery.count))

    async with consuming(group, handle, backoff=Backoff(first=0.2)):
        await failed.wait()
        await until(lambda: _is(lambda: len([1 for name, *_ in seen if name == "b"]) == 4))
        assert ("a", 3, 1) not in seen
        await passed(group)
    assert [one for one in seen if one[0] == "a"] == [("a", 1, 1), ("a", 2, 3), ("a", 3, 1), ("a", 4, 1)]


async def _is(check) -> bool:  # type: ignore[no-untyped-def]
    return bool(check())


async def test_a_poison_event_is_parked_with_its_error_and_its_conversation_goes_on(log: EventLog) -> None:
    await fill(log, "a", "b")
    group, seen, tries = log.group("g"), Seen(), list[int]()

    async def handle(delivery: Delivery) -> None:
        if delivery.key[1:] == ("a", 2):
            tries.append(delivery.count)
            raise RuntimeError("p" * 20_000)
        seen.append((delivery.conversation.conversation, delivery.version, delivery.count))

    async with consuming(group, handle, max_deliveries=4):
        await passed(group)
    assert tries == [1, 2, 3, 4]
    [one] = [one async for one in group.parked()]
    assert (one.conversation, one.version, one.deliveries, one.waits) == ("a", 2, 4, False)
    assert one.error.startswith("RuntimeError: ppp")
    assert len(one.error) == 1_000
    assert len(one.trace) == 8_000
    assert await group.parked_event(one.log, 2) == one
    assert sorted(seen) == [("a", 1, 1), ("a", 3, 1), ("b", 1, 1), ("b", 2, 1), ("b", 3, 1)]


async def test_a_replayed_event_is_delivered_by_itself_and_what_is_dropped_never_again(log: EventLog) -> None:
    await fill(log, "a", "b")
    group, seen, mended = log.group("g"), Seen(), False

    async def handle(delivery: Delivery) -> None:
        if delivery.version == 2 and not mended:
            raise ValueError("poison")
        seen.append((delivery.conversation.conversation, delivery.version, delivery.count))

    async with consuming(group, handle, max_deliveries=2):
        await passed(group)
        mended = True
        a, b = (log.tenant("t").conversation(name).log for name in "ab")
        assert not await group.replay(a, 1)
        assert await group.replay(a, 2)
        assert await group.drop(b, 2)
        await until(lambda: _none(parked(group)))
        await passed(group)
    assert [one for one in seen if one[0] == "a"] == [("a", 1, 1), ("a", 3, 1), ("a", 2, 1)]
    assert [one for one in seen if one[0] == "b"] == [("b", 1, 1), ("b", 3, 1)]


async def _none(found) -> bool:  # type: ignore[no-untyped-def]
    return not await found


@pytest.mark.parametrize("ask", ["replay", "drop"])
async def test_a_conversation_may_wait_for_its_parked_event(log: EventLog, ask: str) -> None:
    await fill(log, "a", "b")
    group, seen, mended = log.group("g"), Seen(), False

    async def handle(delivery: Delivery) -> None:
        if delivery.key[1:] == ("a", 2) and not mended:
            raise ValueError("poison")
        seen.append((delivery.conversation.conversation, delivery.version, delivery.count))

    options = {"max_deliveries": 2, "on_park": "wait"}
    a = log.tenant("t").conversation("a").log
    async with consuming(group, handle, **options):
        await until(lambda: parked(group))
        await fill(log, "a", "b", events=2)
        await until(lambda: _is(lambda: ("b", 5, 1) in seen))
    assert [one for one in seen if one[0] == "a"] == [("a", 1, 1)]
    mended = True
    assert await (group.replay(a, 2) if ask == "replay" else group.drop(a, 2))  # nobody is there to do it yet
    async with consuming(group, handle, **options):
        await passed(group)
        await fill(log, "a", events=1)
        await passed(group)
    rest = [("a", version, 1) for version in range(2 if ask == "replay" else 3, 7)]
    assert [one for one in seen if one[0] == "a"] == [("a", 1, 1), *rest]
    assert await parked(group) == []


async def test_a_replay_that_fails_is_parked_again(log: EventLog) -> None:
    await fill(log, "a")
    group, tries = log.group("g"), list[int]()

    async def handle(delivery: Delivery) -> None:
        if delivery.version == 2:
            tries.append(delivery.count)
            raise ValueError("poison")

    async with consuming(group, handle, max_deliveries=2):
        await passed(group)
        assert await group.replay(log.tenant("t").conversation("a").log, 2)
        await until(lambda: _is(lambda: len(tries) == 4))
        await passed(group)
    assert tries == [1, 2, 1, 2]
    assert await parked(group) == [("a", 2)]


async def test_deliveries_are_answered_one_by_one(log: EventLog) -> None:
    await fill(log, "a", "b", events=2)
    group, seen = log.group("g"), Seen()
    async with group.deliveries(**QUICK) as deliveries:
        async for delivery in deliveries:
            name, version, count = delivery.conversation.conversation, delivery.version, delivery.count
            seen.append((name, version, count))
            if (name, version, count) == ("a", 1, 1):
                await delivery.retry(0.0)
            elif (name, version) == ("b", 1):
                await delivery.park("not mine")
                with pytest.raises(InvalidInput, match="answered with 'park'"):
                    await delivery.ack()
            else:
                await delivery.ack()
            if len(seen) == 5:
                break
    assert [one for one in seen if one[0] == "a"] == [("a", 1, 1), ("a", 1, 2), ("a", 2, 1)]
    assert await parked(group) == [("b", 1)]
    status = await group.status()
    assert (status.lag, status.waiting, status.roll.members) == (0, 0, ())


async def test_what_was_not_answered_is_delivered_again(log: EventLog) -> None:
    await fill(log, "a", events=2)
    for count in (1, 2):
        async with log.group("g").deliveries(**QUICK) as deliveries:
            delivery = await anext(aiter(deliveries))
            assert (delivery.version, delivery.count) == (1, count)


async def test_conversations_are_handled_side_by_side_up_to_the_concurrency(log: EventLog) -> None:
    await fill(log, *(f"c{number}" for number in range(12)), events=2)
    group, running, most = log.group("g"), 0, 0

    async def handle(delivery: Delivery) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(0.05)
        running -= 1

    async with consuming(group, handle, concurrency=5):
        await passed(group)
    assert most == 5


async def test_members_share_the_partitions_when_one_joins_and_when_one_leaves(log: EventLog) -> None:
    group, seen = log.group("g"), Seen()
    shares: list[list[int]] = []

    async def settle(members: int) -> None:
        async def shared() -> bool:
            found = sorted(held(await group.status()).values())
            return len(found) == members and sum(found) == 16 and found[-1] - found[0] <= 1

        await until(shared)
        shares.append(sorted(held(await group.status()).values()))
        await fill(log, *(f"c{number}" for number in range(30)), events=1)
        await passed(group)

    async with AsyncExitStack() as stack:
        await stack.enter_async_context(consuming(group, collect(seen)))
        await settle(1)
        await stack.enter_async_context(consuming(group, collect(seen)))
        async with consuming(group, collect(seen)):
            await settle(3)
        await settle(2)
    assert shares == [[16], [5, 5, 6], [8, 8]]
    assert sorted(seen) == sorted((f"c{n}", version, 1) for n in range(30) for version in (1, 2, 3))


async def test_a_partition_is_given_up_only_when_its_handlers_have_returned(log: EventLog) -> None:
    await fill(log, *(f"c{number}" for number in range(40)), events=1)
    group, gate, overlap, begun = log.group("g"), anyio.Event(), list[Delivery](), list[Delivery]()

    async def slow(delivery: Delivery) -> None:
        begun.append(delivery)
        await gate.wait()

    async def second(delivery: Delivery) -> None:
        overlap.extend(one for one in begun if one.holder.partition == delivery.holder.partition and not gate.is_set())

    async with consuming(group, slow, concurrency=64):
        await until(lambda: _is(lambda: len(begun) == 40))
        async with consuming(group, second):
            await until(lambda: _two(group))
            await anyio.sleep(QUICK["lease"] * 2)  # longer than a lease: it is held all the same
            assert not overlap
            assert sum(held(await group.status()).values()) == 16
            gate.set()
            await passed(group)
    assert len(begun) == 40


async def _two(group: ConsumerGroup) -> bool:
    return len((await group.status()).roll.members) == 2


async def test_a_paused_group_hands_nothing_over_until_it_is_resumed(log: EventLog) -> None:
    group, seen = log.group("g"), Seen()
    await group.create()
    await group.pause()
    async with consuming(group, collect(seen)):
        await until(lambda: _is_held(group))
        await fill(log, "a", "b")
        await anyio.sleep(0.3)
        assert seen == []
        assert (await group.status()).lag == 6
        await group.resume()
        await passed(group)
        assert len(seen) == 6
        await group.pause()
        await anyio.sleep(QUICK["lease"])
        await fill(log, "a")
        await anyio.sleep(0.3)
        assert len(seen) == 6
        assert (await group.status()).roll.paused


async def _is_held(group: ConsumerGroup) -> bool:
    return sum(held(await group.status()).values()) == 16


async def test_a_group_of_one_tenant_never_gets_anothers_event(log: EventLog) -> None:
    names = [f"c{number}" for number in range(8)]
    await fill(log, *names, tenant="mine")
    await fill(log, *names, tenant="mine/c1")
    await fill(log, *names, tenant="other")
    group, tenants = log.group("g", tenant="mine"), list[str]()

    async def handle(delivery: Delivery) -> None:
        tenants.append(delivery.conversation.tenant)

    async with consuming(group, handle):
        await passed(group)
    assert tenants == ["mine"] * 24
    with pytest.raises(InvalidInput, match="delivers 'mine', not 'other'"):
        await log.group("g", tenant="other").create()
    with pytest.raises(InvalidInput, match="use another name"):
        await log.group("g").create()


async def test_a_removed_group_ends_its_members_and_forgets_its_marks(log: EventLog) -> None:
    await fill(log, "a")
    group, seen = log.group("g"), Seen()
    member = asyncio.create_task(group.consume(collect(seen), **QUICK))
    await until(lambda: _is(lambda: len(seen) == 3))
    await passed(group)
    await group.remove()
    with pytest.raises(GroupGone):
        await member
    with pytest.raises(GroupGone):
        await group.status()
    async with consuming(group, collect(seen)):
        await passed(group)
    assert len(seen) == 6


async def test_a_former_holders_mark_is_refused(log: EventLog) -> None:
    await fill(log, "a", events=2)
    store, readers_of = readers_beside(log.store)
    partition = (await store.feed_ends()).index(2)
    first = await _taken(store, readers_of(), partition, 0.05)
    second = await _taken(store, readers_of(), partition, 30.0)
    entries = await second.fetch(second.mark, 10)
    marks = [Mark(entry.seq, entry.stamp) for entry in entries]
    with pytest.raises(ReaderFenced):
        await first.advance(Advance(None, marks[1]))
    await second.advance(Advance(None, marks[0]))
    with pytest.raises(ReaderFenced):
        await first.renew()
    with pytest.raises(ReaderFenced):
        await first.release()
    assert (await readers_of().place("g", partition)).mark == marks[0]
    assert (first.generation, second.generation) == (1, 2)
    assert not first.held


async def test_a_member_that_lost_its_partition_stops_its_handlers_and_their_answers_are_refused(
    log: EventLog,
) -> None:
    await fill(log, "a", events=2)
    store, readers_of = readers_beside(log.store)
    partition = (await store.feed_ends()).index(2)
    taken, refused, counts = list[Reader](), list[BaseException](), list[int]()

    async def handle(delivery: Delivery) -> None:
        counts.append(delivery.count)
        if delivery.version == 1 and len(counts) == 1:
            readers = readers_of()
            await readers.remove("g")  # behind its holder's back
            await readers.create("g", Settings())
            taken.append(await _taken(store, readers, partition))
            try:
                await anyio.sleep(30)
            except asyncio.CancelledError:
                try:
                    await delivery.ack()
                except ReaderFenced as error:
                    refused.append(error)
                raise

    async with consuming(log.group("g"), handle):
        await until(lambda: _is(lambda: refused))
        await taken[0].release()
        await passed(log.group("g"))
    assert counts == [1, 1, 1]


async def _taken(store: Store, readers: ReaderStore, partition: int, lease: float = 30.0) -> Reader:
    with anyio.fail_after(10):
        while True:
            start = Mark(0, 0)
            reader = await Reader.acquire(store, readers, "g", partition, start=start, holder="test", lease=lease)
            if reader is not None:
                return reader
            await anyio.sleep(0.01)


@pytest.mark.parametrize(
    "options",
    [{"concurrency": 0}, {"batch": 0}, {"max_deliveries": 0}, {"on_park": "stop"}, {"lease": 0.01}],
    ids=lambda options: next(iter(options)),
)
async def test_options_that_cannot_be_kept_are_refused(log: EventLog, options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        await log.group("g").consume(collect([]), **options)  # type: ignore[arg-type]
