"""The history from the view is the history of the log, in every field, and it is told wherever it can be."""

from __future__ import annotations

import random
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.errors import ConversationDeleted, LogLost
from eventlog.events import Draft, Event
from eventlog.identity import LogId
from eventlog.messages import assistant, tool_call, user
from eventlog.store.views import PAGE, ViewId
from projections import history, maintained
from projections.standing import Standing
from projections.views.history import HISTORY
from tests.history.strategies import CHOICES, Builder, Choice, logs
from tests.projections.timeless import BACKEND, TimelessLoop
from tests.projections.world import World, drafts, message

pytestmark = pytest.mark.anyio
T = TypeVar("T")
LOG = LogId("t", "c")
DOING = ("start", "message", "outside_message", "result", "call_completed", "call_completed", "commit", "abort", "fail")


@pytest.fixture(scope="module")
def anyio_backend() -> Any:
    return BACKEND


@pytest.fixture
async def world() -> World:
    return World.in_memory(partitions=1)


def do(work: Coroutine[Any, Any, T]) -> T:
    loop = TimelessLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


async def record(world: World, events: Sequence[Draft], together: int = 1) -> None:
    """Append them, so many in one operation."""
    for start in range(0, len(events), together):
        await world.append(LOG, *events[start : start + together])


async def catch_up(world: World) -> None:
    await world.projector(HISTORY).catch_up()


async def agrees(world: World, lasts: Sequence[int | None], *, told: bool = True) -> None:
    chat, events = world.chat(LOG), await world.events(LOG)
    for last in lasts:
        view = await maintained.load(chat, last)
        assert view is not None or not told
        if view is not None:
            assert view == history.build(events, chat, last=last), f"last={last}"
        assert await history.load(chat, last=last) == history.build(events, chat, last=last)


def long_log(seed: int, length: int, *, proper: bool = True) -> list[Event]:
    chance, builder = random.Random(seed), Builder(proper=proper, raw_edits=False)
    while len(builder.events) < length:
        builder.build([Choice(chance.choice(DOING), *(chance.randrange(32) for _ in range(3)))])
    return builder.events


async def told_of(world: World) -> bool:
    """Whether the log could be told by what stands at its end."""
    standing = Standing()
    events = await world.events(LOG)
    for index, event in enumerate(events):
        if standing.apply(event) is None:
            standing, _ = Standing.of(events[: index + 1])
    return standing.chain is not None


@given(events=logs(raw_edits=False), cut=st.integers(0, 60), together=st.integers(1, 4))
def test_it_agrees_wherever_the_view_is(events: list[Event], cut: int, together: int) -> None:
    async def check() -> None:
        world, given_out = World.in_memory(partitions=1), drafts(events)
        await record(world, given_out[:cut], together)
        await catch_up(world)
        await record(world, given_out[cut:], together)
        await agrees(world, [None, 1, 2, 3, 5, 9], told=False)
        await catch_up(world)
        await agrees(world, [None, 1, 2, 3, 5, 9], told=bool(events) and await told_of(world))

    do(check())


class OneRunAtATime(Builder):
    """An agent that records one run after another, and lets each call continue what it may."""

    def __init__(self) -> None:
        super().__init__(proper=True, raw_edits=False)

    def do_start(self, a: int, b: int, c: int) -> None:
        if not self.runs:
            super().do_start(a, b, c)


@given(choices=CHOICES)
def test_what_one_run_after_another_recorded_is_always_told(choices: list[Choice]) -> None:
    async def check() -> None:
        world, builder = World.in_memory(partitions=1), OneRunAtATime()
        builder.build(choices)
        await record(world, drafts(builder.events), 2)
        await catch_up(world)
        if builder.events:
            await agrees(world, [None, 1, 4])

    do(check())


@given(events=logs(), together=st.integers(1, 4))
def test_it_agrees_also_where_a_compaction_parted_a_call_from_its_result(events: list[Event], together: int) -> None:
    async def check() -> None:
        world = World.in_memory(partitions=1)
        await record(world, drafts(events), together)
        await catch_up(world)
        await agrees(world, [None, 1, 2, 3, 5, 9], told=False)

    do(check())


async def test_a_compaction_that_parts_a_call_from_its_result_leaves_no_pair(world: World) -> None:
    """Recorded by an import: the recorder refuses it."""
    await record(
        world,
        [
            Draft("function-call", {"message_id": "m", "call_id": "a", "name": "tool"}),
            Draft("run-started", {"mode": "per-service-call"}, "r"),
            Draft("function-result", {"message_id": "n", "call_id": "a", "output": 1, "answers": 1}, "r"),
            Draft("service-call-started", {"sends": [3], "continues": None}, "r", 1),
            Draft("service-call-completed", {}, "r", 1),
            Draft("history-compacted", {"through": 1, "messages": [{"role": "user", "parts": []}]}),
        ],
    )
    await catch_up(world)
    view = await maintained.load(world.chat(LOG), None)
    assert view is not None
    assert view.stray_results == (3,)
    assert view.pairs == {}


@pytest.mark.parametrize("seed", range(6))
async def test_every_window_of_a_long_random_log_agrees(world: World, seed: int) -> None:
    events = drafts(long_log(seed, 900, proper=seed % 2 == 0))
    await record(world, events[:850], 1 + seed % 3)
    await catch_up(world)
    told = await told_of(world)
    await agrees(world, [None, *range(1, 61), 200, 1_000], told=told)
    await record(world, events[850:], 2)
    await agrees(world, [None, *range(1, 61), 200, 1_000], told=False)
    await catch_up(world)
    await agrees(world, [None, 1, 2, 30], told=await told_of(world))


