"""A projector in a process of its own, which may end itself by SIGKILL at a step: ``python -m … child ORDER``."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, TypedDict

import anyio

from eventlog import EventLog
from projections import partition, syncing
from projections.partition import Told
from projections.projector import Projector
from tests.projections.crashes.kinds import made


class Order(TypedDict, total=False):
    """Where and what to run."""

    url: str
    namespace: str
    kinds: list[str]
    """The projections, as ``kinds.made`` reads them."""
    work: str
    """``run``, ``catch_up``, or ``rebuild``: all of them, one after the other."""
    options: dict[str, Any]
    """Of the projector."""
    small: bool
    """Pages of scans and pieces of logs are small, so that there are many."""
    dies_at: tuple[str, int] | None
    """The name of a step, and at which time of it the process kills itself."""
    stops_at: tuple[str, int] | None
    """The same for standing still: by SIGSTOP."""
    killed_after: float | None
    """After how many seconds of work it is killed, if it still lives. The nursery does that."""
    pause: float
    """How many seconds each step is held up, so that others run meanwhile."""
    steps: str
    """The file to which steps are written, a line each: projection, generation, partition, step."""


def teller(order: Order) -> Callable[[Told], None]:
    """What hears of the steps."""
    counts: Counter[str] = Counter()
    ends = {signal.SIGKILL: order.get("dies_at"), signal.SIGSTOP: order.get("stops_at")}
    steps = order.get("steps")

    def told(step: Told) -> None:
        counts[step.step] += 1
        if steps:
            with open(steps, "a") as file:  # one write each, whole whoever is killed
                file.write(f"{step.view.projection} {step.view.generation} {step.partition} {step.step}\n")
        for kind, place in ends.items():
            if place is not None and (step.step, counts[step.step]) == tuple(place):
                os.kill(os.getpid(), kind)
        time.sleep(order.get("pause", 0.0))

    return told


async def work(order: Order, word: int | None = None) -> None:
    """Do what is ordered. It says a word, into this file, before and after."""
    if order.get("small"):
        partition._SCANNED = 3
        syncing._FIRST_PAGE = 5
        syncing._PIECE_EVENTS = 10
    async with EventLog.open(order["url"], namespace=order["namespace"]) as log:
        projections = [made(kind) for kind in order["kinds"]]
        projector = Projector(log, projections, told=teller(order), **order.get("options", {}))
        if word is not None:
            os.write(word, b".")
        match order["work"]:
            case "run":
                await projector.run()
            case "catch_up":
                await projector.catch_up()
            case "rebuild":
                for projection in projections:
                    await projector.rebuild(projection.name)
        if word is not None:
            os.write(word, b".")


if __name__ == "__main__":
    anyio.run(work, json.loads(sys.argv[1]))
