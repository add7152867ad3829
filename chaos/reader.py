"""A process that reads every history once when all has settled, and lets the product verify its views.

python -m chaos.reader ORDER
"""

from __future__ import annotations

from chaos.chance import chance
from chaos.child import main, opened
from chaos.hand import Hand
from chaos.ledger import Ledger
from chaos.order import CONVERSATIONS, Order
from projections import history
from projections.live import Live
from projections.verifying import Verifying
from projections.views.built_in import BUILT_IN


async def work(order: Order, ledger: Ledger) -> None:
    """Read by the view that is kept and by the whole log."""
    async with opened(order) as log:
        hand = Hand(log, ledger, chance(order.seed, order.name), order.name)
        for place in CONVERSATIONS:
            chat = hand.chat(*place)
            kept, folded = await history.load(chat), await history.load(chat, at=(await chat.head()).last.version)
            for source, view in (("load", kept), ("at", folded)):
                hand.saw(chat, view.version, view.cursor.stamp, source, view.as_json())
            if kept.as_json() != folded.as_json():
                ledger.write("differs", told=f"{place}: {kept.as_json()} {folded.as_json()}")
        live = Live.of(log.store)
        for projection in BUILT_IN:
            verifying = Verifying(live, projection, await live.view(projection))
            async for difference in verifying.differences():
                ledger.write("differs", told=f"{projection.name}: {difference}")


if __name__ == "__main__":
    main(work)
