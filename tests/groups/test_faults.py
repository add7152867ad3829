"""A member may die at any point: nothing is skipped, and what kills is found out."""

from __future__ import annotations

import itertools

import pytest

from eventlog import EventLog, user
from eventlog.consumer_group import ConsumerGroup
from eventlog.delivery import Delivery
from eventlog.parking import Parked
from eventlog.store.conformance.suite import notes
from tests.groups.dying import NAME, Dead, DyingReaders, Life, World

pytestmark = pytest.mark.anyio


async def filled(names: str = "abc") -> World:
    """Some conversations, some appends of several events."""
    world = World()
    log = EventLog(world.store)
    for number in range(3):
        for name in names:
            chat = log.tenant("t").conversation(name)
            await chat.append(*notes(*range(1 + (number + ord(name)) % 3)))
    return world


def failing(delivery: Delivery) -> None:
    """``a`` 2 fails once, ``b`` 2 always."""
    if delivery.conversation.conversation == "a" and delivery.version == 2 and delivery.count == 1:
        raise ValueError("once")
    if delivery.conversation.conversation == "b" and delivery.version == 2:
        raise ValueError("always")


async def parked_in(world: World) -> list[Parked]:
    found = []
    for partition in range(world.store.partitions):
        found += [Parked.decode(document) async for _, document in world.readers.parked(NAME, partition)]
    return found


@pytest.mark.parametrize("on_park", ["go-on", "wait"])
async def test_wherever_a_member_dies_nothing_is_skipped(on_park: str) -> None:
    names: set[str] = set()
    for point in itertools.count():
        world, life = await filled(), Life(ends_at=point)
        await world.life(life, failing, max_deliveries=3, on_park=on_park)
        names.update(life.named)
        if not life.dead:
            break
        world.clock.pass_lease()
        assert await world.life(Life(), failing, max_deliveries=3, on_park=on_park) is None
        [parked] = await parked_in(world)
        assert (parked.conversation, parked.version) == ("b", 2), life.named[-1]
        held = {key for key in world.keys if on_park == "wait" and key[1] == "b" and key.version > 2}
        handled = {key for key, count in world.handled.items() if count}
        assert handled == {key for key in world.keys if key[1:] != ("b", 2)} - held, life.named[-1]
        assert world.in_order(), life.named[-1]
    assert point > 40
    assert names >= {
        f"{when} {what}" for when in ("before", "after") for what in ("acquire", "advance", "handling", "join")
    }


async def test_a_member_that_dies_twice_loses_nothing_either() -> None:
    for first, second in itertools.product(range(10, 60, 7), range(6, 40, 5)):
        world = await filled()
        for life in (Life(ends_at=first), Life(ends_at=second), Life()):
            ended = await world.life(life, failing, max_deliveries=4)
            world.clock.pass_lease()
        assert ended is None
        assert {key for key, count in world.handled.items() if count} == {k for k in world.keys if k[1:] != ("b", 2)}
        assert world.in_order()


async def test_an_event_that_kills_is_found_out_and_parked_and_others_are_not_blamed() -> None:
    world, deaths = await filled("abcdefgh"), 0
    assert all(world.store.feeds), "its process has another partition, too"
    while True:
        life = Life()

        def killer(delivery: Delivery, life: Life = life) -> None:
            if (delivery.conversation.conversation, delivery.version) == ("c", 3):
                life.dead = True
                raise Dead

        await world.life(life, killer, max_deliveries=4)
        if not life.dead:
            break
        deaths += 1
        assert deaths < 10
        world.clock.pass_lease()
    [parked] = await parked_in(world)
    assert (parked.conversation, parked.version, parked.deliveries) == ("c", 3, 4)
    assert "process ended" in parked.error
    # The first death leaves a window in doubt and counts it once; from then on it is named.
    assert deaths == 4
    assert {key for key, count in world.handled.items() if count} == {key for key in world.keys if key[1:] != ("c", 3)}
    assert all(count <= 2 for count in world.handled.values()), world.handled


async def test_a_crash_while_an_event_is_tried_again_is_counted() -> None:
    world, life = await filled(), Life()

    def fails_then_kills(delivery: Delivery) -> None:
        if delivery.key[1:] == ("c", 2):
            life.dead = delivery.count == 2
            raise Dead if life.dead else ValueError("at first")

    await world.life(life, fails_then_kills)
    world.clock.pass_lease()
    assert await world.life(Life()) is None
    assert next(counts for key, counts in world.begun.items() if key[1:] == ("c", 2)) == [1, 2, 3]


async def test_deliveries_count_the_one_that_a_crash_ended() -> None:
    world = await filled()
    life = Life()

    def dies(delivery: Delivery) -> None:
        life.dead = True
        raise Dead

    await world.life(life, dies, concurrency=1)
    [first] = world.begun
    world.clock.pass_lease()
    assert await world.life(Life()) is None
    assert world.begun[first] == [1, 2]


async def test_a_mark_that_cannot_be_written_is_said() -> None:
    world = await filled()

    class Refusing(DyingReaders):
        async def advance(self, *_: object) -> None:
            raise OSError("the disk is full")

    group = ConsumerGroup(world.store, lambda: Refusing(world.readers, Life(), world), NAME)  # type: ignore[arg-type,return-value]

    async def handle(delivery: Delivery) -> None:
        """Handles anything."""

    with pytest.raises(OSError, match="the disk is full"):
        await group.consume(handle)


async def test_a_member_that_stops_in_order_leaves_nothing_to_be_delivered_twice() -> None:
    world = World()
    chat = EventLog(world.store).tenant("t").conversation("a")
    await chat.add(*(user(str(number)) for number in range(20)))
    seen: list[int] = []

    async def take(count: int) -> None:
        group = ConsumerGroup(world.store, lambda: world.readers, NAME)
        async with group.deliveries(poll=0.01) as deliveries:
            async for delivery in deliveries:
                seen.append(delivery.version)
                await delivery.ack()
                if len(seen) == count:
                    return

    await take(7)
    await take(20)
    assert seen == list(range(1, 21))
