"""A member of the consumer group: its handler takes a moment, and sometimes fails.

python -m chaos.group ORDER
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import anyio

from chaos.chance import chance
from chaos.child import main, opened
from chaos.ledger import Ledger
from chaos.order import GROUP, Order
from chaos.recorded import path_of
from eventlog import Backoff, Delivery

LEASE = 1.5
_MOST = 1_000
"""Deliveries before an event is parked: in a run none is, whatever dies."""


class Refused(Exception):
    """The handler's own failure."""


async def work(order: Order, ledger: Ledger) -> None:
    """Handle events until killed."""
    draw = chance(order.seed, "handler", order.name, order.life)

    async def handle(delivery: Delivery) -> None:
        write: Any = partial(ledger.write, path=path_of(delivery.conversation), v=delivery.version)
        holder = delivery.holder
        write("begin", s=delivery.event.stamp, part=holder.partition, gen=holder.generation, t=time.monotonic_ns())
        if draw.random() < 0.1:
            await anyio.sleep(draw.uniform(0, 0.01))
        if draw.random() < 0.005:
            raise Refused
        write("end", t=time.monotonic_ns())

    async with opened(order) as log:
        await log.group(GROUP).consume(
            handle, lease=LEASE, poll=0.3, batch=50, max_deliveries=_MOST, backoff=Backoff(first=0.02, most=0.2)
        )


if __name__ == "__main__":
    main(work)
