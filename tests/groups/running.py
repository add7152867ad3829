"""A member that runs beside a test, and waiting for what it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from eventlog.consumer_group import ConsumerGroup
from eventlog.delivery import Delivery
from eventlog.sharing import Backoff

PATIENCE = 30.0
QUICK: dict[str, Any] = {"lease": 1.5, "poll": 0.05, "backoff": Backoff(first=0.01, most=0.05)}


@asynccontextmanager
async def consuming(
    group: ConsumerGroup, handler: Callable[[Delivery], Awaitable[object]], **options: Any
) -> AsyncIterator[asyncio.Task[None]]:
    """A member while the block lasts; what goes wrong in it is raised at its end."""
    await group.create()
    member = asyncio.create_task(group.consume(handler, **(QUICK | options)))
    try:
        yield member
    finally:
        member.cancel()
        await asyncio.wait([member])
    if not member.cancelled():
        member.result()


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    """Wait for a condition."""
    with anyio.fail_after(PATIENCE):
        while not await condition():
            await anyio.sleep(0.01)


async def passed(group: ConsumerGroup) -> None:
    """Wait until nothing lags behind and nothing is due to be delivered again."""

    async def done() -> bool:
        status = await group.status()
        busy = any(one.place.window for one in status.partitions)
        return not busy and status.lag == 0 and status.waiting == 0

    await until(done)


def held(group_status: Any) -> dict[str, int]:
    """How many partitions each holder holds."""
    holders: dict[str, int] = {}
    for one in group_status.partitions:
        if one.place.holder:
            holders[one.place.holder] = holders.get(one.place.holder, 0) + 1
    return holders
