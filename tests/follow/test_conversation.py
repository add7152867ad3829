"""Following one conversation: everything after a cursor, once, in order, then live."""

from __future__ import annotations

import asyncio
import gc
from contextlib import aclosing

import anyio
import pytest

from eventlog import Conversation, Draft, EventLog, InvalidInput, Kind, Mode, user
from tests.follow.following import events_of, kinds, take, until, versions

pytestmark = pytest.mark.anyio


def chat(log: EventLog, name: str = "c") -> Conversation:
    return log.tenant("t").conversation(name)


async def fill(conversation: Conversation, count: int) -> None:
    await conversation.add(*(user(str(index)) for index in range(count)))


async def test_what_is_there_comes_first_then_the_mark_then_what_is_appended(log: EventLog) -> None:
    await fill(chat(log), 3)
    async with chat(log).follow() as follower:
        items = await until(follower, Kind.CAUGHT_UP)
        await fill(chat(log), 2)
        items += await take(follower, 2)
    assert kinds(items) == ["event"] * 3 + ["caught-up"] + ["event"] * 2
    assert [str(item.cursor) for item in items if item.event] == [
        str(chat(log).log.cursor(event.version, event.stamp)) for event in [e async for e in chat(log).read()]
    ]
    assert items[3].cursor == items[2].cursor


async def test_whoever_goes_on_after_any_cursor_misses_and_repeats_nothing(log: EventLog) -> None:
    await fill(chat(log), 5)
    cursors = [item.cursor for item in await until(chat(log).follow(), Kind.CAUGHT_UP)]
    for cursor in cursors:
        items = await until(chat(log).follow(str(cursor)), Kind.CAUGHT_UP)
        assert versions(items) == list(range(cursor.version + 1, 6))


async def test_now_begins_with_the_cursor_it_begins_at(log: EventLog) -> None:
    await fill(chat(log), 3)
    async with chat(log).follow("now") as follower:
        first = await anext(follower)
        assert (first.kind, first.cursor) == (Kind.CAUGHT_UP, (await chat(log).head()).last)
        await fill(chat(log), 1)
        assert versions(await take(follower, 1)) == [4]


async def test_a_conversation_that_does_not_exist_yet_is_followed_from_its_first_event(log: EventLog) -> None:
    async with chat(log).follow() as follower:
        assert kinds(await until(follower, Kind.CAUGHT_UP)) == ["caught-up"]
        await fill(chat(log), 2)
        assert versions(await take(follower, 2)) == [1, 2]


async def test_more_than_a_page_comes_whole_and_in_order(log: EventLog) -> None:
    for _ in range(3):
        await fill(chat(log), 500)
    assert versions(await until(chat(log).follow(), Kind.CAUGHT_UP)) == list(range(1, 1501))


async def test_a_filter_chooses_events_and_the_cursor_moves_all_the_same(log: EventLog) -> None:
    await fill(chat(log), 1)
    await chat(log).append(Draft("x-note", {}), Draft("x-other", {}))
    async with chat(log).follow(types=["x-note"]) as follower:
        items = await until(follower, Kind.CAUGHT_UP)
        assert [event.type for event in events_of(items)] == ["x-note"]
        assert items[-1].cursor.version == 3
        for _ in range(3):
            await fill(chat(log), 1)
        while items[-1].cursor.version < 6:
            items.append(await anext(follower))
            assert items[-1].kind is Kind.SKIPPED


async def test_what_is_filtered_out_of_a_long_replay_is_one_item_a_page(log: EventLog) -> None:
    for _ in range(2):
        await fill(chat(log), 500)
    items = await until(chat(log).follow(types=["x-note"]), Kind.CAUGHT_UP)
    assert kinds(items) == ["skipped", "skipped", "caught-up"]
    assert [item.cursor.version for item in items] == [500, 1000, 1000]


async def record_run(conversation: Conversation, operation: str, mode: Mode = Mode.PER_SERVICE_CALL) -> None:
    async with conversation.run(mode, exclusive=False, operation_id=operation) as run:
        await run.add(user("hello"))


