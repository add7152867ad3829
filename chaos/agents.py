"""An agent's process: some hands that work on all conversations side by side, until the run is over.

python -m chaos.agents ORDER
"""

from __future__ import annotations

from pathlib import Path

import anyio

from chaos import deeds
from chaos.chance import chance
from chaos.child import is_over, main, opened
from chaos.hand import Hand
from chaos.ledger import Ledger, read
from chaos.order import CONVERSATIONS, Order
from chaos.recorded import record_appends
from eventlog import Conversation
from eventlog.errors import (
    ConversationDeleted,
    EditRefused,
    OperationReused,
    OutcomeUnknown,
    RunRefused,
    ServerUnavailable,
    VersionConflict,
)

HANDS = 3
Chats = dict[tuple[str, str], Conversation]
HOT = 2
"""So many conversations are worked on more than the others."""
PATIENCE = (0.2, 0.5, 6.0)
"""Seconds that an append may take: after the shorter ones outcomes are unknown."""
_USUAL = (ConversationDeleted, RunRefused, VersionConflict, EditRefused, OutcomeUnknown, ServerUnavailable)
"""What befalls those who share conversations over a bad line."""


async def work(order: Order, ledger: Ledger) -> None:
    """Finish what the life before left, then do what the script says."""
    patience = chance(order.seed, "patience", order.name, order.life).choice(PATIENCE)
    async with opened(order, patience) as log:
        record_appends(log, ledger)
        chats: Chats = {}
        async with anyio.create_task_group() as tasks:
            for number in range(HANDS):
                name = f"{order.name}.{order.life}.{number}"
                hand = Hand(log, ledger, chance(order.seed, "script", name), name)
                tasks.start_soon(_work, order, hand, chats, number)


async def _work(order: Order, hand: Hand, chats: Chats, number: int) -> None:
    if number == 0:
        await _finish(order, hand)
    kinds, weights = list(deeds.DEEDS), list(deeds.DEEDS.values())
    while not is_over(order):
        (deed,) = hand.draw.choices(kinds, weights)
        place = hand.draw.choice(CONVERSATIONS[:HOT] if hand.draw.random() < 0.4 else CONVERSATIONS)
        if place not in chats or hand.draw.random() < 0.1:
            chats[place] = hand.chat(*place)  # else a handle that the other hands may be using
        await _try(hand, deed, chats[place])
        await anyio.sleep(hand.draw.uniform(0, 0.06))


async def _try(hand: Hand, deed: deeds.Deed, chat: Conversation) -> None:
    try:
        await deed(hand, chat)
    except _USUAL as error:
        if isinstance(error, OperationReused):
            raise


async def _finish(order: Order, hand: Hand) -> None:
    """Send again what the life before may have sent and was not told of."""
    lives = [life for life in read(Path(order.home), order.name) if life.life == order.life - 1]
    plans = [line for life in lives for line in life.lines if line["do"] == "plan"][-10:]
    for plan in plans:

        async def again(hand: Hand, chat: Conversation, plan: dict[str, str] = plan) -> None:
            await deeds.post_again(hand, chat, plan["op"], list(plan["marks"]))

        await _try(hand, again, hand.chat(plan["tenant"], plan["conversation"]))


if __name__ == "__main__":
    main(work)