async def test_the_messages_of_one_operation_stay_whole_across_the_edge_of_what_is_read(world: World) -> None:
    def part(message_id: str) -> Draft:
        return Draft("message-added", {"message_id": message_id, **user("x").as_json(), "role": "user"})

    for size in (1, 3, 20, 40, 90):
        await world.append(LOG, *(part("same") for _ in range(size)), part("other"))
    await world.append(LOG, *(part("same") for _ in range(30)))
    await world.append(LOG, *(part("same") for _ in range(30)))
    await catch_up(world)
    await agrees(world, [None, *range(1, 14)])
    await world.append(LOG, *(part("same") for _ in range(30)))
    await agrees(world, [None, *range(1, 15)])


async def test_a_result_far_from_its_call_is_not_cut_from_it(world: World) -> None:
    chat = world.chat(LOG)
    async with chat.run() as run:
        await run.add(user("Weather?"))
        async with run.service_call() as call:
            await call.complete(assistant(tool_call("w", "weather")))
        asked = call.function_calls[0]
        for _ in range(60):
            await chat.add(user("still waiting"))
        await run.add_result(asked, "rain")
        async with run.service_call() as call:
            await call.complete(assistant("It rains."))
    await catch_up(world)
    await agrees(world, [None, *range(1, 70)])
    for _ in range(60):
        await chat.add(user("thanks"))
    await agrees(world, [None, *range(1, 70)])
    await catch_up(world)
    await agrees(world, [None, *range(1, 70)])


@pytest.mark.parametrize("count", [PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 2 * PAGE + 1, 3 * PAGE + 7])
async def test_a_log_behind_the_view_that_is_longer_than_a_page_is_read_in_pages(world: World, count: int) -> None:
    await world.say(LOG)
    await catch_up(world)
    await record(world, [message(str(number)) for number in range(count)], 1_000)
    await agrees(world, [None, 1, 40, count])


async def test_calls_open_long_ago_are_known_in_a_short_window(world: World) -> None:
    chat = world.chat(LOG)
    async with chat.run() as run:
        await run.add(user("Weather?"))
        async with run.service_call() as call:
            await call.complete(assistant(tool_call("w", "weather")))
    for _ in range(200):
        await chat.add(user("and?"))
    await catch_up(world)
    await agrees(world, [1, 2, 3])
    view = await maintained.load(chat, 1)
    assert view is not None
    assert [(one.call_id, one.name) for one in view.open_calls] == [("w", "weather")]


async def test_what_the_caller_does_to_a_view_does_not_change_the_next(world: World) -> None:
    await world.say(LOG, 3)
    await catch_up(world)
    view = await maintained.load(world.chat(LOG), None)
    assert view is not None
    view.messages[0].parts.clear()
    view.pairs[1] = 2
    await agrees(world, [None, 2])


async def test_without_a_view_nothing_is_told_and_the_log_is_folded(world: World) -> None:
    await world.say(LOG, 3)
    assert await maintained.load(world.chat(LOG), None) is None
    await agrees(world, [None, 2], told=False)
    await world.live.change("history", lambda record: record.begin(1, 1))
    world.live.forget("history")
    assert await maintained.load(world.chat(LOG), None) is None, "it is not whole yet"


async def test_a_generation_that_is_dropped_in_mid_read_is_no_matter(world: World) -> None:
    await world.say(LOG, 3)
    await catch_up(world)
    await world.projector(HISTORY).rebuild("history")
    await agrees(world, [None, 2])
    await world.live.change("history", lambda record: record.rollback())
    await agrees(world, [None])
    await world.live.change("history", lambda record: record.flip(2))
    assert await world.live.view(HISTORY) == ViewId("history", 2)
    await world.live.views.drop(ViewId("history", 2))
    await agrees(world, [None, 2], told=False)
    await world.drop_all("history")
    await agrees(world, [None, 2], told=False)
    await catch_up(world)
    await agrees(world, [None, 2])


async def test_a_log_that_lost_what_was_applied_is_said_as_the_fold_says_it(world: World) -> None:
    await world.say(LOG, 5)
    await catch_up(world)
    await agrees(world, [None, 2])
    entries = world.store._logs[LOG.path].entries
    del entries[3:]
    await agrees(world, [None, 2], told=False)
    assert await maintained.load(world.chat(LOG), 2) is None
    entries.append(entries[-1]._replace(version=4, stamp=99))
    entries.append(entries[-1]._replace(version=5, stamp=99))
    await agrees(world, [None, 2], told=False)
    assert await maintained.load(world.chat(LOG), None) is None
    del entries[1]
    with pytest.raises(LogLost, match="version 2 of conversation 'c' of 't' is gone"):
        await history.load(world.chat(LOG))


async def test_a_hole_behind_the_view_is_said(world: World) -> None:
    await world.say(LOG, 3)
    await catch_up(world)
    await world.say(LOG, 3)
    del world.store._logs[LOG.path].entries[4]
    for last in (None, 2):
        with pytest.raises(LogLost, match="version 5 of conversation 'c' of 't' is gone"):
            await history.load(world.chat(LOG), last=last)


@pytest.mark.parametrize("last", [None, 2])
async def test_a_deleted_conversation_is_said(world: World, last: int | None) -> None:
    await world.say(LOG, 3)
    await catch_up(world)
    assert await world.chat(LOG).delete()
    with pytest.raises(ConversationDeleted):
        await history.load(world.chat(LOG), last=last)
    await catch_up(world)
    with pytest.raises(ConversationDeleted):
        await history.load(world.chat(LOG), last=last)
