"""What a server lost, what was trimmed or deleted: the view becomes what is left, and nothing loops or crashes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from eventlog.errors import ConversationDeleted, ProjectionStopped
from eventlog.events import Draft
from eventlog.identity import LogId
from eventlog.store.memory import MemoryStore
from eventlog.store.port import Entry
from eventlog.store.readers import Mark
from eventlog.store.views import ViewId
from projections import history
from projections.partition import Told
from projections.views.history import HISTORY
from tests.projections.counting import COUNTING
from tests.projections.timeless import BACKEND
from tests.projections.world import World, logs_in, message

pytestmark = pytest.mark.anyio
VIEW = ViewId("counting", 1)
HERE = logs_in(0)


@pytest.fixture(scope="module")
def anyio_backend() -> Any:
    return BACKEND


@pytest.fixture
async def world() -> World:
    return World.in_memory()


def lose(world: World, entries: int, partition: int = 0) -> None:
    """The server loses the last appends of a partition, and not its views."""
    store = world.store
    for entry in reversed(store.feeds[partition][-entries:]):
        kept = store._logs[entry.log.path]
        kept.entries = [one for one in kept.entries if one.version < entry.first]
        if not kept.entries:
            del store._conversations[partition][entry.log.path]
    del store.feeds[partition][-entries:]


async def mark_of(world: World) -> Mark | None:
    return (await world.live.readers.place(VIEW.group, 0)).mark


@pytest.mark.parametrize("again", [0, 1, 2, 3, 5])
async def test_events_that_were_lost_go_from_the_view_whatever_came_in_their_place(world: World, again: int) -> None:
    await world.projector(COUNTING, HISTORY).catch_up()
    await world.say(HERE[0], 3)
    await world.say(HERE[1], 2)
    await world.projector(COUNTING, HISTORY).catch_up()
    lose(world, 3)
    await world.say(HERE[0], again)
    await world.projector(COUNTING, HISTORY).catch_up()
    for projection in (COUNTING, HISTORY):
        assert await world.verify(projection) == []
    assert await world.version(VIEW, HERE[0]) == 2 + again
    assert await world.contents(VIEW, HERE[1]) is None
    events = await world.events(HERE[0])
    chat = world.chat(HERE[0])
    assert await history.load(chat) == history.build(events, chat)


async def test_a_running_projector_notices_a_loss_with_the_next_append(world: World) -> None:
    await world.projector(COUNTING).catch_up()
    steps: list[Told] = []
    task = asyncio.create_task(world.projector(COUNTING, told=steps.append).run())
    await world.say(HERE[0], 3)
    await world.say(HERE[1], 3)
    await asyncio.sleep(3)
    lose(world, 4)
    await world.say(HERE[2])
    await asyncio.sleep(3)
    assert "lost" in [one.step for one in steps]
    assert [await world.version(VIEW, log) for log in HERE[:3]] == [2, 0, 1]
    assert await world.verify(COUNTING) == []
    task.cancel()
    await asyncio.wait([task])


async def test_a_feed_that_was_trimmed_too_far_makes_it_compare_all(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.projector(COUNTING).catch_up()
    await world.say(HERE[0], 5)
    await world.store.trim_feed(0, 4)
    await world.projector(COUNTING).catch_up()
    assert await world.version(VIEW, HERE[0]) == 5
    assert await mark_of(world) == Mark(5, world.store.feeds[0][4].stamp)
    assert any("every conversation is compared with its log" in text for text in caplog.messages)


async def test_a_feed_that_was_trimmed_up_to_the_mark_is_no_loss(world: World) -> None:
    await world.projector(COUNTING).catch_up()
    await world.say(HERE[0], 5)
    await world.projector(COUNTING).catch_up()
    await world.say(HERE[0], 2)
    assert await world.store.trim_feed(0, 6) == 5
    steps: list[str] = []
    await world.projector(COUNTING, told=lambda step: steps.append(step.step)).catch_up()
    assert "lost" not in steps
    assert await world.version(VIEW, HERE[0]) == 7


async def test_a_build_of_logs_whose_feed_was_trimmed_has_them_all(world: World) -> None:
    await world.say(HERE[0], 5)
    await world.say(HERE[1], 5)
    await world.store.trim_feed(0, 11)
    await world.projector(COUNTING).catch_up()
    assert [await world.version(VIEW, log) for log in HERE[:2]] == [5, 5]
    assert await world.verify(COUNTING) == []


class Impatient(MemoryStore):
    """Fails the test that reads without end."""

    reads = 0

    async def read(self, *given: Any, **named: Any) -> list[Entry]:
        self.reads += 1
        if self.reads > 2_000:
            await asyncio.sleep(3_600)
        return await super().read(*given, **named)


async def test_a_log_that_is_trimmed_behind_what_was_applied_goes_on() -> None:
    world = World.in_memory()
    await world.say(HERE[0], 5)
    await world.projector(COUNTING).catch_up()
    await world.store.trim(HERE[0], 5)
    await world.say(HERE[0], 2)
    await world.projector(COUNTING).catch_up()
    assert await world.version(VIEW, HERE[0]) == 7


async def test_a_log_that_is_trimmed_beyond_what_was_applied_stops_it_and_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.getLogger("eventlog.projections"), "disabled", True)
    world = World.in_memory(store=Impatient)
    await world.say(HERE[0], 5)
    await world.say(HERE[1], 5)
    await world.store.trim(HERE[0], 3)
    task = asyncio.create_task(world.projector(COUNTING).run())
    await asyncio.wait([task], timeout=30)
    reads, error = world.store.reads, task.exception() if task.done() else None
    task.cancel()
    await asyncio.wait([task])
    assert reads < 1_000, "it does not read the same logs again and again"
    assert isinstance(error, ProjectionStopped)
    assert HERE[0].conversation in str(error)


async def test_one_conversation_that_cannot_be_read_can_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("eventlog.projections"), "disabled", True)
    world = World.in_memory(store=Impatient)
    await world.say(HERE[0], 5)
    await world.say(HERE[1], 5)
    await world.store.trim(HERE[0], 3)
    async with asyncio.timeout(30):
        await world.projector(COUNTING, on_error="wait").catch_up()
    assert await world.version(VIEW, HERE[1]) == 5


class Deleting(MemoryStore):
    """Deletes a conversation at a read of it that ``when`` chooses, after that was answered."""

    when: Callable[[int, int], bool] = staticmethod(lambda *_: False)
    reads = 0

    async def read(self, log: LogId, first: int, last: int | None, count: int, *, reverse: bool = False) -> list[Entry]:
        found = await super().read(log, first, last, count, reverse=reverse)
        if log == HERE[0]:
            self.reads += 1
            if self.when(self.reads, first):
                self.when = lambda *_: False
                assert await self.delete(log)
        return found


@pytest.mark.parametrize("at", [1, 2, 3, 4])
async def test_a_conversation_that_is_deleted_while_it_is_read_is_gone(at: int) -> None:
    world = World.in_memory(store=Deleting)
    await world.projector(COUNTING, HISTORY).catch_up()
    for _ in range(3):
        await world.append(HERE[0], *(message() for _ in range(200)))
    await world.append(HERE[0], Draft("history-rewound", {"to": 100}))
    await world.append(HERE[0], *(message() for _ in range(200)))
    await world.say(HERE[1])
    world.store.when = lambda reads, _: reads == at
    async with asyncio.timeout(60):
        await world.projector(COUNTING).catch_up()
    with pytest.raises(ConversationDeleted):
        await history.load(world.chat(HERE[0]))
    async with asyncio.timeout(60):
        await world.projector(COUNTING, HISTORY).catch_up()
    assert await world.contents(VIEW, HERE[0]) is None
    assert await world.version(VIEW, HERE[1]) == 1
    assert await world.verify(COUNTING) == []


async def test_a_deleted_conversation_leaves_nothing(world: World) -> None:
    await world.say(HERE[0], 3)
    await world.say(HERE[1], 3)
    await world.projector(COUNTING, HISTORY).catch_up()
    assert await world.chat(HERE[0]).delete()
    await world.projector(COUNTING, HISTORY).catch_up()
    assert await world.contents(VIEW, HERE[0]) is None
    assert await world.live.views.totals(VIEW, 0, "t") == {"events": 3, "message-added": 3}
    assert await world.verify(COUNTING) == []


async def test_one_that_was_deleted_before_the_build_never_was(world: World) -> None:
    await world.say(HERE[0], 3)
    assert await world.chat(HERE[0]).delete()
    await world.projector(COUNTING, HISTORY).catch_up()
    assert await world.contents(VIEW, HERE[0]) is None
    assert await world.verify(COUNTING) == []


async def test_a_deletion_whose_feed_entry_was_trimmed_is_found_by_comparing(world: World) -> None:
    await world.say(HERE[0], 3)
    await world.say(HERE[1], 3)
    await world.projector(COUNTING).catch_up()
    assert await world.chat(HERE[0]).delete()
    await world.say(HERE[1], 2)
    await world.store.trim_feed(0, 9)
    await world.projector(COUNTING).catch_up()
    assert await world.contents(VIEW, HERE[0]) is None
    assert await world.version(VIEW, HERE[1]) == 5
    assert await world.verify(COUNTING) == []


async def test_a_feed_that_lost_everything_begins_again(world: World) -> None:
    await world.say(HERE[0], 3)
    await world.projector(COUNTING).catch_up()
    lose(world, 3)
    await world.say(HERE[1], 1)
    task = asyncio.create_task(world.projector(COUNTING).run())
    await asyncio.sleep(5)
    task.cancel()
    await asyncio.wait([task])
    assert await world.contents(VIEW, HERE[0]) is None
    assert await world.version(VIEW, HERE[1]) == 1
    assert await world.verify(COUNTING) == []
