"""A projector keeps its views, moves its marks only with what it wrote, and ends when it should."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from eventlog import EventLog
from eventlog.errors import InvalidId, InvalidInput, ProjectionStopped, ReaderFenced, ViewMissing
from eventlog.identity import LogId
from eventlog.reader import Reader
from eventlog.store.memory_views import MemoryViews
from eventlog.store.readers import Mark, Settings
from eventlog.store.views import ViewId
from projections.partition import Partition, Task, Told
from projections.projection import Projection
from projections.projector import Projector
from projections.registry import Generation
from projections.views.history import HISTORY
from tests.projections.counting import COUNTING, Counting
from tests.projections.timeless import BACKEND
from tests.projections.world import World, logs_in, message

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


async def test_the_first_run_builds_and_what_follows_is_applied(world: World) -> None:
    await world.say(HERE[0], 3)
    await world.projector(COUNTING).catch_up()
    assert await world.live.view(COUNTING) == VIEW
    assert await world.version(VIEW, HERE[0]) == 3
    await world.say(HERE[0], 2)
    await world.say(THERE[0])
    await world.projector(COUNTING).catch_up()
    assert [await world.version(VIEW, log) for log in (HERE[0], THERE[0])] == [5, 1]
    assert (await mark_of(world) or Mark(0, 0)).seq == 5
    assert await world.verify(COUNTING) == []


async def test_to_catch_up_returns_when_there_is_nothing(world: World) -> None:
    await world.projector(COUNTING, HISTORY).catch_up()
    assert await world.live.view(HISTORY) == ViewId("history", 1)


async def test_to_run_goes_on_until_it_is_cancelled_and_gives_its_places_up(world: World) -> None:
    task = asyncio.create_task(world.projector(COUNTING).run())
    for count in range(1, 4):
        appended = await world.append(HERE[0], message())
        async with asyncio.timeout(5):
            while await world.version(VIEW, HERE[0]) < count:
                await asyncio.sleep(0.01)
        if count > 1:
            await world.live.wait_until(COUNTING, HERE[0], appended.cursor)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    place = await world.live.readers.place(VIEW.group, 0)
    assert (place.holder, place.lease_ms) == ("", 0)


async def test_the_mark_moves_only_with_the_write(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.projector(COUNTING).catch_up()
    before = await mark_of(world)
    await world.say(HERE[0], 4)

    async def refuse(*_: Any, **__: Any) -> Any:
        raise ReaderFenced("another holds it")

    monkeypatch.setattr(MemoryViews, "commit", refuse)
    task = asyncio.create_task(world.projector(COUNTING, lease=0.5).run())
    await asyncio.sleep(5)
    task.cancel()
    await asyncio.wait([task])
    assert await mark_of(world) == before
    assert await world.version(VIEW, HERE[0]) == 0
    monkeypatch.undo()
    await world.projector(COUNTING).catch_up()
    assert await world.version(VIEW, HERE[0]) == 4


async def test_a_batch_is_about_so_many_events_and_every_batch_moves_the_mark(world: World) -> None:
    await world.projector(COUNTING).catch_up()
    for log in HERE[:5]:
        await world.append(log, *(message() for _ in range(4)))
    marks: list[int] = []
    steps: list[Told] = []

    def told(step: Told) -> None:
        steps.append(step)
        if step.step == "committed":
            marks.append(world.live.readers._readers[VIEW.group, step.partition].place.mark.seq)  # type: ignore[attr-defined]

    await world.projector(COUNTING, batch=8, told=told).catch_up()
    assert marks == [2, 4, 5]
    assert [one.events for one in steps if one.step == "fetched"] == [8, 8, 4]
    assert [one.conversations for one in steps if one.step == "applied"] == [2, 2, 1]
    assert not any(one.replaying for one in steps if one.step == "committed")


async def test_one_operation_larger_than_the_batch_is_one_batch(world: World) -> None:
    await world.projector(COUNTING).catch_up()
    await world.append(HERE[0], *(message() for _ in range(50)))
    await world.projector(COUNTING, batch=3).catch_up()
    assert await world.version(VIEW, HERE[0]) == 50


async def test_the_steps_of_a_build_are_told_in_order(world: World) -> None:
    for log in HERE[:3]:
        await world.say(log)
    steps: list[Told] = []
    await world.projector(COUNTING, told=steps.append).catch_up()
    here = [one.step for one in steps if one.partition == 0]
    assert here == ["acquired", "scanning", "committed", "scanned", "committed", "scanned"]
    assert steps[-1].step == "flipped"
    assert all(one.replaying for one in steps if one.step in ("scanning", "scanned", "committed"))
    assert sum(one.events for one in steps if one.step == "committed") == 3


async def test_two_generations_are_kept_and_both_are_right(world: World) -> None:
    await world.say(HERE[0], 2)
    await world.projector(COUNTING).catch_up()
    rebuilt = await world.projector(COUNTING).rebuild("counting")
    assert rebuilt == Generation(2, 1, "ready", rebuilt.since_ms)
    await world.say(HERE[0], 2)
    task = asyncio.create_task(world.projector(COUNTING).run())
    await asyncio.sleep(2)
    for number in (1, 2):
        assert await world.version(ViewId("counting", number), HERE[0]) == 4
        assert await world.verify(COUNTING, ViewId("counting", number)) == []
    await world.drop(VIEW)
    await world.say(HERE[0])
    await asyncio.sleep(2)
    assert await world.version(ViewId("counting", 2), HERE[0]) == 5
    assert await world.live.readers.groups() == ["@counting.2"]
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])


async def test_a_release_with_a_higher_version_builds_beside_the_one_before(world: World) -> None:
    class Newer(Counting):
        version = 2

    await world.say(HERE[0], 2)
    await world.projector(COUNTING).catch_up()
    both = [asyncio.create_task(world.projector(one).run()) for one in (COUNTING, Newer())]
    await asyncio.sleep(2)
    await world.say(HERE[0], 2)
    await asyncio.sleep(2)
    assert await world.live.view(COUNTING) == VIEW
    assert await world.live.view(Newer()) == ViewId("counting", 2)
    assert [await world.version(ViewId("counting", number), HERE[0]) for number in (1, 2)] == [4, 4]
    assert (await world.live.record("counting")).live == 2
    for task in both:
        task.cancel()
    await asyncio.wait(both)


async def test_a_release_with_a_lower_version_does_nothing_and_says_so(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    class Newer(Counting):
        version = 2

    await world.projector(Newer()).catch_up()
    task = asyncio.create_task(world.projector(COUNTING).run())
    await asyncio.sleep(5)
    task.cancel()
    await asyncio.wait([task])
    said = "projection 'counting': this release has version 1, a higher one is kept: nothing is done here"
    assert caplog.messages.count(said) == 1
    assert [one.number for one in (await world.live.record("counting")).generations] == [1]


async def test_a_rebuild_that_was_begun_is_gone_on_with(world: World) -> None:
    await world.projector(COUNTING).catch_up()
    await world.live.change("counting", lambda record: record.begin(1, 5))
    assert await world.projector(COUNTING).rebuild("counting") == Generation(2, 1, "ready", 5)


async def test_a_rebuild_of_what_is_dropped_meanwhile_says_so(world: World) -> None:
    await world.projector(COUNTING).catch_up()
    task = asyncio.create_task(world.projector(COUNTING).rebuild("counting"))
    while (await world.live.change("counting", lambda record: record)).last < 2:
        await asyncio.sleep(0)
    await world.drop(ViewId("counting", 2))
    with pytest.raises(InvalidInput, match="generation 2 of projection 'counting' was dropped while it was built"):
        await task
    assert await world.live.readers.groups() == ["@counting.1"], "nothing is left that would hold the feed"


async def test_a_group_that_somebody_removed_is_not_looked_for_without_a_pause(world: World) -> None:
    await world.projector(COUNTING).catch_up()
    await world.live.readers.remove(VIEW.group)
    task = asyncio.create_task(world.projector(COUNTING).run())
    looks: Counter[str] = Counter()
    settings = world.live.readers.settings

    async def counted(group: str) -> Settings:
        looks[group] += 1
        if looks[group] > 1_000:
            await asyncio.sleep(3600)  # or this test would never end
        return await settings(group)

    world.live.readers.settings = counted  # type: ignore[method-assign]
    await asyncio.sleep(10)
    task.cancel()
    await asyncio.wait([task])
    assert looks[VIEW.group] <= 100


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"on_error": "skip"}, "on_error='skip': give 'stop' or 'wait'"),
        ({"batch": 0}, "batch=0: give 1 or more"),
        ({"lease": 0.01}, "lease=0.01: give 0.1 seconds to a day"),
        ({"lease": 86_401}, "lease=86401: give 0.1 seconds to a day"),
    ],
)
async def test_an_option_that_cannot_be_is_refused(world: World, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        world.projector(COUNTING, **options)
    assert str(refused.value) == said


async def test_names_of_projections_are_checked(world: World) -> None:
    def named(name: Any) -> Projection[Any]:
        return type("Named", (Counting,), {"name": name})()

    with pytest.raises(InvalidInput, match=r"^two projections of one name: counting, history, counting$"):
        world.projector(COUNTING, HISTORY, Counting())
    for name in ("", 7, "\ud800", "x" * 1_001):
        with pytest.raises(InvalidId, match="projection name"):
            world.projector(named(name))
    with pytest.raises(InvalidInput, match=r"^there is no projection 'x'; there are 'counting', 'history'$"):
        await world.projector(COUNTING, HISTORY).rebuild("x")


@pytest.mark.parametrize("name", ["a.b", "a/b:{c}", "é\n%", "@x", "1", "x" * 1_000, "*", "a.1"])
async def test_a_projection_may_have_any_name_and_conversations_too(world: World, name: str) -> None:
    hostile: Projection[Any] = type("Named", (Counting,), {"name": name})()
    logs = [LogId(name, "c"), LogId("c", name), LogId("a/b", "c"), LogId("a", "b/c")]
    for count, log in enumerate(logs, 1):
        await world.say(log, count)
    await world.projector(hostile, COUNTING).catch_up()
    assert [await world.version(ViewId(name, 1), log) for log in logs] == [1, 2, 3, 4]
    assert await world.verify(hostile) == []
    assert await world.verify(COUNTING) == []


async def test_to_read_ones_own_writes_is_to_wait_for_them(world: World) -> None:
    appended = await world.append(HERE[0], message())
    with pytest.raises(ViewMissing) as missing:
        await world.live.wait_until(COUNTING, HERE[0], appended.cursor)
    assert str(missing.value) == (
        "no view 'counting' of version 1 is kept, or not yet whole: `eventlog projections run` builds it and keeps it "
        "up to date"
    )
    await world.projector(COUNTING).catch_up()
    await world.live.wait_until(COUNTING, HERE[0], str(appended.cursor), seconds=0.001)
    later = await world.append(HERE[0], message())
    with pytest.raises(TimeoutError) as late:
        await world.live.wait_until(COUNTING, HERE[0], later.cursor, seconds=1.5)
    assert str(late.value) == (
        f"view 'counting' has not applied version 2 of conversation {HERE[0].conversation!r} within 1.5 s: does "
        "`eventlog projections run` run? See `eventlog projections lag`"
    )
    waiting = asyncio.create_task(world.live.wait_until(COUNTING, HERE[0], later.cursor))
    await asyncio.sleep(0.5)
    assert not waiting.done()
    await world.projector(COUNTING).catch_up()
    await waiting
    with pytest.raises(InvalidInput, match=r"cursor .* is of another conversation or tenant"):
        await world.live.wait_until(COUNTING, HERE[1], later.cursor)
    with pytest.raises(InvalidInput, match=r"^seconds=0: give more than 0$"):
        await world.live.wait_until(COUNTING, HERE[0], later.cursor, seconds=0)


async def test_a_paused_view_stands_still_until_it_goes_on(world: World) -> None:
    await world.projector(COUNTING).catch_up()
    await world.live.readers.pause(VIEW.group, True)
    task = asyncio.create_task(world.projector(COUNTING, lease=3.0).run())
    await asyncio.sleep(2)
    await world.say(HERE[0])
    await asyncio.sleep(5)
    assert await world.version(VIEW, HERE[0]) == 0
    await world.live.readers.pause(VIEW.group, False)
    await asyncio.sleep(5)
    assert await world.version(VIEW, HERE[0]) == 1
    task.cancel()
    await asyncio.wait([task])


async def test_a_holder_that_lost_its_place_writes_nothing_more(world: World) -> None:
    await world.projector(COUNTING).catch_up()
    await world.say(HERE[0], 2)
    task = Task(COUNTING, VIEW, False, 10, 1.0, lambda _: None, None, lambda: True)
    live = world.live
    reader = await Reader.acquire(live.store, live.readers, VIEW.group, 0, start=Mark(0, 0), holder="me", lease=1.0)
    assert reader is not None
    await asyncio.sleep(2)
    await world.projector(COUNTING).catch_up()
    kept = await world.contents(VIEW, HERE[0])
    with pytest.raises(ReaderFenced):
        await Partition(live.store, live.readers, live.views, reader, task).run()
    assert await world.contents(VIEW, HERE[0]) == kept


def test_a_projector_needs_a_store_with_views() -> None:
    class Nothing:
        pass

    with pytest.raises(InvalidInput, match=r"^a Nothing has no readers: groups need a store with feeds and readers$"):
        Projector(EventLog(Nothing()), [COUNTING])  # type: ignore[arg-type]


async def test_a_projection_that_is_dropped_under_a_running_projector_is_built_anew(world: World) -> None:
    await world.say(HERE[0], 3)
    task = asyncio.create_task(world.projector(COUNTING, lease=3.0).run())
    await asyncio.sleep(2)
    await world.drop_all("counting")
    await world.say(HERE[0], 2)
    await asyncio.sleep(10)
    assert not task.done()
    view = await world.live.view(COUNTING)
    assert await world.version(view, HERE[0]) == 5
    assert await world.verify(COUNTING) == []
    assert await world.live.readers.groups() == [view.group]
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("waits", range(0, 60, 3))
async def test_a_generation_that_is_dropped_whenever_leaves_nothing_behind(world: World, waits: int) -> None:
    await world.say(HERE[0], 3)
    await world.projector(COUNTING).catch_up()
    await world.live.change("counting", lambda record: record.begin(1, 5))
    task = asyncio.create_task(world.projector(COUNTING).run())
    for _ in range(waits):
        await asyncio.sleep(0)
    record = await world.live.change("counting", lambda record: record)
    await world.drop(ViewId("counting", 1 if record.live == 2 else 2))
    await asyncio.sleep(5)
    assert not task.done()
    assert await world.live.readers.groups() == [(await world.live.view(COUNTING)).group]
    assert len(world.live.views._views) == 1  # type: ignore[attr-defined]
    task.cancel()
    await asyncio.wait([task])
