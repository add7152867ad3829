"""What the workers of one member share: the handler, and how it is to be called. Nothing here does I/O."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from eventlog.delivery import Delivery
from eventlog.identity import LogId
from eventlog.sharing import Backoff
from eventlog.store.readers import Mark

Handler = Callable[[Delivery], Awaitable[object]]


class Alone:
    """Lets one handler of this process run with no other beside it, so that it is known who ended the process."""

    def __init__(self) -> None:
        self._running = 0
        self._wanted = 0
        self._held = False
        self._changed = asyncio.Event()

    async def enter(self, *, alone: bool) -> None:
        """Wait until a handler may run, beside others or alone."""
        if not alone:
            while self._wanted:
                await self._changed.wait()
            self._running += 1
            return
        self._wanted += 1
        try:
            while self._running or self._held:
                await self._changed.wait()
        except BaseException:
            self._wanted -= 1
            self._notify()
            raise
        self._held = True

    def leave(self, *, alone: bool) -> None:
        """The handler has returned."""
        if alone:
            self._held = False
            self._wanted -= 1
        else:
            self._running -= 1
        if alone or self._wanted:
            self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


@dataclass(slots=True)
class Work:
    """What the workers of one member share."""

    handler: Handler
    group: str
    tenant: str | None
    concurrency: int
    batch: int
    max_deliveries: int
    waits: bool
    """The conversation of a parked event waits."""
    backoff: Backoff
    poll: float
    slots: asyncio.Semaphore = field(init=False)
    alone: Alone = field(default_factory=Alone)
    paused: bool = False
    passed: dict[int, Mark] = field(default_factory=dict)
    """The mark of each partition as it was when this member had it last."""

    def __post_init__(self) -> None:
        self.slots = asyncio.Semaphore(self.concurrency)

    def pause_ms(self, count: int, after: float | None = None) -> int:
        """How long to wait after the ``count``-th delivery failed, or as was asked."""
        seconds = self.backoff.seconds(count, random.random()) if after is None else after  # noqa: S311
        return max(1, int(seconds * 1000))

    def concerns(self, log: LogId) -> bool:
        """Whether the group delivers this conversation."""
        return self.tenant is None or log.tenant == self.tenant
