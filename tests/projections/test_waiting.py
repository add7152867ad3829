"""Where an event that cannot be applied sets its conversation waiting: the others go on, and nothing is forgotten."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from eventlog.errors import ProjectionStopped
from eventlog.parking import Parked
from eventlog.store.readers import NEVER, Ask, Waiting
from eventlog.store.views import ViewId
from tests.projections.counting import COUNTING, Counting, Failing
from tests.projections.timeless import BACKEND
from tests.projections.world import START_MS, World, listed, logs_in, message

pytestmark = pytest.mark.anyio
VIEW = ViewId("counting", 1)
HERE = logs_in(0)
POISON = HERE[0]


@pytest.fixture(scope="module")
def anyio_backend() -> Any:
    return BACKEND


@pytest.fixture
async def world() -> World:
    return World.in_memory()


class Switched(Failing):
    """Fails at what is set; counts how often it was tried there."""

    def __init__(self, *versions: int) -> None:
        self.versions = set(versions)
        self.tries = 0
        super().__init__(self._fails)

    def _fails(self, event: Any) -> bool:
        found = event.version in self.versions
        self.tries += found
        return found


async def waiting(world: World) -> dict[str, Waiting]:
    return await world.live.readers.waiting(VIEW.group, 0)


async def parked(world: World, view: ViewId = VIEW) -> list[Parked]:
    return [Parked.decode(document) for _, document in await listed(world.live.readers.parked(view.group, 0))]


async def poisoned(world: World, *versions: int, count: int = 4) -> Switched:
    """A conversation that waits before the first of these versions."""
    failing = Switched(*versions)
    await world.projector(failing, on_error="wait").catch_up()
    await world.say(POISON, count)
    await world.projector(failing, on_error="wait").catch_up()
    return failing


async def works(world: World, projection: Failing | Counting) -> None:
    """A projector is started anew and works for a while."""
    task = asyncio.create_task(world.projector(projection, on_error="wait").run())
    await asyncio.sleep(3)
    task.cancel()
    await asyncio.wait([task])


async def test_the_conversation_waits_and_the_others_go_on(world: World) -> None:
    await poisoned(world, 3)
    await world.say(HERE[1], 3 - 1)
    await world.projector(Failing(lambda event: event.version == 3), on_error="wait").catch_up()
    assert [await world.version(VIEW, log) for log in HERE[:2]] == [2, 2]
    stamp = (await world.events(POISON))[2].stamp
    assert await waiting(world) == {POISON.path: Waiting(3, 3, stamp, due_ms=NEVER)}
    (one,) = await parked(world)
    assert one.log == POISON
    assert (one.version, one.stamp, one.waits) == (3, stamp, True)
    assert one.error == "version 3 (message-added): ValueError: no such thing as message-added"
    assert one.trace.startswith("Traceback (most recent call last):")
    assert one.trace.rstrip().endswith("ValueError: no such thing as message-added")
    assert START_MS <= one.at_ms <= await world.store.now_ms()


async def test_what_waits_is_not_tried_with_every_append(world: World) -> None:
    failing = await poisoned(world, 3)
    task = asyncio.create_task(world.projector(failing, on_error="wait").run())
    await asyncio.sleep(2)
    before = failing.tries
    for _ in range(5):
        await world.say(POISON)
        await asyncio.sleep(3)
    assert failing.tries == before
    assert await world.version(VIEW, POISON) == 2
    task.cancel()
    await asyncio.wait([task])


async def test_a_projector_that_starts_tries_again(world: World) -> None:
    await poisoned(world, 3)
    await works(world, COUNTING)
    assert await world.version(VIEW, POISON) == 4
    assert await waiting(world) == {}
    assert await parked(world) == []
    assert await world.verify(COUNTING) == []


async def test_to_ask_for_a_replay_is_to_try_again_at_once_and_once(world: World) -> None:
    failing = await poisoned(world, 3)
    task = asyncio.create_task(world.projector(failing, on_error="wait", lease=3.0).run())
    await asyncio.sleep(2)
    before = failing.tries
    assert await world.live.readers.ask(VIEW.group, 0, f"3@{POISON.path}", Ask.REPLAY)
    await asyncio.sleep(30)
    assert before < failing.tries <= before + 2, "a try that fails is made once more up to the event before it"
    assert await world.live.readers.asked(VIEW.group, 0) == {}, "it was done"
    failing.versions = set()
    assert await world.live.readers.ask(VIEW.group, 0, f"3@{POISON.path}", Ask.REPLAY)
    await asyncio.sleep(5)
    assert await world.version(VIEW, POISON) == 4
    assert await waiting(world) == {}
    assert await parked(world) == []
    task.cancel()
    await asyncio.wait([task])


async def test_one_that_fails_again_later_waits_there(world: World) -> None:
    failing = await poisoned(world, 2, 4)
    failing.versions = {4}
    await works(world, failing)
    assert await world.version(VIEW, POISON) == 3
    assert [one.version for one in await parked(world)] == [4]
    assert (await waiting(world))[POISON.path].version == 4


async def test_a_conversation_that_waits_and_is_deleted_waits_no_longer(world: World) -> None:
    failing = await poisoned(world, 3)
    assert await world.chat(POISON).delete()
    await world.projector(failing, on_error="wait").catch_up()
    assert await world.contents(VIEW, POISON) is None
    assert await waiting(world) == {}
    assert await parked(world) == []


async def test_one_that_waits_counts_as_caught_up_and_verify_counts_it(world: World) -> None:
    await poisoned(world, 3)
    assert await world.verify(COUNTING) == []


async def test_a_projector_that_stops_at_errors_stops_at_what_waits_every_time(world: World) -> None:
    failing = await poisoned(world, 3)
    for _ in range(3):
        with pytest.raises(ProjectionStopped, match="version 3"):
            async with asyncio.timeout(30):
                await world.projector(failing).run()
    await works(world, COUNTING)
    assert await world.version(VIEW, POISON) == 4
    assert await world.verify(COUNTING) == []


async def test_what_waits_before_its_first_event_is_not_kept_at_all(world: World) -> None:
    await poisoned(world, 1)
    assert await world.contents(VIEW, POISON) is None
    await works(world, COUNTING)
    assert await world.version(VIEW, POISON) == 4


async def test_a_build_sets_waiting_too_and_is_whole_then(world: World) -> None:
    await world.say(POISON, 4)
    await world.say(HERE[1], 2)
    failing = Switched(3)
    await world.projector(failing, on_error="wait").catch_up()
    assert [await world.version(VIEW, log) for log in HERE[:2]] == [2, 2]
    await world.append(POISON, message())
    await works(world, COUNTING)
    assert await world.version(VIEW, POISON) == 5


async def test_a_long_log_waits_where_it_fails_and_all_before_is_kept(world: World) -> None:
    await world.projector(COUNTING).catch_up()
    for _ in range(7):
        await world.append(POISON, *(message() for _ in range(1_000)))
    failing = Switched(6_543)
    await world.projector(failing, on_error="wait").catch_up()
    assert await world.version(VIEW, POISON) == 6_542
    failing.versions = set()
    await works(world, failing)
    assert await world.version(VIEW, POISON) == 7_000
