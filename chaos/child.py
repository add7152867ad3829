"""How every process of a run begins and ends: its order, its clock, its ledger, and that it never outlives the run."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from chaos import clock
from chaos.ledger import Ledger
from chaos.order import NAMESPACE, PARTITIONS, Order
from eventlog import EventLog
from eventlog.errors import LogClosed, ServerError

DEADLINE = 6.0
"""Seconds that an operation may take, retries included, unless it is said otherwise."""
_PR_SET_PDEATHSIG = 1


def main(work: Callable[[Order, Ledger], Awaitable[None]]) -> None:
    """Do the work that the first argument orders. Exit code 3: the server was away too long; 4: something strange."""
    order = Order.read(sys.argv[1])
    _end_with(order.parent)
    clock.shift(order.shift, order.jump)
    ledger = Ledger(Path(order.home), order.name, order.life)
    code = 0
    try:
        anyio.run(work, order, ledger)
    except Exception as error:
        if all(isinstance(one, ServerError | LogClosed) for one in _all(error)):
            ledger.write("left", error=repr(error)[:1000])
            code = 3
        else:
            told = ["".join(traceback.format_exception(one))[-3000:] for one in _all(error)]
            ledger.write("strange", error="\n".join(told))
            code = 4
    os._exit(code)


@asynccontextmanager
async def opened(order: Order, deadline: float = DEADLINE) -> AsyncIterator[EventLog]:
    """The log, through the proxy; waited for while the server is away."""
    with anyio.fail_after(60):
        while True:
            try:
                opening = EventLog.open(
                    order.url,
                    namespace=NAMESPACE,
                    partitions=PARTITIONS,
                    deadline=deadline,
                    durability=order.durability,
                )
                log = await opening.__aenter__()
                break
            except ServerError:
                await anyio.sleep(0.1)
    try:
        yield log
    finally:
        await opening.__aexit__(None, None, None)


def _all(error: BaseException) -> list[BaseException]:
    """The errors of a group, or the one."""
    if isinstance(error, BaseExceptionGroup):
        return [inner for one in error.exceptions for inner in _all(one)]
    return [error]


def is_over(order: Order) -> bool:
    """Whether agents shall end."""
    return (Path(order.home) / "stop").exists()


def _end_with(parent: int) -> None:
    """Be killed when the run is; where the system cannot do that, the run kills by process id."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