async def test_one_run_is_followed_to_its_end(log: EventLog) -> None:
    await fill(chat(log), 1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(record_run, chat(log), "ours")
        tasks.start_soon(record_run, chat(log), "theirs")
        with anyio.fail_after(20):
            items = [item async for item in chat(log).follow(run="ours", ends_with_run="ours")]
    assert [event.type for event in events_of(items)] == ["run-started", "message-added", "run-committed"]


async def test_an_end_that_is_filtered_out_ends_all_the_same(log: EventLog) -> None:
    await record_run(chat(log), "ours")
    items = [item async for item in chat(log).follow(types=["message-added"], ends_with_run="ours")]
    assert versions(items) == [2]
    assert items[-1].cursor.version == 3


@pytest.mark.parametrize("after", ["cursor", "now"])
async def test_whoever_comes_back_after_the_run_has_ended_does_not_wait_for_ever(log: EventLog, after: str) -> None:
    await record_run(chat(log), "ours")
    await fill(chat(log), 2)
    cursor = (await chat(log).head()).last
    with anyio.fail_after(20):
        items = [item async for item in chat(log).follow("now" if after == "now" else cursor, ends_with_run="ours")]
    assert kinds(items) == ["caught-up"]
    assert items[0].cursor == cursor


async def test_a_run_that_has_not_begun_is_waited_for(log: EventLog) -> None:
    await record_run(chat(log), "earlier")
    async with chat(log).follow("now", ends_with_run="ours") as follower:
        await until(follower, Kind.CAUGHT_UP)
        await record_run(chat(log), "ours")
        with anyio.fail_after(20):
            items = [item async for item in follower]
    assert events_of(items)[-1].type == "run-committed"


async def test_heartbeats_come_when_nothing_else_does_and_carry_the_cursor(log: EventLog) -> None:
    await fill(chat(log), 2)
    async with chat(log).follow(heartbeat=0.02) as follower:
        await until(follower, Kind.CAUGHT_UP)
        with anyio.fail_after(20):
            beats = [await anext(follower) for _ in range(3)]
    assert {(beat.kind, beat.cursor.version) for beat in beats} == {(Kind.HEARTBEAT, 2)}


async def test_a_next_that_is_cancelled_has_taken_nothing(log: EventLog) -> None:
    async with chat(log).follow() as follower:
        await until(follower, Kind.CAUGHT_UP)
        with anyio.move_on_after(0.02):
            await anext(follower)
        await fill(chat(log), 2)
        assert versions(await take(follower, 2)) == [1, 2]


async def test_a_follower_is_for_one_task_at_a_time(log: EventLog) -> None:
    async with chat(log).follow() as follower:
        await until(follower, Kind.CAUGHT_UP)
        first = asyncio.ensure_future(anext(follower))
        await anyio.lowlevel.checkpoint()
        with pytest.raises(RuntimeError, match="one task"):
            await anext(follower)
        first.cancel()
        await asyncio.wait([first])


async def test_one_that_was_left_follows_no_longer(log: EventLog) -> None:
    await fill(chat(log), 1)
    conversation = chat(log)
    async with aclosing(conversation.follow()) as follower:
        await anext(follower)
    assert [item async for item in follower] == []
    async for _ in conversation.follow():
        break
    gc.collect()
    assert not log.hub.is_followed


async def test_no_follower_sees_what_another_did_to_an_event(log: EventLog) -> None:
    async with chat(log).follow() as one, chat(log).follow() as other:
        await until(one, Kind.CAUGHT_UP)
        await until(other, Kind.CAUGHT_UP)
        await fill(chat(log), 1)
        events_of(await take(one, 1))[0].data["parts"].clear()
        assert events_of(await take(other, 1))[0].data["parts"] == [{"type": "text", "content": "0"}]


@pytest.mark.parametrize("options", [{"poll": 0}, {"poll": -1}, {"heartbeat": 0}, {"poll": float("nan")}])
async def test_times_that_are_none_are_refused(log: EventLog, options: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        chat(log).follow(**options)
