"""A projection stops before an event that it cannot apply: nothing is skipped, and it says where and why."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from eventlog.errors import ProjectionStopped
from eventlog.events import Event
from eventlog.store.readers import Mark
from eventlog.store.views import ViewId
from projections.views.history import HISTORY
from tests.projections.counting import COUNTING, Counting, Failing
from tests.projections.timeless import BACKEND
from tests.projections.world import World, listed, logs_in, message

pytestmark = pytest.mark.anyio
VIEW = ViewId("counting", 1)
HERE, THERE = logs_in(0), logs_in(1)


@pytest.fixture(scope="module")
def anyio_backend() -> Any:
    return BACKEND


@pytest.fixture
async def world() -> World:
    return World.in_memory()


async def mark_of(world: World, partition: int = 0, view: ViewId = VIEW) -> Mark | None:
    return (await world.live.readers.place(view.group, partition)).mark


async def until_stopped(work: Any) -> str:
    with pytest.raises(ProjectionStopped) as stopped:
        async with asyncio.timeout(60):
            await work
    return str(stopped.value)


async def test_it_stops_before_what_it_cannot_apply_and_skips_nothing(world: World) -> None:
    failing = Failing(lambda event: event.version == 3)
    await world.projector(failing).catch_up()
    await world.say(HERE[0], 2)
    await world.say(HERE[1], 2)
    await world.say(HERE[0], 2)
    await world.say(HERE[1], 1)
    told = await until_stopped(world.projector(failing).run())
    assert told == (
        f"projection 'counting' cannot apply conversation {HERE[0].conversation!r} of 't', version 3 "
        "(message-added): ValueError: no such thing as message-added; it stands before that event and nothing was "
        "skipped: mend it and run it again, or let it set such conversations waiting"
    )
    assert await world.version(VIEW, HERE[0]) == 2
    assert (await mark_of(world) or Mark(0, 0)).seq == 4, "before the first entry that holds what it stops at"
    parked = await listed(world.live.readers.parked(VIEW.group, 0))
    assert {name for name, _ in parked} == {f"3@{HERE[0].path}", f"3@{HERE[1].path}"}
    await until_stopped(world.projector(failing).run())
    await world.projector(COUNTING).catch_up()
    assert [await world.version(VIEW, log) for log in HERE[:2]] == [4, 3]
    assert await listed(world.live.readers.parked(VIEW.group, 0)) == []
    assert await world.verify(COUNTING) == []


async def test_it_stops_while_it_builds_and_goes_on_there(world: World) -> None:
    await world.say(HERE[0], 3)
    told = await until_stopped(world.projector(Failing(lambda event: event.version == 2)).catch_up())
    assert "version 2 (message-added): ValueError" in told
    assert await world.live.find(COUNTING) is None
    await world.projector(COUNTING).catch_up()
    assert await world.version(VIEW, HERE[0]) == 3


async def test_an_operation_that_holds_what_stops_it_is_applied_up_to_there(world: World) -> None:
    failing = Failing(lambda event: event.version == 3)
    await world.projector(failing).catch_up()
    await world.append(HERE[0], message(), message(), message(), message())
    await until_stopped(world.projector(failing).run())
    assert await world.version(VIEW, HERE[0]) == 2
    assert await mark_of(world) in (None, Mark(0, 0))


async def test_one_that_stops_lets_the_others_go_on(world: World) -> None:
    task = asyncio.create_task(world.projector(Failing(lambda _: True), HISTORY).run())
    await world.say(HERE[0], 3)
    await asyncio.sleep(3)
    assert not task.done()
    await world.say(HERE[0])
    await asyncio.sleep(3)
    assert await world.version(ViewId("history", 1), HERE[0]) == 4
    task.cancel()
    await asyncio.wait([task])


async def test_when_every_one_has_stopped_it_raises(world: World) -> None:
    class Other(Failing):
        name = "other"

    await world.say(HERE[0])
    told = await until_stopped(world.projector(Failing(lambda _: True), Other(lambda _: True)).run())
    assert "version 1 (message-added): ValueError" in told


async def test_to_catch_up_says_that_one_of_several_has_stopped(world: World) -> None:
    await world.say(HERE[0])
    told = await until_stopped(world.projector(Failing(lambda _: True), HISTORY).catch_up())
    assert "projection 'counting' cannot apply" in told


async def test_a_stored_event_that_cannot_be_read_stops_it(world: World) -> None:
    await world.say(HERE[0], 3)
    entries = world.store._logs[HERE[0].path].entries
    entries[1] = entries[1]._replace(document=b"{")
    told = await until_stopped(world.projector(COUNTING).run())
    assert "version 2 (unreadable): Unreadable: version 2 does not hold an event: b'{'" in told
    assert await world.version(VIEW, HERE[0]) == 1


async def test_what_an_error_says_may_be_any_text(world: World) -> None:
    class Odd(Counting):
        def apply(self, state: Any, event: Event) -> Any:
            raise ValueError("half \ud800")

    await world.say(HERE[0])
    assert "ValueError: half" in await until_stopped(world.projector(Odd()).run())
