"""Shifts what this process takes for the time of day: no rule of the product may depend on it."""

from __future__ import annotations

import datetime
import sys
import time
from collections.abc import Callable


def shift(seconds: float, jump: float) -> None:
    """Shift the clock by ``seconds``, and by ``jump`` more from every second second on.

    Replaces ``time.time`` and, in the product's modules, which are imported already, ``datetime``.
    """
    real = time.time

    def shifted() -> float:
        now = real()
        return now + seconds + (jump if int(now) % 2 else 0.0)

    time.time = shifted
    time.time_ns = lambda: int(shifted() * 1e9)
    moved = _moved(shifted)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("eventlog", "projections") and vars(module).get("datetime") is datetime.datetime:
            module.datetime = moved  # type: ignore[attr-defined]


def _moved(shifted: Callable[[], float]) -> type[datetime.datetime]:
    class Moved(datetime.datetime):
        """A datetime whose now is the shifted one."""

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Moved:
            """The shifted time."""
            return cls.fromtimestamp(shifted(), tz)

    return Moved
