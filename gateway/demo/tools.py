"""The guide's tools. They look nothing up, and take as long as they say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from eventlog import FunctionCall
from eventlog.messages import Json

SLOW = 0.05
"""Seconds that the forecast takes; the other tools return at once."""


async def forecast(day: str) -> Json:
    """The weather at the hut."""
    await anyio.sleep(SLOW)
    return {"day": day, "sky": "dry until evening"}


async def free_beds(day: str) -> Json:
    """How many beds the hut has left."""
    return {"day": day, "free": 4}


async def next_bus(day: str) -> Json:
    """When the bus to the trailhead leaves."""
    return {"day": day, "leaves": "07:15"}


async def book_beds(beds: int) -> Json:
    """Books beds, as far as a demo can."""
    return {"beds": beds, "booked": True}


_TOOLS: dict[str, Callable[..., Awaitable[Json]]] = {
    tool.__name__: tool for tool in (forecast, free_beds, next_bus, book_beds)
}


async def run_tool(call: FunctionCall) -> Json:
    """What the tool that is called returns."""
    return await _TOOLS[call.name](**call.arguments)
