"""A projector's process: it keeps all built-in views, while some are rebuilt, rolled back and dropped.

python -m chaos.projector ORDER
"""

from __future__ import annotations

import anyio

from chaos.chance import chance
from chaos.child import main, opened
from chaos.ledger import Ledger
from chaos.order import Order
from chaos.upkeep import keep_up
from projections.projector import Projector
from projections.views.built_in import BUILT_IN


async def work(order: Order, ledger: Ledger) -> None:
    """Keep them until killed."""
    async with opened(order) as log, anyio.create_task_group() as tasks:
        tasks.start_soon(keep_up, order, log, chance(order.seed, "upkeep", order.name, order.life))
        await Projector(log, BUILT_IN, lease=1.5, poll=0.5, batch=100).run()


if __name__ == "__main__":
    main(work)
