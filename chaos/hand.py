"""One of an agent's hands: its chance, its names and texts, and how it writes down what it was told."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

from chaos.ledger import Ledger
from chaos.recorded import path_of
from eventlog import EventLog
from eventlog.conversation import Conversation
from eventlog.errors import OutcomeUnknown
from eventlog.messages import Json, Message
from eventlog.store.port import Appended

Making = Callable[[], Coroutine[Any, Any, Appended | None]]
_AGAIN = 3
"""How often an operation of which the outcome is unknown is sent again."""


class Hand:
    """Does one thing at a time."""

    def __init__(self, log: EventLog, ledger: Ledger, draw: Random, name: str) -> None:
        self.log = log
        self.ledger = ledger
        self.draw = draw
        self.name = name
        self.done: deque[tuple[str, str, str, list[str]]] = deque(maxlen=20)
        """Posts that may be repeated: tenant, conversation, operation, marks."""
        self._count = 0

    def chat(self, tenant: str, conversation: str) -> Conversation:
        """A fresh handle."""
        return self.log.tenant(tenant).conversation(conversation)

    def mark(self) -> str:
        """A text, an id or a name that nobody else gives."""
        self._count += 1
        return f"{self.name}.{self._count}"

    def text(self) -> str:
        """Something to say; it begins with a mark."""
        size = 0 if self.draw.random() < 0.95 else self.draw.randrange(20_000)
        return f"{self.mark()} " + "word " * (size // 5)

    async def told(self, chat: Conversation, marks: Sequence[str], make: Making) -> Appended | None:
        """Append, send again what is unknown, and write down what came of it."""
        for again in range(_AGAIN + 1):
            try:
                outcome = await make()
            except OutcomeUnknown:
                if again == _AGAIN:
                    raise
                continue
            if outcome is not None:
                last = outcome.cursor
                self.ledger.write(
                    "told",
                    op=outcome.operation_id,
                    path=path_of(chat.log),
                    first=outcome.first,
                    last=last.version,
                    stamp=last.stamp,
                    marks=list(marks),
                )
            return outcome
        return None

    def saw(self, chat: Conversation, version: int, stamp: int, source: str, view: dict[str, Json]) -> None:
        """Write a history down that was read."""
        self.ledger.write(
            "view",
            path=path_of(chat.log),
            version=version,
            stamp=stamp,
            source=source,
            messages=shown(view["messages"]),
            open=[call["version"] for call in view["open_calls"]] if "open_calls" in view else None,
        )


def shown(messages: Sequence[dict[str, Json]]) -> list[list[Json]]:
    """Messages as they are written down: role, versions, parts."""
    return [[message["role"], message["versions"], message["parts"]] for message in messages]


def mark_of(text: str) -> str:
    """What a text begins with."""
    return text.partition(" ")[0] + " "


def marks_of(messages: Sequence[Message]) -> list[str]:
    """The mark of each event that will record these: texts, calls by their names."""
    marks = []
    for message in messages:
        for part in message.parts:
            marks.append(str(part["name"]) if part["type"] == "tool_call" else mark_of(str(part["content"])))
    return marks
