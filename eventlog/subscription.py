"""What following gives: items, one after the other, and how one waits for the next.

A subscription pulls. It holds at most one page of events, so one whose consumer is slow holds
nothing that grows and holds nobody up.
"""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable
from enum import StrEnum
from types import TracebackType
from typing import Any, Generic, NamedTuple, Self, TypeVar

from eventlog.errors import InvalidInput, ServerUnavailable
from eventlog.events import Event
from eventlog.hub import Hub, Place
from eventlog.identity import Cursor
from eventlog.tenant_cursor import TenantCursor

C = TypeVar("C", Cursor, TenantCursor)

POLL = 15.0
"""Seconds after which a follower that heard nothing looks for itself."""
_SHORTEST = 0.01
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class Kind(StrEnum):
    """What an item says."""

    EVENT = "event"
    CAUGHT_UP = "caught-up"
    """Everything there was has been given; what follows is new. Said once."""
    HEARTBEAT = "heartbeat"
    """Nothing happened for as long as was asked for."""
    SKIPPED = "skipped"
    """Something happened that is not asked for; only the cursor moved."""


class Followed(NamedTuple, Generic[C]):
    """One item. To go on later, follow after its ``cursor``."""

    kind: Kind
    cursor: C
    event: Event | None = None
    """The event, of an item of that kind."""
    conversation: str | None = None
    """The conversation the event is of."""


class Subscription(ABC, Generic[C]):
    """An asynchronous iterator of items.

    A ``__anext__`` that is cancelled has taken nothing: the next one goes on. Close it with
    ``aclose``, or use it in an ``async with`` block; one that is forgotten is closed when it is
    collected. It is for one task at a time.
    """

    def __init__(self, hub: Hub, *, heartbeat: float | None, poll: float) -> None:
        for name, seconds in (("heartbeat", heartbeat), ("poll", poll)):
            if seconds is not None and not seconds >= _SHORTEST:
                raise InvalidInput(f"{name}={seconds}: at least {_SHORTEST} seconds")
        self._hub = hub
        self._place: Place | None = None
        self._items: deque[Any] = deque()
        """Items, or what ``__anext__`` makes one of."""
        self._heartbeat = heartbeat
        self._poll = poll
        self._pause = _FIRST_PAUSE
        self._look_at = 0.0
        """When, by the loop's clock, to look whatever was heard. 0: now."""
        self._beat_at: float | None = None
        self._is_over = False
        self._busy = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Followed[C]:
        items = self._items
        if not items:
            await self._fill()
        item: Followed[C] = items.popleft()
        return item

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Follow no longer."""
        self._end()
        self._items.clear()

    def __del__(self) -> None:
        if getattr(self, "_place", None) is not None:
            self._end()

    @property
    def waiting(self) -> int:
        """How many items are at hand."""
        return len(self._items)

    @abstractmethod
    def _join(self) -> Place:
        """Join at the hub."""

    @abstractmethod
    async def _step(self) -> None:
        """Look once, or wait once; put what there is to give with ``_give``."""

    def _give(self, items: Iterable[object]) -> None:
        self._items.extend(items)
        if self._items:
            self._beat_at = None

    def _end(self) -> None:
        self._is_over = True
        if self._place is not None:
            self._hub.leave(self._place)
            self._place = None

    async def _fill(self) -> None:
        """Wait until there is an item; at the end, raise ``StopAsyncIteration``."""
        if self._busy:
            raise RuntimeError("a subscription is for one task at a time: follow once in each")
        self._busy = True
        try:
            if self._place is None and not self._is_over:
                self._place = self._join()
            if self._heartbeat is not None and self._beat_at is None:
                self._beat_at = asyncio.get_running_loop().time() + self._heartbeat
            while not self._items:
                if self._is_over:
                    raise StopAsyncIteration
                try:
                    await self._step()
                except ServerUnavailable:
                    await self._rest()
                else:
                    self._pause = _FIRST_PAUSE
        except Exception:
            self._end()
            raise
        finally:
            self._busy = False

    async def _rest(self) -> None:
        """The server is away: wait a little, longer each time."""
        await asyncio.sleep(self._pause * random.uniform(0.5, 1))  # noqa: S311  not a secret
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        self._beat()

    async def _wait(self, place: Place, seen: int) -> None:
        """Wait for news, for the time to look, or for a heartbeat to be due."""
        now = asyncio.get_running_loop().time()
        until = self._look_at if self._beat_at is None else min(self._look_at, self._beat_at)
        if not await place.wait(seen, until - now):
            self._beat()

    def _looked(self) -> None:
        """All was looked at: look again within ``poll``, not all followers in one moment."""
        self._look_at = asyncio.get_running_loop().time() + self._poll * random.uniform(0.8, 1)  # noqa: S311

    @property
    def _due(self) -> bool:
        return asyncio.get_running_loop().time() >= self._look_at

    def _beat(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._beat_at is not None and self._heartbeat is not None and now >= self._beat_at:
            cursor = self._cursor()
            if cursor is not None:
                self._give([Followed(Kind.HEARTBEAT, cursor)])

    @abstractmethod
    def _cursor(self) -> C | None:
        """Up to where everything was given; None before that is known."""
