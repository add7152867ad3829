"""A member that stood beyond what a promoted replica has is told, whichever of its looks at the server comes first."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from eventlog import EventLog, LogLost, user
from eventlog.delivery import Delivery
from tests.groups.running import passed
from tests.loss.server import Server
from tests.loss.switch import Switch

pytestmark = pytest.mark.anyio


async def nothing(delivery: Delivery) -> None:
    """Handles anything."""


@pytest.mark.parametrize("poll", [0.05, 30.0], ids=["it reads its feed first", "its heartbeat comes first"])
async def test_a_member_that_stood_beyond_is_told(
    primary: Server, replica: Server, switch: Switch, poll: float
) -> None:
    async with EventLog.open(switch.url) as log:
        chat, group = log.tenant("acme").conversation("support"), log.group("workers")
        await chat.add(user("kept"))
        await group.create()
        await replica.replicate(primary)
        await replica.promote()  # what follows is on the primary alone
        await chat.add(user("lost"))
        member = asyncio.create_task(group.consume(nothing, lease=1.5, poll=poll))
        try:
            await passed(group)
            switch.target = replica.socket
            switch.cut()
            with anyio.fail_after(8), pytest.raises(LogLost):
                await asyncio.shield(member)
        finally:
            member.cancel()
            await asyncio.wait([member])
