"""An event loop whose clock jumps: while nothing is ready, the time of the next timer has come.

Leases, polls and pauses take no time, and a test with them always goes the same way.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import Any

_MOST = 100_000
"""So many rounds without a pause are work that never ends."""


class _Jumping(selectors.DefaultSelector):
    now = 1_000.0
    rounds = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(None if timeout is None else 0)
        self.rounds += 1
        if not found and timeout:
            self.now += timeout
            self.rounds = 0
        if self.rounds > _MOST:
            self.rounds = 0
            raise AssertionError(f"{_MOST:,} rounds of the loop and no pause: something is tried again and again")
        return found


class TimelessLoop(asyncio.SelectorEventLoop):
    """Make it, or give it to anyio as its ``loop_factory``."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


BACKEND: tuple[str, dict[str, Any]] = ("asyncio", {"loop_factory": TimelessLoop})
"""For a module's fixture ``anyio_backend``."""
