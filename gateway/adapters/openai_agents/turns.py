"""From the items of one ``add_items`` to the events of one operation. Pure.

Items tell by their place which service call they belong to: what the model said in one stretch is
the output of one call, and that call sent every input that stood before it and was not sent yet.
A recorded run knows more: which calls it made, and what they cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from eventlog.events import Draft
from gateway.adapters.openai_agents.items import draft_of, draft_of_text
from gateway.adapters.openai_agents.kinds import Item, is_output

BY_POSITION = {"openai-agents": "by-position"}
"""The labels of a run that was told from the place of its items alone."""


@dataclass(slots=True)
class Call:
    """A service call that went out."""

    number: int
    started: dict[str, Any] = field(default_factory=dict)
    """What its ``service-call-started`` tells besides what it sends."""
    completed: dict[str, Any] = field(default_factory=dict)
    """The data of its ``service-call-completed``."""
    reply: Sequence[Item] = ()
    """What it replied, as far as that is known before it is added."""
    sends: list[int] | None = None
    """The versions of the inputs it carries; None while its start is not recorded."""


@dataclass(slots=True)
class Operation:
    """The events of one append, as they come to be laid out."""

    id: str
    last: int
    """The version that stands before them."""
    unsent: list[int]
    """The versions of the inputs that no completed service call has carried."""
    run: str = ""
    number: int = 0
    """The number of the run's newest service call."""
    drafts: list[Draft] = field(default_factory=list)
    items: list[tuple[int, Item | str]] = field(default_factory=list)
    """Each item and its version."""
    anew: bool = False
    """Everything that stood before is taken back first."""

    def clear(self) -> None:
        """Take back everything that stands before. Nothing else may have been laid out yet."""
        self.drafts.append(Draft("history-rewound", {"to": 0}))
        self.unsent, self.anew = [], True

    def add(self, items: Sequence[Item | str], calls: Sequence[Call] = ()) -> None:
        """Lay out these items. ``calls`` are those that wait for their outputs, the oldest first."""
        stretches = _stretches(items)
        waiting = list(calls)
        to_come = sum(is_out for is_out, _ in stretches)
        for is_out, stretch in stretches:
            if not is_out:
                for item in stretch:
                    self.unsent.append(self._item(item, None))
                continue
            while len(waiting) > to_come:  # a reply of which nothing was kept
                self.complete(waiting.pop(0))
            call = waiting.pop(0) if len(waiting) == to_come else self.next_call()
            if call.sends is None:
                self.start(call)
            for item in stretch:
                self._item(item, call.number)
            self.complete(call)
            to_come -= 1

    def put(self, kind: str, data: dict[str, Any], call: int | None = None) -> int:
        """Add an event; return the version it will have."""
        self.drafts.append(Draft(kind, data, run=self.run, call=call))
        return self.last + len(self.drafts)

    def next_call(self) -> Call:
        """Another service call of the run."""
        self.number += 1
        return Call(self.number)

    def start(self, call: Call) -> None:
        """The call goes out, with every input that was not sent yet."""
        call.sends = list(self.unsent)
        self.put("service-call-started", {"sends": call.sends, "continues": None, **call.started}, call.number)

    def complete(self, call: Call) -> None:
        """The call has replied, with the outputs laid out before."""
        if call.sends is None:
            self.start(call)
        self.put("service-call-completed", call.completed, call.number)
        self.unsent = [version for version in self.unsent if version not in (call.sends or ())]

    def fail(self, call: Call, error: str, outcome: Literal["refused", "unknown"]) -> None:
        """The call did not reply, or its reply was not kept: then it stands as its partial output."""
        if call.sends is None:
            self.start(call)
        data: dict[str, Any] = {"error": error, "outcome": outcome}
        if call.reply:
            data["partial"] = [{"type": "openai_item", "item": item} for item in call.reply]
        self.put("service-call-failed", data, call.number)

    def _item(self, item: Item | str, call: int | None) -> int:
        message_id = f"{self.id}.{len(self.drafts)}"
        if isinstance(item, str):
            self.drafts.append(draft_of_text(item, message_id, self.run, call))
        else:
            self.drafts.append(draft_of(item, message_id, self.run, call))
        version = self.last + len(self.drafts)
        self.items.append((version, item))
        return version


def by_position(operation: Operation, items: Sequence[Item | str]) -> None:
    """Lay the items out as a run of their own."""
    operation.run = operation.id
    operation.put("run-started", {"mode": "per-service-call", "labels": BY_POSITION})
    operation.add(items)
    operation.put("run-committed", {"outcome": "completed"})


def leading_inputs(items: Sequence[Item | str]) -> int:
    """How many of the items stand before the first output."""
    stretches = _stretches(items)
    return len(stretches[0][1]) if stretches and not stretches[0][0] else 0


def _stretches(items: Sequence[Item | str]) -> list[tuple[bool, list[Item | str]]]:
    """The items in order, outputs (True) and inputs apart. One kept as text goes with what stands before it."""
    stretches: list[tuple[bool, list[Item | str]]] = []
    for item in items:
        before = stretches[-1][0] if stretches else False
        is_out = before if isinstance(item, str) else is_output(item)
        if stretches and stretches[-1][0] == is_out:
            stretches[-1][1].append(item)
        else:
            stretches.append((is_out, [item]))
    return stretches
