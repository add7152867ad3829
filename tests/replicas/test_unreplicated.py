"""Without replicas in the promise, a stalled replica that is promoted has lost something: everybody beyond is told."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest

from eventlog import Appended, Conversation, EventLog, Kind, LogLost, user
from eventlog.delivery import Delivery
from eventlog.subscription import Subscription
from projections import BUILT_IN, Live, Projector, Verifying
from tests.groups.running import QUICK, passed
from tests.loss.log import add, assert_reader_is_told, assert_writer_is_told, chat, events, operations
from tests.loss.server import Server
from tests.loss.switch import Switch
from tests.replicas.conftest import TRIES
from tests.replicas.stall import BEYOND, BODY, stalled, take_over

pytestmark = pytest.mark.anyio
KEPT = 3


class Beyond:
    """Everybody who stood at the end of what the primary had, and what they had before the stall."""

    def __init__(self, log: EventLog, other: EventLog) -> None:
        self.log = log
        self.other = other
        """To the same server, for those who had not seen the end."""
        self.writer = chat(log)
        self.group = log.group("workers")
        self.end: Appended

    @property
    def early(self) -> Conversation:
        """A handle that has seen nothing."""
        return chat(self.other)


async def nothing(delivery: Delivery) -> None:
    """Handles anything."""


@pytest.mark.parametrize("attempt", range(TRIES))
async def test_who_stood_beyond_is_told_and_no_version_is_silently_used_again(
    primary: Server, replica: Server, switch: Switch, attempt: int
) -> None:
    # Nothing was written since, and others wrote at the lost versions: in turn.
    again = BEYOND + 5 if attempt % 2 else 0
    await replica.replicate(primary)
    async with (
        EventLog.open(switch.url, namespace="loss") as log,
        EventLog.open(switch.url, namespace="loss") as other,
    ):
        here = Beyond(log, other)
        projector = Projector(log, BUILT_IN, poll=0.05)
        await add(here.writer, *(f"kept-{number}" for number in range(KEPT)))
        await _in_step(primary, replica)
        with stalled(replica):
            await here.group.create()
            async with anyio.create_task_group() as tasks:
                for number in range(BEYOND):
                    tasks.start_soon(_append, here.writer, f"lost-{number}")
            here.end = await here.writer.add(user("the end"), operation_id="end")
            member = asyncio.create_task(here.group.consume(nothing, **QUICK))
            await passed(here.group)
            await projector.catch_up()
            follower = here.writer.follow(after=here.end.cursor, poll=0.1)
            of_tenant = log.tenant("acme").follow(after="now", poll=0.1)
            assert [(await anext(one)).kind for one in (follower, of_tenant)] == [Kind.CAUGHT_UP, Kind.CAUGHT_UP]
            primary.kill()
        await take_over(replica, switch)

        left = operations(await events(here.early))
        assert left[:KEPT] == [f"kept-{number}" for number in range(KEPT)]
        assert len(left) <= BEYOND, "nothing was lost: the test proves nothing"
        print(f"\neverysec, try {attempt + 1} of {TRIES}: {BEYOND + KEPT + 1 - len(left)} events were lost", end="")
        for number in range(again):
            await here.early.add(user("since"), operation_id=f"since-{number}")
        there = len(left) + again

        await _assert_follower_is_told(follower)
        await _assert_follower_is_told(of_tenant)
        await assert_reader_is_told(chat(log), here.end.cursor, there)
        await assert_writer_is_told(here.writer, there)
        with anyio.fail_after(20), pytest.raises(LogLost):
            await member
        await _assert_projections_agree(log, projector)
        assert operations(await events(here.early)) == [*left, *(f"since-{number}" for number in range(again))]
        print(": everybody who stood beyond was told", end="")


async def _append(writer: Conversation, operation: str) -> None:
    await writer.add(user(BODY), operation_id=operation)


async def _in_step(primary: Server, replica: Server) -> None:
    async with primary.client() as client, replica.client() as other:
        with anyio.fail_after(20):
            while (await client.info("replication"))["master_repl_offset"] != (await other.info("replication"))[
                "slave_repl_offset"
            ]:
                await anyio.sleep(0.01)


async def _assert_follower_is_told(follower: Subscription[Any]) -> None:
    with anyio.fail_after(20), pytest.raises(LogLost):
        await _drain(follower)


async def _drain(follower: Subscription[Any]) -> None:
    async for _ in follower:
        pass


async def _assert_projections_agree(log: EventLog, projector: Projector) -> None:
    """What they keep was lost together with what it was made of, so that they are right again."""
    with anyio.fail_after(20):
        await projector.catch_up()
    live = Live.of(log.store)
    for projection in BUILT_IN:
        view = await live.view(projection)
        assert [one async for one in Verifying(live, projection, view).differences()] == []
