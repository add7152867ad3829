"""Following all conversations of a tenant: each in order, once, new ones by themselves, nobody else's."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import anyio
import pytest

from eventlog import Conversation, CursorInvalid, Draft, EventLog, Followed, Kind, user
from tests.follow.following import PATIENCE, events_of, kinds, take, until, versions

pytestmark = pytest.mark.anyio


def chat(log: EventLog, name: str = "c", tenant: str = "t") -> Conversation:
    return log.tenant(tenant).conversation(name)


async def fill(conversation: Conversation, count: int) -> None:
    await conversation.add(*(user(str(index)) for index in range(count)))


def by_conversation(items: list[Followed[Any]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for item in items:
        if item.event is not None:
            assert item.conversation is not None
            found[item.conversation].append(item.event.version)
    return dict(found)


async def test_every_conversation_comes_in_order_then_what_is_appended_new_ones_included(log: EventLog) -> None:
    expected = {}
    for number in range(40):
        for _ in range(1 + number % 3):
            await fill(chat(log, f"c{number}"), 1 + number % 4)
        expected[f"c{number}"] = list(range(1, (1 + number % 3) * (1 + number % 4) + 1))
    async with log.tenant("t").follow() as follower:
        items = await until(follower, Kind.CAUGHT_UP)
        assert by_conversation(items) == expected
        await fill(chat(log, "new"), 2)
        await fill(chat(log, "c0"), 1)
        assert by_conversation(await take(follower, 3)) == {"new": [1, 2], "c0": [2]}


async def test_whoever_goes_on_after_any_cursor_misses_and_repeats_nothing(log: EventLog) -> None:
    for name in "abcab":
        await fill(chat(log, name), 3)
        await fill(chat(log, name, "other"), 2)
    items = await until(log.tenant("t").follow(), Kind.CAUGHT_UP)
    for index, item in enumerate(items):
        rest = await until(log.tenant("t").follow(str(item.cursor)), Kind.CAUGHT_UP)
        before, after = by_conversation(items[: index + 1]), by_conversation(rest)
        assert {name: before.get(name, []) + after.get(name, []) for name in "abc"} == by_conversation(items)


async def test_more_than_a_page_of_appends_and_of_events_comes_whole(log: EventLog) -> None:
    for name in ("a", "b"):
        await fill(chat(log, name), 1000)
        for _ in range(600):
            await fill(chat(log, name), 1)
    items = await until(log.tenant("t").follow(), Kind.CAUGHT_UP)
    assert by_conversation(items) == {"a": list(range(1, 1601)), "b": list(range(1, 1601))}


async def test_nothing_of_another_tenant_is_given_whatever_the_cursor(log: EventLog) -> None:
    rng = random.Random(5)
    cursors = []
    other = log.tenant("other").follow()
    for _ in range(30):
        await fill(chat(log, f"c{rng.randrange(5)}", rng.choice(["t", "other", "t/c1"])), 2)
        cursors += [item.cursor for item in await until(log.tenant("t").follow(), Kind.CAUGHT_UP)][-3:]
    theirs = [item.cursor for item in await until(other, Kind.CAUGHT_UP)]
    for cursor in theirs:
        with pytest.raises(CursorInvalid):
            log.tenant("t").follow(cursor)
        forged = cursor._replace(tenant=cursors[0].tenant)
        async with log.tenant("t").follow(forged) as follower:
            for item in await until(follower, Kind.CAUGHT_UP):
                assert item.event is None or await is_of(log, "t", item)
    for cursor in cursors:
        for item in await until(log.tenant("t").follow(cursor), Kind.CAUGHT_UP):
            assert item.event is None or await is_of(log, "t", item)


async def is_of(log: EventLog, tenant: str, item: Followed[Any]) -> bool:
    assert item.conversation is not None
    assert item.event is not None
    return item.event.id in [event.id async for event in chat(log, item.conversation, tenant).read()]


async def test_a_quiet_tenants_cursor_moves_with_what_others_write(log: EventLog) -> None:
    await fill(chat(log), 1)
    async with log.tenant("t").follow(poll=0.05) as follower:
        before = (await until(follower, Kind.CAUGHT_UP))[-1].cursor
        await fill(chat(log, "c", "other"), 3)
        with anyio.fail_after(PATIENCE):
            item = await anext(follower)
        assert (item.kind, item.event) == (Kind.SKIPPED, None)
        assert sum(p.seq for p in item.cursor.positions) == sum(p.seq for p in before.positions) + 1


async def test_much_that_others_wrote_is_a_few_items(log: EventLog) -> None:
    for _ in range(100):
        await fill(chat(log, "c", "other"), 1)
    assert kinds(await until(log.tenant("t").follow(), Kind.CAUGHT_UP)) in (
        ["skipped"] * count + ["caught-up"] for count in range(1, 6)
    )


async def test_now_begins_with_the_cursor_it_begins_at(log: EventLog) -> None:
    await fill(chat(log), 3)
    async with log.tenant("t").follow("now") as follower:
        first = await anext(follower)
        assert first.kind is Kind.CAUGHT_UP
        await fill(chat(log, "d"), 1)
        assert by_conversation(await take(follower, 1)) == {"d": [1]}
    assert by_conversation(await until(log.tenant("t").follow(str(first.cursor)), Kind.CAUGHT_UP)) == {"d": [1]}


async def test_types_choose_events_and_the_cursor_moves_all_the_same(log: EventLog) -> None:
    await fill(chat(log), 2)
    await chat(log).append(Draft("x-note", {}), Draft("x-other", {}), Draft("x-note", {}), Draft("x-other", {}))
    items = await until(log.tenant("t").follow(types=["x-note"]), Kind.CAUGHT_UP)
    assert versions(items) == [3, 5]
    assert [versions(await until(log.tenant("t").follow(item.cursor), Kind.CAUGHT_UP)) for item in items] == [
        [4, 5, 6],
        [6],
        *([[]] * (len(items) - 2)),
    ]


async def test_heartbeats_come_when_nothing_else_does(log: EventLog) -> None:
    async with log.tenant("t").follow(heartbeat=0.02) as follower:
        await until(follower, Kind.CAUGHT_UP)
        assert kinds(await until(follower, Kind.HEARTBEAT)) == ["heartbeat"]


async def test_a_next_that_is_cancelled_has_taken_nothing(log: EventLog) -> None:
    """Cancelled at any moment of a replay and of the live part."""
    rng = random.Random(7)
    seen: list[Followed[Any]] = []
    async with log.tenant("t").follow(poll=0.1) as follower, anyio.create_task_group() as tasks:

        async def write() -> None:
            for number in range(150):
                await fill(chat(log, f"c{number % 4}"), 3)

        tasks.start_soon(write)
        with anyio.fail_after(PATIENCE):
            while len(events_of(seen)) < 450:
                with anyio.move_on_after(rng.uniform(0, 0.005)):
                    while True:
                        seen.append(await anext(follower))
    lengths = {f"c{number}": len(range(number, 150, 4)) * 3 for number in range(4)}
    assert by_conversation(seen) == {name: list(range(1, length + 1)) for name, length in lengths.items()}


async def test_hints_are_for_the_tenants_that_are_followed(log: EventLog) -> None:
    """Without a poll in sight an append arrives by its hint."""
    async with log.tenant("t").follow(poll=1000) as follower:
        await until(follower, Kind.CAUGHT_UP)
        for _ in range(20):
            await fill(chat(log), 1)
            await take(follower, 1)
