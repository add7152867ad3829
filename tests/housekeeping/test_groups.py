"""Groups pass what was deleted, let go of what waited of it, and never stand still for it."""

from __future__ import annotations

import asyncio
import logging
import re

import anyio
import pytest

from eventlog import EventLog
from eventlog.consumer_group import ConsumerGroup
from eventlog.delivery import Delivery
from eventlog.errors import InvalidInput
from eventlog.store.conformance.suite import notes
from tests.groups.running import consuming, passed, until
from tests.housekeeping.feeds import Seen, chat, fill

pytestmark = pytest.mark.anyio


def let_go(caplog: pytest.LogCaptureFixture, name: str) -> tuple[int, int]:
    """How many undelivered and parked events of a conversation the log messages count."""
    told = re.compile(
        rf"conversation '{name}' of 't' was deleted: (\d+) undelivered and (\d+) parked events were let go"
    )
    found = [match for record in caplog.records if (match := told.search(record.getMessage()))]
    return sum(int(match[1]) for match in found), sum(int(match[2]) for match in found)


async def parked(group: ConsumerGroup) -> list[tuple[str, int]]:
    return sorted([(one.conversation, one.version) async for one in group.parked()])


async def test_what_was_deleted_before_it_was_delivered_is_passed(
    one: EventLog, caplog: pytest.LogCaptureFixture
) -> None:
    await fill(one, "a", "b", "c")
    await chat(one, "b").delete()
    await fill(one, "c", events=1)
    group, seen = one.group("g"), Seen()
    async with consuming(group, seen):
        await passed(group)
    assert sorted(seen) == [("a", 1), ("a", 2), ("a", 3), ("c", 1), ("c", 2), ("c", 3), ("c", 4)]
    assert let_go(caplog, "b") == (3, 0)


async def test_what_waits_for_its_turn_is_let_go(one: EventLog, caplog: pytest.LogCaptureFixture) -> None:
    await fill(one, "a", "b")
    group, seen = one.group("g"), Seen()

    async def handle(delivery: Delivery) -> None:
        if delivery.conversation.conversation == "a":
            await delivery.retry(3600)
        else:
            await seen(delivery)

    async with consuming(group, handle):
        await until(lambda: _waits(group, 1))
        await chat(one, "a").delete()
        await fill(one, "b", events=1)
        await passed(group)
    assert seen == [("b", 1), ("b", 2), ("b", 3), ("b", 4)]
    assert let_go(caplog, "a") == (3, 0)


async def _waits(group: ConsumerGroup, count: int) -> bool:
    status = await group.status()
    return status.waiting == count and status.lag == 0


@pytest.mark.parametrize("on_park", ["go-on", "wait"])
async def test_what_is_parked_is_let_go(one: EventLog, caplog: pytest.LogCaptureFixture, on_park: str) -> None:
    await fill(one, "a", "b")
    group = one.group("g")

    async def handle(delivery: Delivery) -> None:
        await delivery.park("bad")

    async def all_parked() -> bool:
        return (await group.status()).lag == 0 and (await group.status()).parked == (2 if on_park == "wait" else 6)

    async with consuming(group, handle, on_park=on_park):
        await until(all_parked)
        await chat(one, "a").delete()
        await until(lambda: _parked_are(group, "b", on_park))
    assert let_go(caplog, "a") == ((3, 1) if on_park == "wait" else (0, 3))


async def _parked_are(group: ConsumerGroup, name: str, on_park: str) -> bool:
    left = await parked(group)
    status = await group.status()
    return left == [(name, version) for version in ((1,) if on_park == "wait" else (1, 2, 3))] and status.lag == 0


async def test_what_is_in_hand_ends_and_what_was_fetched_behind_it_is_let_go(
    one: EventLog, caplog: pytest.LogCaptureFixture
) -> None:
    await fill(one, "a", events=5)
    group, seen, began, goes_on = one.group("g"), Seen(), anyio.Event(), anyio.Event()

    async def handle(delivery: Delivery) -> None:
        began.set()
        await goes_on.wait()
        await seen(delivery)

    async def is_known() -> bool:
        return let_go(caplog, "a") == (4, 0)

    async with consuming(group, handle):
        await began.wait()
        await chat(one, "a").delete()
        await until(is_known)
        assert (await group.status()).lag > 0, "the mark passed what is in hand"
        goes_on.set()
        await passed(group)
    assert seen == [("a", 1)]
    assert await parked(group) == []


async def test_one_in_hand_that_fails_afterwards_is_let_go(one: EventLog, caplog: pytest.LogCaptureFixture) -> None:
    await fill(one, "a", events=2)
    group, began, goes_on = one.group("g"), anyio.Event(), anyio.Event()

    async def handle(delivery: Delivery) -> None:
        began.set()
        await goes_on.wait()
        await delivery.park("bad")

    async with consuming(group, handle):
        await began.wait()
        await chat(one, "a").delete()
        await asyncio.sleep(0.1)
        goes_on.set()
        await passed(group)
    assert await parked(group) == []
    assert let_go(caplog, "a")[1] <= 1
    assert (await group.status()).waiting == 0


async def test_a_member_that_stops_meanwhile_leaves_it_in_order(one: EventLog) -> None:
    await fill(one, "a", "b", events=2)
    group, began = one.group("g"), anyio.Event()

    async def handle(delivery: Delivery) -> None:
        began.set()
        await asyncio.sleep(60)

    async with consuming(group, handle):
        await began.wait()
        await chat(one, "a").delete()
        await asyncio.sleep(0.1)
    seen = Seen()
    async with consuming(group, seen):
        await passed(group)
    assert seen == [("b", 1), ("b", 2)]


async def test_a_group_of_another_tenant_lets_nothing_go(one: EventLog, caplog: pytest.LogCaptureFixture) -> None:
    await fill(one, "a", tenant="other")
    group, seen = one.group("g", tenant="other"), Seen()
    await fill(one, "a")
    await chat(one, "a").delete()
    async with consuming(group, seen):
        await passed(group)
    assert seen.of("a") == [1, 2, 3]
    assert let_go(caplog, "a") == (0, 0)


async def test_many_deletions_beside_a_busy_group(one: EventLog, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    group, seen = one.group("g"), Seen()
    async with consuming(group, seen, batch=7):
        for number in range(40):
            await chat(one, f"c{number}").append(*notes(1, 2, 3))
            if number % 2:
                await chat(one, f"c{number - 1}").delete()
        await passed(group)
    for number in range(40):
        delivered = seen.of(f"c{number}")
        assert delivered == [1, 2, 3][: len(delivered)]
        assert number % 2 == 0 or delivered == [1, 2, 3]
    assert (await group.status()).waiting == 0


async def test_names_of_projections_are_not_for_groups(one: EventLog) -> None:
    with pytest.raises(InvalidInput, match=r"group '@history\.1': names that begin with '@' are kept for projections"):
        one.group("@history.1")
    assert one.group("a@b").name == "a@b"
