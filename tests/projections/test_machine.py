"""Whatever happens to logs and projectors, the views come right: in memory often, on a server a few times."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

from eventlog import EventLog
from eventlog.identity import LogId
from eventlog.store.redis.store import RedisStore
from projections import partition, syncing
from tests.projections.machine import Lives, Writer
from tests.projections.timeless import TimelessLoop
from tests.projections.world import World
from tests.servers import Started

T = TypeVar("T")


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages, pieces and scans so small that there are many."""
    monkeypatch.setattr(syncing, "_FIRST_PAGE", 3)
    monkeypatch.setattr(syncing, "PAGE", 4)
    monkeypatch.setattr(syncing, "_PIECE_EVENTS", 6)
    monkeypatch.setattr(partition, "_SCANNED", 1)
    monkeypatch.setattr(logging.getLogger("eventlog"), "level", logging.CRITICAL + 1)


class InMemory(Lives):
    @initialize()
    def make(self) -> None:
        self.loop = TimelessLoop()

        async def make() -> World:
            return World.in_memory()

        self.world = self.run(make())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            try:
                if hasattr(self, "writers"):
                    self.finish()
            finally:
                left = asyncio.all_tasks(self.loop)
                self.loop.close()
                assert not left


class Losing(InMemory):
    """The server loses the end of a partition's logs, and not its views: as a file of another age gives it."""

    @rule(where=st.integers(0, 1), appends=st.integers(1, 6))
    def lose(self, where: int, appends: int) -> None:
        store: Any = self.world.store
        feed = store.feeds[where]
        base = store._bases[where].seq  # the newest entry is never trimmed: one is left
        for _ in range(min(appends, len(feed) - base - (base > 0))):
            if feed[-1].is_deletion:
                break
            entry = feed.pop()
            if entry.log in self.deleted:
                continue
            kept = store._logs[entry.log.path]
            kept.entries = [one for one in kept.entries if one.version < entry.first]
            if not kept.entries:
                del store._conversations[where][entry.log.path]
            self.writers[entry.log] = self._left(entry.log, len(kept.entries))

    def _left(self, log: LogId, events: int) -> Writer:
        """Goes on with what is left; nobody goes on with the runs that are open there."""
        writer = Writer()
        for event in self.writers[log].events[:events]:
            writer.events.append(event)
            writer.ledger.apply(event)
        return writer


def run_machine(machine: type[Lives], *, examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_in_memory() -> None:
    run_machine(InMemory, examples=max(300, settings.default.max_examples), steps=14)


def test_in_memory_with_losses() -> None:
    run_machine(Losing, examples=max(100, settings.default.max_examples), steps=14)


def test_on_a_server(started: Started) -> None:
    url = started.url("embedded")

    class Served(Lives):
        seconds = 0.5

        @initialize()
        def make(self) -> None:
            self.loop = asyncio.new_event_loop()

            async def make() -> World:
                store = await RedisStore.connect(url, namespace=f"t{uuid4().hex[:12]}", partitions=2, deadline=10)
                return World(EventLog(store))

            self.world = self.run(make())

        def run(self, work: Coroutine[Any, Any, T]) -> T:
            return self.loop.run_until_complete(work)

        def projector(self, **options: Any) -> Any:
            return self.world.projector(*self.projections, lease=0.3, poll=0.05, **options)

        def teardown(self) -> None:
            if hasattr(self, "loop"):
                try:
                    if hasattr(self, "writers"):
                        self.finish()
                finally:
                    self.run(self.world.store.close())
                    self.loop.close()

    run_machine(Served, examples=8, steps=10)
