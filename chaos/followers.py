"""A follower's process: it follows conversations and a tenant, and goes on after a kill from the cursor it wrote down.

python -m chaos.followers ORDER
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio

from chaos.chance import chance
from chaos.child import main, opened
from chaos.hand import Hand
from chaos.ledger import Ledger, Line, read
from chaos.order import CONVERSATIONS, TENANTS, Order
from chaos.recorded import path_of
from eventlog import Conversation, EventLog, Message
from eventlog.errors import FollowerTooSlow, ServerUnavailable
from eventlog.identity import LogId
from eventlog.subscription import Kind
from projections import following
from projections.view import View

POLL = 2.0


async def work(order: Order, ledger: Ledger) -> None:
    """Follow one tenant, every second conversation from the start, and one from now on."""
    known: dict[str, str] = {}
    for life in read(Path(order.home), order.name):
        for line in life.lines:
            if line["do"] in ("began", "saw"):
                known[line["who"]] = line["cursor"]
    async with opened(order) as log, anyio.create_task_group() as tasks:
        follower = _Follower(order, log, ledger, known)
        tasks.start_soon(follower.tenant, TENANTS[order.number % len(TENANTS)])
        for number, place in enumerate(CONVERSATIONS):
            if number % 2 == order.number % 2:
                tasks.start_soon(follower.conversation, LogId(*place), "start")
        tasks.start_soon(follower.conversation, LogId(*CONVERSATIONS[order.number]), "now")
        hand = Hand(log, ledger, chance(order.seed, "history", order.name, order.life), order.name)
        tasks.start_soon(_follow_history, hand, hand.chat(*CONVERSATIONS[order.number]))


async def _follow_history(hand: Hand, chat: Conversation) -> None:
    """Keep a history by its changes, and write it down now and then; begin anew when the server was away."""
    while True:
        messages: tuple[Message, ...] = ()
        try:
            async with aclosing(following.follow(chat, poll=POLL)) as changes:
                async for change in changes:
                    messages = change.messages if isinstance(change, View) else following.apply(messages, change)
                    if hand.draw.random() < 0.02:
                        shown = [message.as_json() for message in messages]
                        hand.saw(chat, change.version, change.cursor.stamp, "follow", {"messages": shown})
        except ServerUnavailable:
            await anyio.sleep(0.2)


class _Follower:
    def __init__(self, order: Order, log: EventLog, ledger: Ledger, known: dict[str, str]) -> None:
        self._name = order.name
        self._log = log
        self._ledger = ledger
        self._known = known

    async def tenant(self, tenant: str) -> None:
        await self._follow(
            f"{self._name} tenant {tenant}",
            "start",
            lambda after: self._log.tenant(tenant).follow(after, poll=POLL),
            tenant,
        )

    async def conversation(self, log: LogId, start: str) -> None:
        chat = self._log.tenant(log.tenant).conversation(log.conversation)
        who = f"{self._name} {path_of(log)} from {start}"
        await self._follow(who, start, lambda after: chat.follow(after, poll=POLL), log.tenant)

    async def _follow(self, who: str, start: str, follow: Callable[[Any], Any], tenant: str) -> None:
        """Write every event down before the next one is asked for."""
        if start == "start" and who not in self._known:
            self._note(who, "start", {"do": "began", "who": who, "at": "start", "cursor": "start"})
        while True:
            try:
                async with follow(self._known.get(who, start)) as items:
                    async for item in items:
                        self._take(who, tenant, item)
            except FollowerTooSlow as slow:
                self._known[who] = str(slow.cursor)

    def _take(self, who: str, tenant: str, item: Any) -> None:
        cursor, lines = str(item.cursor), []
        if who not in self._known:
            # It begins behind the first cursor; or, when something came in at once, with that event.
            at = item.cursor.version - (item.kind is Kind.EVENT)
            lines.append({"do": "began", "who": who, "at": at, "cursor": cursor})
        if item.kind is Kind.EVENT:
            event, path = item.event, path_of(LogId(tenant, item.conversation))
            lines.append(
                {"do": "saw", "who": who, "path": path, "v": event.version, "s": event.stamp, "cursor": cursor}
            )
        if lines:
            self._note(who, cursor, *lines)

    def _note(self, who: str, cursor: str, *lines: Line) -> None:
        self._ledger.write_all(*lines)
        self._known[who] = cursor


if __name__ == "__main__":
    main(work)
