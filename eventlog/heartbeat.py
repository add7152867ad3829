"""Keeping a run held while its holder waits for a model or a tool."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from eventlog.errors import EventLogError, LogClosed, RunRefused


class Heartbeat:
    """Calls ``renew`` every ``period`` seconds, until it is stopped or the run has another holder.

    A task of its own, not of a task group: what the holder's block raises must reach its caller as
    it is. What fails otherwise is tried again at the next beat; whether the run is still
    held is decided by the server at each append.
    """

    def __init__(self, renew: Callable[[], Awaitable[None]], period: float) -> None:
        self._renew = renew
        self._period = period
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to beat."""
        self._task = asyncio.create_task(self._beat())

    async def stop(self) -> None:
        """Beat no more."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._period)
            try:
                await self._renew()
            except (RunRefused, LogClosed):
                return
            except EventLogError:
                continue
