"""Interleaved measuring, and the table that is printed and kept."""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from eventlog.server import EmbeddedServer
from eventlog.server.check import inspect

Operation = Callable[[], Awaitable[object]]
RESULTS = Path(__file__).parent / "results"


class Contender(NamedTuple):
    """One way of doing the work."""

    name: str
    operation: Operation


class Ratio(NamedTuple):
    """One row: the contender against something else, over all rounds."""

    name: str
    contender: str
    against: str
    ratio: float
    target: str
    met: bool | None
    """None: there is no target, the ratio is for information."""
    median: float
    """Of the contender: microseconds an operation, or operations a second."""
    spread: tuple[float, float]
    """The smallest and the largest ratio of a round."""


async def latency(contenders: Sequence[Contender], *, rounds: int, each: int) -> dict[str, list[float]]:
    """Median microseconds of each contender in each round, contenders interleaved operation by operation."""
    medians: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for _ in range(rounds):
        times: dict[str, list[float]] = {contender.name: [] for contender in contenders}
        for _ in range(each):
            for name, operation in contenders:
                start = time.perf_counter()
                await operation()
                times[name].append(time.perf_counter() - start)
        for name, found in times.items():
            medians[name].append(statistics.median(found) * 1e6)
    return medians


async def throughput(contenders: Sequence[Contender], *, rounds: int, tasks: int, each: int) -> dict[str, list[float]]:
    """Operations a second of each contender in each round, with ``tasks`` at once."""
    rates: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for _ in range(rounds):
        for name, operation in contenders:
            start = time.perf_counter()
            await asyncio.gather(*(_repeat(operation, each) for _ in range(tasks)))
            rates[name].append(tasks * each / (time.perf_counter() - start))
    return rates


async def _repeat(operation: Operation, times: int) -> None:
    for _ in range(times):
        await operation()


def ratio(
    name: str,
    found: dict[str, list[float]],
    contender: str,
    against: str,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> Ratio:
    """The row for two contenders of one measurement."""
    ratios = [ours / theirs for ours, theirs in zip(found[contender], found[against], strict=True)]
    value = statistics.median(ratios)
    target, met = "", None
    if at_most is not None:
        target, met = f"≤ {at_most:g}", value <= at_most
    if at_least is not None:
        target, met = f"≥ {at_least:g}", value >= at_least
    median = statistics.median(found[contender])
    return Ratio(name, contender, against, value, target, met, median, (min(ratios), max(ratios)))


def report(rows: Sequence[Ratio], name: str, server: str) -> None:
    """Print the table, and keep the rows as JSON in ``results/<name>.json``."""
    table = Table(title=f"{name}: {server}, Python {platform.python_version()}, {platform.machine()}")
    for column in ("work", "contender", "against", "ratio", "target", "met", "median", "spread"):
        table.add_column(column)
    for row in rows:
        met = {True: "yes", False: "[bold red]NO[/]", None: ""}[row.met]
        low, high = row.spread
        table.add_row(
            row.name,
            row.contender,
            row.against,
            f"{row.ratio:.2f}×",
            row.target,
            met,
            f"{row.median:,.0f}",
            f"{low:.2f}–{high:.2f}",
        )
    Console(width=160).print(table)
    RESULTS.mkdir(exist_ok=True)
    document = [row._asdict() for row in rows]
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1))


@asynccontextmanager
async def measured_server(url: str | None) -> AsyncIterator[tuple[str, str]]:
    """The URL of the server to measure on, the embedded one by default, and what it is."""
    async with AsyncExitStack() as stack:
        if url is None:
            data = stack.enter_context(tempfile.TemporaryDirectory())
            url = (await stack.enter_async_context(await EmbeddedServer.open(data))).url
        server = await inspect(url)
        yield url, f"{server.name} {server.version}"


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that all benchmarks have."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--url", help="a server to measure on; the embedded one by default")
    return options
