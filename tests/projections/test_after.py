"""What may have an effect outside: what is applied live, once; never what is replayed."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from eventlog.store.views import ViewId
from projections.partition import Applied, Told
from tests.projections.counting import COUNTING, Failing
from tests.projections.timeless import BACKEND
from tests.projections.world import World, logs_in, message

pytestmark = pytest.mark.anyio
HERE = logs_in(0)


@pytest.fixture(scope="module")
def anyio_backend() -> Any:
    return BACKEND


@pytest.fixture
async def world() -> World:
    return World.in_memory()


class Effects:
    """Remembers what it was called with. ``slow``: how long it takes for a generation."""

    def __init__(self, slow: dict[int, float] | None = None) -> None:
        self.steps: list[Applied] = []
        self.slow = slow or {}

    async def __call__(self, applied: Applied) -> None:
        self.steps.append(applied)
        await asyncio.sleep(self.slow.get(applied.view.generation, 0.0))

    @property
    def done(self) -> Counter[tuple[str, int]]:
        """How often each event had its effect."""
        return Counter(
            (log.conversation, event.version) for step in self.steps if not step.replaying for log, event in step.events
        )


async def test_a_build_replays_and_what_follows_is_live(world: World) -> None:
    await world.say(HERE[0], 3)
    effects = Effects()
    await world.projector(COUNTING, after=effects).catch_up()
    assert [(one.replaying, [event.version for _, event in one.events]) for one in effects.steps] == [(True, [1, 2, 3])]
    await world.say(HERE[0], 2)
    await world.projector(COUNTING, after=effects).catch_up()
    assert effects.done == {(HERE[0].conversation, 4): 1, (HERE[0].conversation, 5): 1}
    assert effects.steps[-1].view == ViewId("counting", 1)
    assert effects.steps[-1].partition == 0


async def test_it_is_called_when_it_is_written(world: World) -> None:
    await world.projector(COUNTING).catch_up()
    seen: list[int] = []

    async def after(applied: Applied) -> None:
        for log, event in applied.events:
            assert await world.version(applied.view, log) >= event.version
            seen.append(event.version)

    await world.say(HERE[0], 5)
    await world.projector(COUNTING, after=after, batch=2).catch_up()
    assert seen == [1, 2, 3, 4, 5]


async def test_every_event_of_a_long_log_comes_once_in_order(world: World) -> None:
    await world.projector(COUNTING).catch_up()
    for log in HERE[:2]:
        for _ in range(6):
            await world.append(log, *(message() for _ in range(1_000)))
    effects = Effects()
    await world.projector(COUNTING, after=effects).catch_up()
    for log in HERE[:2]:
        versions = [event.version for one in effects.steps for which, event in one.events if which == log]
        assert versions == list(range(1, 6_001))


async def test_a_rebuild_has_no_effect(world: World) -> None:
    await world.say(HERE[0], 3)
    effects = Effects()
    await world.projector(COUNTING).catch_up()
    await world.projector(COUNTING, after=effects).rebuild("counting")
    assert effects.done == {}
    assert all(one.view == ViewId("counting", 2) for one in effects.steps)


async def test_around_the_flip_of_a_rebuild_an_event_may_have_its_effect_twice_and_no_more(world: World) -> None:
    await world.say(HERE[0], 2)
    await world.projector(COUNTING).catch_up()
    await world.live.change("counting", lambda record: record.begin(1, 5))
    effects = Effects(slow={2: 1.0})
    task = asyncio.create_task(world.projector(COUNTING, after=effects, batch=1).run())
    for _ in range(20):
        await world.say(HERE[0])
        await asyncio.sleep(0.4)
    async with asyncio.timeout(100):
        while (await world.live.record("counting")).live != 2 or await world.version(
            ViewId("counting", 2), HERE[0]
        ) < 22:
            await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.wait([task])
    often = [event for event, times in effects.done.items() if times > 1]
    assert len(often) <= 2
    assert all(times <= 2 for times in effects.done.values())


async def test_what_waited_in_a_building_generation_has_no_effect_when_it_is_tried_again(world: World) -> None:
    await world.say(HERE[0], 3)
    await world.projector(COUNTING).catch_up()
    await world.live.change("counting", lambda record: record.begin(1, 5))
    there = ViewId("counting", 2)
    failing = Failing(lambda event: event.version == 3)
    effects = Effects(slow={2: 0.5})
    first = asyncio.create_task(world.projector(failing, on_error="wait", after=effects).run())
    async with asyncio.timeout(30):
        while not await world.live.readers.waiting(there.group, 0):
            await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    if (await world.live.record("counting")).live != 2:
        await world.projector(COUNTING, on_error="wait", after=effects).catch_up()
    assert effects.done == {}, "these events were applied by the generation before"


async def test_after_a_loss_all_is_replayed(world: World) -> None:
    await world.projector(COUNTING).catch_up()
    await world.say(HERE[0], 4)
    await world.store.trim_feed(0, 4)
    effects = Effects()
    await world.projector(COUNTING, after=effects).catch_up()
    assert effects.done == {}
    assert [event.version for one in effects.steps for _, event in one.events] == [1, 2, 3, 4]


async def test_the_next_step_waits_for_it(world: World) -> None:
    """Back-pressure: nothing is fetched while what was applied is not yet done with."""
    await world.projector(COUNTING).catch_up()
    await world.say(HERE[0], 6)
    gate = asyncio.Event()
    steps: list[str] = []

    async def after(_: Applied) -> None:
        steps.append("after")
        await gate.wait()

    def told(step: Told) -> None:
        if step.partition == 0:
            steps.append(step.step)

    task = asyncio.create_task(world.projector(COUNTING, after=after, batch=2, told=told).run())
    await asyncio.sleep(8)
    assert steps == ["acquired", "fetched", "applied", "committed", "after"]
    assert steps.count("fetched") == 1
    assert await world.version(ViewId("counting", 1), HERE[0]) == 6, "a log is read to its end"
    gate.set()
    await asyncio.sleep(3)
    assert steps.count("fetched") == 3
    task.cancel()
    await asyncio.wait([task])
