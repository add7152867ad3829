"""How a history changes: messages that leave, and messages that enter in their place. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import orjson

from eventlog.events import Event
from eventlog.identity import Cursor
from eventlog.ledger import Ledger, Row
from eventlog.messages import Json, Message
from projections.assembly import Whole, view_messages
from projections.reference import reference_of


class Left(NamedTuple):
    """Messages that left the view together."""

    versions: tuple[int, ...]
    """The versions of their events; of a compaction's messages, that of the compaction."""
    why: str
    """``rewound`` or ``compacted``."""


class HistoryChange(NamedTuple):
    """From the messages as they were to those at ``version``: see ``apply``. One that changes none moves the cursor."""

    version: int
    cursor: Cursor
    start: int
    """The index of the first message that left, or before which others entered."""
    removed: int
    """How many left."""
    added: tuple[Message, ...]
    left: tuple[Left, ...] = ()
    entered: tuple[int, ...] = ()
    """The versions of the events that entered. ``added`` may hold others, too, whose place or message changed."""

    def as_json(self) -> dict[str, Json]:
        """The change as a JSON object."""
        return {
            "version": self.version,
            "cursor": str(self.cursor),
            "start": self.start,
            "removed": self.removed,
            "added": [message.as_json() for message in self.added],
            "left": [{"versions": list(left.versions), "why": left.why} for left in self.left],
            "entered": list(self.entered),
        }


def apply(messages: Sequence[Message], change: HistoryChange) -> tuple[Message, ...]:
    """The messages after the change."""
    kept, rest = messages[: change.start], messages[change.start + change.removed :]
    return (*kept, *change.added, *rest)


def copied(message: Message) -> Message:
    """The message for somebody who may change it: what is kept for later must not change with it."""
    parts, extra = orjson.loads(orjson.dumps([message.parts, message.extra]))
    return replace(message, parts=parts, extra=extra)


class Changes:
    """The service view of a log as it grows. It holds the log's events, as whoever loads a view does."""

    def __init__(self, events: Sequence[Event], tag: str) -> None:
        self.events = list(events)
        self._lookup = Whole(self.events)
        self._tag = tag
        self._ledger = Ledger.of(self.events)
        self._counts = self._count(self._ledger.view)
        """How many messages each row of the view has; of rows that may form one together, the first has them all."""
        self._total = sum(self._counts)

    def take(self, event: Event) -> HistoryChange:
        """Take the next event of the log."""
        ledger = self._ledger
        old, size = ledger.view, len(ledger.view)
        self.events.append(event)
        ledger.apply(event)
        new = ledger.view
        if new is old and len(new) == size:
            return self.none()
        only_grew, old = new is old, old[:size]
        start, kept = (size, 0) if only_grew else _common(old, new)
        gone, come = old[start : size - kept], new[start : len(new) - kept]
        left, entered = _moves(gone, come)
        while start and (self._may_join(old, start) or self._may_join(new, start)):
            start -= 1
        while kept and (self._may_join(old, size - kept) or self._may_join(new, len(new) - kept)):
            kept -= 1
        before = self._messages(old[start : size - kept])
        after = self._messages(new[start : len(new) - kept])
        counts = self._count(new[start : len(new) - kept])
        at = sum(self._counts[:start])
        self._counts[start : size - kept] = counts
        self._total += len(after) - len(before)
        same = _same(before, after)
        rest = _same(before[same:][::-1], after[same:][::-1])
        return HistoryChange(
            event.version,
            self.cursor,
            at + same,
            len(before) - same - rest,
            tuple(map(copied, after[same : len(after) - rest])),
            left,
            entered,
        )

    def none(self) -> HistoryChange:
        """A change of no message, at the last event taken."""
        return HistoryChange(self.cursor.version, self.cursor, self._total, 0, ())

    @property
    def cursor(self) -> Cursor:
        """That of the last event taken."""
        return Cursor(*self.events[-1][:2], self._tag) if self.events else Cursor(0, 0, self._tag)

    def _messages(self, rows: Sequence[Row]) -> list[Message]:
        return view_messages(map(reference_of, rows), self._lookup, self._tag)[0]

    def _count(self, rows: Sequence[Row]) -> list[int]:
        counts = [0] * len(rows)
        first = 0
        for index in range(1, len(rows) + 1):
            if index == len(rows) or not self._may_join(rows, index):
                counts[first] = len(self._messages(rows[first:index]))
                first = index
        return counts

    def _may_join(self, rows: Sequence[Row], index: int) -> bool:
        """Whether this row and the one before may form one message: one operation posted both outside any run."""
        if not 0 < index < len(rows):
            return False
        first, second = rows[index - 1], rows[index]
        if first.unit is not None or second.unit is not None or not first.inputs or not second.inputs:
            return False
        operation = self.events[first.inputs[-1] - 1].operation_id
        return self.events[second.inputs[0] - 1].operation_id == operation


def _versions(row: Row) -> tuple[int, ...]:
    return row.versions or ((row.summary,) if row.summary else ())


def _moves(gone: Sequence[Row], come: Sequence[Row]) -> tuple[tuple[Left, ...], tuple[int, ...]]:
    """What left and what entered. What one row takes away and another brings did neither."""
    old = {version for row in gone for version in _versions(row)}
    new = {version for row in come for version in _versions(row)}
    left = []
    for row in gone:
        versions = tuple(version for version in _versions(row) if version not in new)
        if versions and row.past:
            left.append(Left(versions, row.past[-1].why))
    return tuple(left), tuple(version for row in come for version in _versions(row) if version not in old)


def _common(old: Sequence[Row], new: Sequence[Row]) -> tuple[int, int]:
    """How many rows at the front are the same, and how many of the others at the end."""
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a is not b), min(len(old), len(new)))
    most = min(len(old), len(new)) - start
    kept = next((i for i in range(most) if old[-1 - i] is not new[-1 - i]), most)
    return start, kept


def _same(old: Sequence[Message], new: Sequence[Message]) -> int:
    """How many messages at the front are equal."""
    least = min(len(old), len(new))
    return next((i for i in range(least) if old[i] != new[i]), least)
