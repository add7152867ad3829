"""The newest items, cutting no call from its result. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.adapters.openai_agents.kinds import Item, answers, asks, leads_on


def newest(items: Sequence[Item], n: int) -> int:
    """The index where the newest ``n`` items begin, moved to the nearest place that cuts nothing.

    Not cut are a call from its result and reasoning from what it led to. Where ``n`` items would
    cut, the window grows to at most 2n, else it shrinks, but never to nothing.
    """
    total = len(items)
    if n >= total:
        return 0
    allowed = _allowed(items)
    wanted, most = total - n, max(total - 2 * n, 0)
    grown = next((start for start in range(wanted, most - 1, -1) if allowed[start]), None)
    if grown is not None:
        return grown
    shrunk = next((start for start in range(wanted + 1, total) if allowed[start]), None)
    if shrunk is not None:
        return shrunk
    return next(start for start in range(most, -1, -1) if allowed[start])


def unmet(items: Sequence[Item]) -> bool:
    """Whether a result stands here whose call does not, or its beginning may be cut from reasoning before it."""
    asked: set[tuple[str, str]] = set()
    for item in items:
        key = asks(item)
        if key is not None:
            asked.add(key)
        answered = answers(item)
        if answered is not None and answered not in asked:
            return True
    return False


def _allowed(items: Sequence[Item]) -> list[bool]:
    """For each index, whether the items may be cut before it."""
    change = [0] * (len(items) + 1)
    waiting: dict[tuple[str, str], int] = {}
    for index, item in enumerate(items):
        key = asks(item)
        if key is not None:
            waiting[key] = index
        answered = answers(item)
        if answered is not None and answered in waiting:
            _span(change, waiting[answered], index)
        if leads_on(item) and index + 1 < len(items):
            _span(change, index, index + 1)
    allowed, crossing = [], 0
    for delta in change[:-1]:
        crossing += delta
        allowed.append(crossing == 0)
    return allowed


def _span(change: list[int], start: int, end: int) -> None:
    change[start + 1] += 1
    change[end + 1] -= 1
