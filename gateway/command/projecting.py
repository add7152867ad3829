"""Keeping views for as long as a process runs: tells people what it does, and keeps house when asked to."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import anyio
from anyio.abc import TaskGroup

from eventlog.errors import EventLogError, ProjectionStopped
from eventlog.housekeeping import expire, trim_feeds
from eventlog.log import EventLog
from gateway.command.place import note
from gateway.command.summary import clean, many
from gateway.command.tasks import together
from projections.live import Live
from projections.partition import Told
from projections.projection import Projection
from projections.projector import OnError, Projector

_log = logging.getLogger("eventlog.command")
EVERY = 60.0
"""Seconds between two rounds of housekeeping."""
_TELL = 10.0
"""Seconds between two lines about what was applied."""


@dataclass(frozen=True)
class Keeping:
    """How views are kept. ``trim`` keeps so many feed entries; ``idle`` is how long a conversation may rest."""

    on_error: OnError
    batch: int
    lease: float
    once: bool
    trim: int | None = None
    idle: timedelta | None = None


async def keep(log: EventLog, projections: Sequence[Projection[Any]], how: Keeping) -> bool:
    """Keep the views until the process is to end, or all have stopped; whether one stopped.

    With ``once`` only until they have applied what there is now. One that stops does not stop the others.
    """
    steps, stopped = Steps(), list[str]()

    async def keep_one(projection: Projection[Any]) -> None:
        projector = Projector(
            log, [projection], on_error=how.on_error, batch=how.batch, lease=how.lease, told=steps.take
        )
        try:
            await (projector.catch_up() if how.once else projector.run())
        except ProjectionStopped as error:
            _log.error("%s", error)
            stopped.append(projection.name)

    _log.info("keeping %s", ", ".join(projection.name for projection in projections))
    async with together() as beside:
        beside.start_soon(_end_when_asked, beside)
        beside.start_soon(steps.tell_now_and_then)
        if not how.once:
            beside.start_soon(_keep_house, log, how)
        async with together() as keepers:
            for projection in projections:
                keepers.start_soon(keep_one, projection)
        if how.once:
            await keep_house(log, how)
        beside.cancel_scope.cancel()
    steps.tell()
    return bool(stopped)


async def keep_house(log: EventLog, how: Keeping) -> None:
    """One round: expire what has rested too long, then trim the feeds, each when asked to."""
    live = Live.of(log.store)
    if how.idle is not None:
        expired = await expire(live.store, how.idle)
        if expired:
            _log.info("%s expired", many(expired, "idle conversation"))
    if how.trim is not None:
        trimmed = sum((await trim_feeds(live.store, live.readers, how.trim)).values())
        if trimmed:
            _log.info("%s %s trimmed from the feeds", f"{trimmed:,}", "entry" if trimmed == 1 else "entries")


async def _keep_house(log: EventLog, how: Keeping) -> None:
    while how.idle is not None or how.trim is not None:
        try:
            await keep_house(log, how)
        except EventLogError as error:
            _log.warning("housekeeping: %s; it is tried again in a minute", error)
        await anyio.sleep(EVERY)


async def _end_when_asked(tasks: TaskGroup) -> None:
    """End in order on SIGTERM. An interruption (SIGINT) cancels the whole command, which ends in order, too."""
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            _log.info("ending")
            tasks.cancel_scope.cancel()
            return


class Steps:
    """Counts what is applied, and tells it in a line for each view now and then."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._since = now()
        self._applied: dict[str, int] = {}
        self._taken: dict[str, int] = {}

    def take(self, told: Told) -> None:
        """Hear of a step."""
        view = f"{told.view.projection}.{told.view.generation}"
        if told.step == "committed" and told.events:
            self._applied[view] = self._applied.get(view, 0) + told.events
        elif told.step == "acquired":
            self._taken[view] = self._taken.get(view, 0) + 1
        elif told.step == "flipped":
            _log.info("view %s is whole, and live", view)

    def tell(self) -> None:
        """Say what happened since it was last said; nothing when nothing did."""
        seconds = max(self._now() - self._since, 0.001)
        for view in sorted({*self._applied, *self._taken}):
            parts = []
            if view in self._taken:
                parts.append(f"{many(self._taken[view], 'partition')} taken over")
            if view in self._applied:
                rate = self._applied[view] / seconds
                parts.append(f"{many(self._applied[view], 'event')} applied ({rate:,.0f}/s)")
            _log.info("view %s: %s", view, ", ".join(parts))
        self._applied.clear()
        self._taken.clear()
        self._since = self._now()

    async def tell_now_and_then(self) -> None:
        """Tell until cancelled."""
        while True:
            await anyio.sleep(_TELL)
            self.tell()


@contextmanager
def logged() -> Iterator[None]:
    """What this product logs goes to stderr, a line each, with its time."""
    ours, handler = logging.getLogger("eventlog"), _ToStderr()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    before = ours.level
    ours.addHandler(handler)
    ours.setLevel(logging.INFO)
    try:
        yield
    finally:
        ours.removeHandler(handler)
        ours.setLevel(before)


class _ToStderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):  # nobody reads it: the views are kept all the same
            note(clean(self.format(record)).replace("\n", " "))
