"""What the tests take from a follower."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio

from eventlog import Event, Followed, Kind

PATIENCE = 30.0


async def until(follower: AsyncIterator[Followed[Any]], kind: Kind) -> list[Followed[Any]]:
    """The items up to the first of this kind."""
    items = []
    with anyio.fail_after(PATIENCE):
        async for item in follower:
            items.append(item)
            if item.kind is kind:
                break
    return items


async def take(follower: AsyncIterator[Followed[Any]], events: int) -> list[Followed[Any]]:
    """The items up to the one with so many events taken."""
    items: list[Followed[Any]] = []
    with anyio.fail_after(PATIENCE):
        while events:
            items.append(await anext(follower))
            events -= items[-1].kind is Kind.EVENT
    return items


def events_of(items: list[Followed[Any]]) -> list[Event]:
    return [item.event for item in items if item.event is not None]


def versions(items: list[Followed[Any]]) -> list[int]:
    return [event.version for event in events_of(items)]


def kinds(items: list[Followed[Any]]) -> list[str]:
    return [item.kind.value for item in items]
