"""The service view of one log as rows of references, at any version. Pure.

A ``Ledger`` folds the log and keeps what entered the view, when, and when and why it left again.
Rows hold versions; the bodies stay in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from eventlog.events import Event
from eventlog.fold import Calls, Compact, Enter, Item, Rewind, State, Unit, item_of


class Stint(NamedTuple):
    """One stay of a row in the view: from version ``since`` on, to before ``until``."""

    since: int
    until: int
    why: str
    """What took it out: ``rewound`` or ``compacted``."""


@dataclass(slots=True, eq=False)
class Row:
    """What entered the view together, in order: inputs, then outputs; or the messages of a compaction."""

    entered: int
    inputs: tuple[int, ...]
    outputs: tuple[Item, ...]
    unit: Unit | None
    pairs: list[tuple[int, int]]
    """What its entering closed: (version of the result, version of the call)."""
    since: int | None
    """Since which version it is in the view; None when it is not."""
    summary: int = 0
    """The version of the history-compacted event whose messages these are, or 0."""
    past: list[Stint] = field(default_factory=list)
    """Its former stays in the view."""

    @property
    def versions(self) -> tuple[int, ...]:
        """The versions of all its events in order."""
        return (*self.inputs, *(item.version for item in self.outputs))

    def was_in_view(self, version: int) -> bool:
        """Whether it was in the view after ``version``."""
        return (self.since is not None and self.since <= version) or any(
            stint.since <= version < stint.until for stint in self.past
        )


class Ledger:
    """The fold of a log, with the rows of its view. ``untrimmed`` as in ``State``."""

    def __init__(self, *, untrimmed: bool = False) -> None:
        self.state = State(untrimmed)
        self.rows: list[Row] = []
        """Every row there ever was, in order of appearance."""
        self.view: list[Row] = []
        """The rows in the view, in order."""
        self.pairs: dict[int, int] = {}
        """Version of a result in the view -> version of the call it closed."""
        self._current: set[int] = set()
        self._spoken: set[int] = set()
        """The versions of all messages, calls and results: what can be sent and enter."""
        self._recorded: dict[int, Item] = {}
        self._approvals: dict[int, int] = {}

    @classmethod
    def of(cls, events: Iterable[Event], *, untrimmed: bool = False) -> Ledger:
        """The ledger of these events, which must begin with the log's first."""
        ledger = cls(untrimmed=untrimmed)
        for event in events:
            ledger.apply(event)
        return ledger

    def apply(self, event: Event) -> None:
        """Take the next event of the log."""
        note = _NOTES.get(event.type)
        if note is not None:
            note(self, event)
        for change in self.state.apply(event):
            if type(change) is Enter:
                self._enter(change)
            elif type(change) is Compact:
                self._compact(change)
            elif type(change) is Rewind:
                self._rewind(change)

    def holds(self, version: int) -> bool:
        """Whether the event at this version is in the view."""
        return version in self._current

    def can_be_sent(self, version: int) -> bool:
        """Whether the event at this version is a message, a call, a result, or a summary that is in the view."""
        return version in self._spoken or version in self._current

    def unentered_results(self) -> list[Item]:
        """The results that are recorded and not in the view, in log order."""
        return [item for item in self._recorded.values() if item.kind == "result" and item.version not in self._current]

    def stray_results(self) -> list[int]:
        """The versions of the results in the view that answer no call in it, in log order."""
        return [
            item.version
            for item in self._recorded.values()
            if item.kind == "result" and item.version in self._current and item.version not in self.pairs
        ]

    def view_at(self, version: int) -> list[Row]:
        """The rows that were in the view after ``version``, in order."""
        return sorted((row for row in self.rows if row.was_in_view(version)), key=lambda row: row.entered)

    def _enter(self, change: Enter) -> None:
        entered, inputs, outputs, unit = change
        current, recorded = self._current, self._recorded
        items = []
        if len(inputs) != 1:
            inputs = tuple(dict.fromkeys(inputs))
        if not self._spoken.issuperset(inputs) or not current.isdisjoint(inputs):
            inputs = tuple([version for version in inputs if version in self._spoken and version not in current])
        for version in inputs:
            current.add(version)
            if version in recorded:
                items.append(recorded[version])
        for item in outputs:
            current.add(item.version)
            if item.kind != "message":
                items.append(item)
        pairs = self.state.enter(unit, items)
        if pairs:
            self.pairs.update(pairs)
        row = Row(entered, inputs, outputs, unit, pairs, self.state.version)
        self.rows.append(row)
        self.view.append(row)

    def _rewind(self, change: Rewind) -> None:
        self._become(self.view_at(change.to), change.at, "rewound")

    def _compact(self, change: Compact) -> None:
        summary = Row(change.through, (), (), None, [], None, change.at)
        self.rows.append(summary)
        kept = [row for row in self.view if row.entered > change.through]
        self._become([summary, *kept], change.at, "compacted")

    def _become(self, view: list[Row], at: int, why: str) -> None:
        before, after = set(self.view), set(view)
        for row in before - after:
            row.past.append(Stint(row.since or 0, at, why))
            row.since = None
        for row in after - before:
            row.since = at
        self.view = view
        self._current = {version for row in view for version in (row.versions or (row.summary,))}
        current = self._current
        self.pairs = {
            result: call for row in view for result, call in row.pairs if result in current and call in current
        }
        closed = set(self.pairs.values())
        calls = Calls()
        for item in (item for row in view for item in self._items(row)):
            if item.kind == "call" and item.version not in closed:
                calls.open.append(item)
            elif item.kind == "result" and item.version not in self.pairs and item.answers is not None:
                calls.early.setdefault(item.answers, item.version)
        self.state.restore(calls, self._approvals)

    def _items(self, row: Row) -> list[Item]:
        """The calls and results of a row."""
        inputs = [self._recorded[version] for version in row.inputs if version in self._recorded]
        return inputs + [item for item in row.outputs if item.kind != "message"]

    def _note_message(self, event: Event) -> None:
        self._spoken.add(event.version)

    def _note_item(self, event: Event) -> None:
        self._spoken.add(event.version)
        item = item_of(event)
        if item is not None:
            self._recorded[item.version] = item

    def _note_approval(self, event: Event) -> None:
        call = event.data.get("function_call")
        if type(call) is int:
            self._approvals.pop(call, None)
            if event.type == "approval-requested":
                self._approvals[call] = event.version


_NOTES: dict[str, Callable[[Ledger, Event], None]] = {
    "message-added": Ledger._note_message,
    "function-call": Ledger._note_item,
    "function-result": Ledger._note_item,
    "approval-requested": Ledger._note_approval,
    "approval-resolved": Ledger._note_approval,
}
