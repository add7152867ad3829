"""All rows in one run on one server: printed as one table, and kept as JSON.

    python -m benchmarks [MODULE ...] [--quick] [--rounds N] [--url URL]
    python -m benchmarks --markdown

A whole run of at least 7 rounds is kept in ``results/latest.json``; one of some modules or fewer rounds in
``results/partial.json``, and a quick one, which measures little and proves nothing, in ``results/quick.json``.
``--markdown`` prints the dated table of the last whole run for the README.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.bench import FULL, QUICK, Size, opened
from benchmarks.ratio import Ratio
from benchmarks.table import About, from_json, markdown, summary, table, to_json

MODULES = ("append", "history", "follow", "groups", "projections", "agent_framework", "openai_agents")
RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("redis", "hiredis", "orjson", "openai-agents", "agent-framework-core", "agent-framework-redis")


async def run(modules: Sequence[str], size: Size, url: str | None, say: Console) -> tuple[list[Ratio], About]:
    """Measure these modules, one after the other."""
    works = [importlib.import_module(f"benchmarks.{name}") for name in modules]
    load, begun, rows = os.getloadavg()[0], time.monotonic(), list[Ratio]()
    async with opened(url, size) as bench:
        for name, work in zip(modules, works, strict=True):
            start = time.monotonic()
            rows += await work.measure(bench)
            await bench.clear()
            say.print(f"{name}: {time.monotonic() - start:.0f} s")
        server = bench.server
    versions = {"Python": platform.python_version(), **{name: importlib.metadata.version(name) for name in _PACKAGES}}
    machine = f"{os.cpu_count()} cores {platform.machine()}"
    date = time.strftime("%Y-%m-%d")
    return rows, About(date, machine, server, versions, size.rounds, time.monotonic() - begun, load)


def kept_as(modules: Sequence[str], size: Size) -> str:
    """The name of the results: only a whole run may stand for the product."""
    if size.share < FULL.share:
        return "quick"
    return "latest" if set(modules) == set(MODULES) and size.rounds >= FULL.rounds else "partial"


def keep(name: str, rows: Sequence[Ratio], about: About) -> None:
    """As ``results/<name>.json``, with ``<name>.about.json`` beside it."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(to_json(rows))
    (RESULTS / f"{name}.about.json").write_text(json.dumps(about._asdict(), indent=1) + "\n")


def kept(name: str) -> tuple[list[Ratio], About]:
    """What ``keep`` wrote."""
    about = About(**json.loads((RESULTS / f"{name}.about.json").read_text()))
    return from_json((RESULTS / f"{name}.json").read_text()), about


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line says; exits where it makes no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of {', '.join(MODULES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it runs")
    parser.add_argument("--rounds", type=int, help=f"{FULL.rounds} by default; quick: {QUICK.rounds}")
    parser.add_argument("--url", help="a server to measure on; an embedded one by default")
    parser.add_argument("--markdown", action="store_true", help="print the dated table of the last whole run")
    chosen = parser.parse_args(arguments)
    for name in chosen.modules:
        if name not in MODULES:
            parser.error(f"{name}: no such module: choose of {', '.join(MODULES)}")
    if chosen.rounds is not None and chosen.rounds < 1:
        parser.error(f"--rounds {chosen.rounds}: at least 1")
    return chosen


def main() -> None:
    chosen = options()
    if chosen.markdown:
        if not (RESULTS / "latest.json").exists():
            sys.exit("no whole run is kept yet: `python -m benchmarks` makes one")
        print(markdown(*kept("latest")), end="")
        return
    size = QUICK if chosen.quick else FULL
    if chosen.rounds is not None:
        size = Size(chosen.rounds, size.share)
    modules = [name for name in MODULES if name in chosen.modules] or list(MODULES)
    try:
        rows, about = asyncio.run(run(modules, size, chosen.url, Console(stderr=True)))
    except ModuleNotFoundError as missing:
        sys.exit(f"{missing.name} is not installed: `make bench` makes an environment that has all contenders")
    name = kept_as(modules, size)
    keep(name, rows, about)
    console = Console(width=max(180, Console().width))
    doubt = " (quick: too little to judge by)" if chosen.quick else ""
    console.print(table(rows, about.title() + doubt))
    console.print(about.line(), summary(rows), f"Kept in benchmarks/results/{name}.json.", sep="\n", highlight=False)


if __name__ == "__main__":
    main()
