"""How far a rebuild is, for people: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from eventlog.errors import EventLogError
from eventlog.store.views import ViewId
from gateway.command.place import note
from gateway.command.summary import many
from gateway.command.tasks import together
from projections.live import Live
from projections.partition import Told
from projections.status import conversations, scans

_LOOK = 0.25
_LINE = 5.0
"""Seconds between two plain lines."""


class Rebuilding:
    """Counts what a rebuild does, from the beginning or from where it was left."""

    def __init__(self, live: Live, now: Callable[[], float] = time.monotonic) -> None:
        self.events = 0
        """Events that this process has applied."""
        self.scanned = 0
        self.total: int | None = None
        """Conversations; None until they are counted."""
        self.view: ViewId | None = None
        self._live = live
        self._now = now
        self._began = now()
        self._found: int | None = None
        """Conversations that were scanned already when it was first looked at."""

    def take(self, told: Told) -> None:
        """Hear of a step."""
        self.view = told.view
        if told.step == "committed":
            self.events += told.events

    async def look(self) -> None:
        """See how far the scan is, whoever does it. What goes wrong is said by the rebuild itself."""
        with suppress(EventLogError):
            await self._look()

    async def _look(self) -> None:
        if self.total is None:
            self.total = await conversations(self._live.store)
        if self.view is not None:
            self.scanned = sum(scan.conversations for scan in await scans(self._live, self.view))
            if self._found is None:
                self._found = self.scanned

    @property
    def seconds(self) -> float:
        """How long it has taken here."""
        return max(self._now() - self._began, 0.001)

    @property
    def remaining(self) -> float | None:
        """About how many seconds the scan still takes, as conversation after conversation so far; None: unknown."""
        done = self.scanned - (self._found or 0)
        if self.total is None or done <= 0:
            return None
        return max(self.total - self.scanned, 0) * self.seconds / done

    def __str__(self) -> str:
        of = "" if self.total is None else f" of {max(self.total, self.scanned):,}"
        rate = f"{many(self.events, 'event')}, {self.events / self.seconds:,.0f} events/s"
        left = "" if self.remaining is None else f", about {_clock(self.remaining)} left"
        return f"{self.scanned:,}{of} conversations, {rate}{left}"


@asynccontextmanager
async def shown(rebuilding: Rebuilding, name: str) -> AsyncIterator[None]:
    """Show on stderr how far it is while the block lasts."""
    async with together() as tasks:
        tasks.start_soon(_bar if sys.stderr.isatty() else _lines, rebuilding, name)
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()


async def _bar(rebuilding: Rebuilding, name: str) -> None:
    columns = (TextColumn("{task.fields[projection]}", markup=False), BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("begins", total=None, projection=name)
        while True:
            await rebuilding.look()
            progress.update(
                task, description=str(rebuilding), completed=rebuilding.scanned, total=rebuilding.total or None
            )
            await anyio.sleep(_LOOK)


async def _lines(rebuilding: Rebuilding, name: str) -> None:
    while True:
        await rebuilding.look()
        await anyio.sleep(_LINE)
        note(f"{name}: {rebuilding}")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Ticker:
    """A line on stderr that is written over, where that is a terminal."""

    def __init__(self, seconds: float = 0.2) -> None:
        self._seconds = seconds
        self._next = 0.0
        self._is_shown = False

    def show(self, text: str) -> None:
        """Write it in place of what was there, not too often."""
        now = time.monotonic()
        if now >= self._next and sys.stderr.isatty():
            self._next, self._is_shown = now + self._seconds, True
            typer.echo(f"\r\033[K{text}", nl=False, err=True)

    def end(self) -> None:
        """Take it away."""
        if self._is_shown:
            typer.echo("\r\033[K", nl=False, err=True)
