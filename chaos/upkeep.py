"""What operators do beside projectors: rebuild a view, roll back, drop a generation that is not read, trim feeds."""

from __future__ import annotations

from random import Random

import anyio

from chaos.child import is_over
from chaos.order import Order
from eventlog import EventLog
from eventlog.errors import GroupGone, InvalidInput, ViewMissing
from eventlog.housekeeping import trim_feeds
from projections import status
from projections.live import Live
from projections.projector import Projector
from projections.registry import Record
from projections.views.built_in import BUILT_IN

KEEP = 600
"""Entries of each feed that stay: so many come in some twenty seconds, and no follower is away for so long."""


async def keep_up(order: Order, log: EventLog, draw: Random) -> None:
    """Something every few seconds, until the faults are over. What another does at the same time may be in the way."""
    live = Live.of(log.store)
    while True:
        await anyio.sleep(draw.uniform(1, 6))
        if is_over(order):
            return
        name = draw.choice([projection.name for projection in BUILT_IN])
        how = draw.random()
        try:
            if how < 0.3:
                with anyio.move_on_after(draw.uniform(0.2, 6)):
                    await Projector(log, BUILT_IN, lease=1.5, poll=0.5, batch=100).rebuild(name)
            elif how < 0.4:
                await status.rollback(live, name)
            elif how < 0.55:
                await trim_feeds(log.store, live.readers, KEEP)
            else:
                record = Record.unpack(await live.views.record(name))
                others = [one.number for one in record.generations if one.number != record.live]
                if others:
                    await status.drop(live, name, draw.choice(others))
        except (InvalidInput, GroupGone, ViewMissing):
            continue
