"""Projectors in processes of their own, and servers that are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import anyio
import pytest

from eventlog import EventLog
from projections.progress import Scan
from tests.loss.conftest import executable, pytest_generate_tests  # noqa: F401  the same servers
from tests.projections.crashes.checks import Raw
from tests.projections.crashes.child import Order
from tests.projections.crashes.kinds import made
from tests.projections.crashes.lives import Lives

ROOT = Path(__file__).parents[3]
PARTITIONS = 2
LEASE = 0.4
"""Short, so that nobody waits long for the end of a killed process's lease."""
OPTIONS: dict[str, Any] = {"lease": LEASE, "poll": 0.1, "batch": 7}


class Ended(NamedTuple):
    """How a projector ended."""

    signal: int
    """The number of the signal that ended it, or 0."""
    code: int
    seconds: float
    """How long it worked."""


class Nursery:
    """Where projectors come from, one after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, order: Order) -> Ended:
        """Let a projector live."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        ended = Ended(**json.loads(self._process.stdout.readline()))
        assert ended.code == 0, "the projector failed; its stderr tells"
        return ended


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.projections.crashes.nursery"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield Nursery(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=30)


class Scene(NamedTuple):
    """A log of its own on a server, what is written to it, and how it is looked at."""

    log: EventLog
    lives: Lives
    raw: Raw
    url: str
    namespace: str

    async def caught_up(self, kinds: Iterable[str], *, seconds: float = 60) -> None:
        """Wait until projectors elsewhere have come to the logs' ends."""
        with anyio.fail_after(seconds):
            while not await self.have_passed(kinds):
                await anyio.sleep(0.05)

    async def have_passed(self, kinds: Iterable[str]) -> bool:
        """Whether all live views have come to the feeds' ends, as they are now."""
        live = self.raw.live
        for projection in map(made, kinds):
            live.forget(projection.name)
            view = await live.find(projection)
            if view is None:
                return False
            for partition in range(live.store.partitions):
                place = await live.readers.place(view.group, partition)
                mark = place.mark or (await live.readers.settings(view.group)).mark(partition)
                newest = await self.raw.client.xrevrange(self.raw.keys.feed(partition), count=1)
                end = (int(newest[0][0].partition(b"-")[2]), int(newest[0][1][b"s"])) if newest else (0, 0)
                if mark != end or not Scan.parse(await live.views.progress(view, partition)).done:
                    return False
        return True

    def order(self, kinds: list[str] | tuple[str, ...], work: str, **more: Any) -> Order:
        options = {**OPTIONS, **more.pop("options", {})}
        where = {"url": self.url, "namespace": self.namespace, "kinds": list(kinds), "work": work}
        return {"small": True, **where, "options": options, **more}  # type: ignore[typeddict-item]


@asynccontextmanager
async def scene(url: str, seed: int, *, conversations: int = 8, partitions: int = PARTITIONS) -> AsyncIterator[Scene]:
    """A new one."""
    namespace = f"t{uuid4().hex[:12]}"
    async with EventLog.open(url, namespace=namespace, partitions=partitions) as log:
        raw = Raw(log, url)
        try:
            yield Scene(log, Lives(log, seed, conversations), raw, url, namespace)
        finally:
            await raw.client.aclose()


class Processes:
    """Projectors side by side; each ends with the test."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, order: Order, name: str = "") -> subprocess.Popen[bytes]:
        """Its stderr is in ``home``, under its name."""
        with (self.home / f"{name or len(self.started)}.err").open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.projections.crashes.child", json.dumps(order)],
                cwd=ROOT,
                stderr=err,
                env=os.environ,
            )
        self.started.append(process)
        return process

    def end(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    found = Processes(tmp_path)
    try:
        yield found
    finally:
        found.end()
