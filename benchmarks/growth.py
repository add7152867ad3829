"""How cost grows: with the length of a history, and the numbers of conversations, followers and tenants.

    python -m benchmarks.growth [DIMENSION ...] [--quick] [--seconds N] [--url URL]

At each size: appending an event of 1 KB, loading the newest 50 messages with the view, the delay of a live
tail, and opening a log and reading a conversation's head; medians in microseconds, each with its ratio to
the smallest size. And the server's memory for each event, or for each idle conversation of one event: of
the log with all that belongs to it, and of the history view beside it. A history of 1,000 and more grows by some 300
events while it is measured. A dimension whose time is used up, ``--seconds`` for each, is left at the size it
has reached, and that is said.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.bench import FULL, QUICK, Bench, opened
from benchmarks.follow import Ours
from benchmarks.measure import Contender, latency
from benchmarks.workload import body, keep_history, post
from eventlog import Conversation, Draft, EventLog
from eventlog.store.redis.store import RedisStore
from projections import history
from projections.live import Live
from projections.views.history import HISTORY

DIMENSIONS = {
    "history": (10, 100, 1_000, 10_000, 100_000),
    "conversations": (10, 100, 1_000, 10_000, 100_000),
    "followers": (1, 10, 100, 1_000, 10_000),
    "tenants": (1, 10, 100, 1_000),
}
UNITS = {"history": "an event", "conversations": "a conversation"}
"""Whose memory is told."""
ENOUGH = 1_000
"""Units from which on memory is told: below, what else moves in the server is as large."""
SHORT = 100
"""Events up to which a history is made anew for each append: it would grow many times over."""
COSTS = APPEND, LOAD, TAIL, OPEN = "append", "load last 50", "live tail", "open"
CHATS_A_TENANT = 10
SECONDS = 110.0


class Point(NamedTuple):
    """What things cost at one size of one dimension."""

    dimension: str
    size: int
    costs: dict[str, float]
    """Microseconds."""
    log: float | None
    """Bytes of the server's memory for each event or conversation that was added last, without the view."""
    view: float | None
    """Bytes of the history view for each, beside that."""


class Grown:
    """A log that grows in one dimension."""

    def __init__(self, bench: Bench, log: EventLog, dimension: str) -> None:
        self._bench = bench
        self._log = log
        self._dimension = dimension
        self._size = 0
        self._live = Live.of(log.store)
        self._drafts = [Draft("message-added", dict(body()))]
        self._tenant = log.tenant("bench")
        self._chat = self._written = self._tenant.conversation("measured")

    async def begin(self) -> None:
        """Other dimensions than history are measured on a conversation of 100 events."""
        if self._dimension != "history":
            await self._post(100)

    async def measure(self, size: int) -> Point:
        """Grow to this size, and see what things cost."""
        before = await self._memory()
        added = await self._grow(size)
        taken = await self._memory() - before
        await keep_history(self._log)
        self._size = size
        times = await self._times(size)
        tells = self._dimension in UNITS and size >= ENOUGH
        view = await self._live.views.size(await self._live.view(HISTORY)) if tells else 0
        return Point(
            self._dimension,
            size,
            {name: statistics.median(medians) for name, medians in times.items()},
            taken / added if tells else None,
            view / size if tells else None,
        )

    async def _times(self, size: int) -> dict[str, list[float]]:
        followed = [self._chat]
        if self._is_short():
            followed = [await self._anew()]
        if self._dimension == "followers":
            followed = [self._numbered(number) for number in range(size)]
        rounds, each = self._bench.size.rounds, self._bench.size.of(20, 5)
        reads = [Contender(LOAD, lambda: history.load(self._chat, last=50)), Contender(OPEN, self._open)]
        async with Ours(followed) as tail:
            writes = [Contender(APPEND, self._append, self._renew), Contender(TAIL, tail.event)]
            return {  # reads first: what is written waits for the view
                **await latency(reads, rounds=rounds, each=each),
                **await latency(writes, rounds=rounds, each=each),
            }

    async def _append(self) -> None:
        await self._written.append(*self._drafts)

    def _is_short(self) -> bool:
        return self._dimension == "history" and self._size <= SHORT

    async def _renew(self) -> None:
        self._written = await self._anew() if self._is_short() else self._chat

    async def _anew(self) -> Conversation:
        """A history of this size to write to: a short one would grow many times over."""
        chat = self._tenant.conversation(self._bench.name())
        await post(chat, self._size)
        return chat

    async def _grow(self, size: int) -> int:
        """Grow to this size; how many were added."""
        if self._dimension == "history":
            missing = size - (await self._chat.head()).last.version
            await self._post(missing)
            return missing
        a_unit = CHATS_A_TENANT if self._dimension == "tenants" else 1
        first, end = self._size * a_unit, size * a_unit
        for start in range(first, end, 500):
            some = range(start, min(start + 500, end))
            await asyncio.gather(*(self._numbered(number).append(*self._drafts) for number in some))
        return size - self._size

    async def _post(self, events: int) -> None:
        """One an append, as those that are measured are, so that the newest 50 are alike at each size."""
        for start in range(0, events, 500):
            await asyncio.gather(*(post(self._chat, 1) for _ in range(min(500, events - start))))

    def _numbered(self, number: int) -> Conversation:
        if self._dimension == "tenants":
            return self._log.tenant(f"t{number // CHATS_A_TENANT}").conversation(f"c{number}")
        return self._tenant.conversation(f"c{number}")

    async def _open(self) -> None:
        assert isinstance(self._log.store, RedisStore)
        async with EventLog.open(self._bench.url, namespace=self._log.store._keys.namespace) as log:
            await log.tenant(self._chat.tenant).conversation(self._chat.id).head()

    async def _memory(self) -> float:
        """Bytes of the server, without those of connections and of the append-only file's buffer."""
        async with self._bench.client() as client:
            info = await client.info("memory")
        return float(info["used_memory"] - info["mem_clients_normal"] - info["mem_aof_buffer"])


