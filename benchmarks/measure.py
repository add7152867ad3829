"""Interleaved measuring: contenders take turns, so that what disturbs one disturbs all."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple

Operation = Callable[[], Awaitable[object]]


class Contender(NamedTuple):
    """One way of doing the work."""

    name: str
    operation: Operation
    before: Operation | None = None
    """What puts things back before each operation; its time does not count."""


async def latency(contenders: Sequence[Contender], *, rounds: int, each: int) -> dict[str, list[float]]:
    """Median microseconds of each contender in each round, contenders interleaved operation by operation."""
    medians: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for contender in contenders:  # connections made, caches warm
        await _timed(contender)
    for _ in range(rounds):
        times: dict[str, list[float]] = {contender.name: [] for contender in contenders}
        for _ in range(each):
            for contender in contenders:
                times[contender.name].append(await _timed(contender))
        for name, found in times.items():
            medians[name].append(statistics.median(found) * 1e6)
    return medians


async def _timed(contender: Contender) -> float:
    if contender.before is not None:
        await contender.before()
    return await seconds(contender.operation)


async def throughput(contenders: Sequence[Contender], *, rounds: int, tasks: int, each: int) -> dict[str, list[float]]:
    """Operations a second of each contender in each round, with ``tasks`` at once."""
    rates: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for _ in range(rounds):
        for name, operation, _before in contenders:
            took = await seconds(partial(_at_once, operation, tasks, each))
            rates[name].append(tasks * each / took)
    return rates


async def _at_once(operation: Operation, tasks: int, each: int) -> None:
    await asyncio.gather(*(_repeat(operation, each) for _ in range(tasks)))


async def _repeat(operation: Operation, times: int) -> None:
    for _ in range(times):
        await operation()


async def seconds(work: Operation) -> float:
    """How long it took."""
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start