async def grow(bench: Bench, dimension: str, seconds: float) -> AsyncIterator[Point]:
    """The points of one dimension; raises ``TimeoutError`` when the time is used up."""
    until = asyncio.get_running_loop().time() + seconds
    async with bench.log() as log:
        grown = Grown(bench, log, dimension)
        await grown.begin()
        for size in sorted({bench.size.of(size, min(size, 10)) for size in DIMENSIONS[dimension]}):
            async with asyncio.timeout_at(until):
                point = await grown.measure(size)
            yield point


def shown(points: Sequence[Point]) -> Table:
    """The table to print, each cost with its ratio to that of the dimension's smallest size."""
    made = Table()
    for column in ("dimension", "size"):
        made.add_column(column, justify="right" if column == "size" else "left")
    for column in (*COSTS, "log, bytes", "view, bytes"):
        made.add_column(f"{column}, µs" if column in COSTS else column, justify="right")
    first: dict[str, Point] = {}
    for point in points:
        smallest = first.setdefault(point.dimension, point)
        costs = [f"{point.costs[name]:,.0f} ({point.costs[name] / smallest.costs[name]:.2f}×)" for name in COSTS]
        unit = UNITS.get(point.dimension)
        memory = ["" if found is None else f"{found:,.0f} {unit}" for found in (point.log, point.view)]
        made.add_row(point.dimension, f"{point.size:,}", *costs, *memory)
    return made


async def run(dimensions: Sequence[str], chosen: argparse.Namespace, console: Console) -> None:
    """Measure and print."""
    points: list[Point] = []
    stopped: list[str] = []
    async with opened(chosen.url, QUICK if chosen.quick else FULL) as bench:
        for dimension in dimensions:
            start = time.monotonic()
            try:
                async for point in grow(bench, dimension, chosen.seconds):
                    points.append(point)
                    console.print(f"{dimension}: {point.size:,}, {time.monotonic() - start:.0f} s")
            except TimeoutError:
                stopped.append(f"{dimension}: stopped after {chosen.seconds:g} s; --seconds gives it more")
            await bench.clear()
        server = bench.server
    console.print(f"How cost grows: {time.strftime('%Y-%m-%d')}, {server}, Python {platform.python_version()}")
    console.print(shown(points), *stopped, sep="\n", highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.growth", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "dimensions", nargs="*", metavar="DIMENSION", help=f"of {', '.join(DIMENSIONS)}; all by default"
    )
    parser.add_argument("--quick", action="store_true", help="a fiftieth of each size, to see that it runs")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"for each dimension, {SECONDS:g} by default")
    parser.add_argument("--url", help="a server to measure on; an embedded one by default")
    chosen = parser.parse_args()
    for name in chosen.dimensions:
        if name not in DIMENSIONS:
            parser.error(f"{name}: no such dimension: choose of {', '.join(DIMENSIONS)}")
    dimensions = [name for name in DIMENSIONS if name in chosen.dimensions] or list(DIMENSIONS)
    asyncio.run(run(dimensions, chosen, Console(width=max(150, Console().width))))


if __name__ == "__main__":
    main()
