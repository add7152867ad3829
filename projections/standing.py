"""The service view, folded in bounded memory: what must be known between two events, without its rows. Pure.

``Standing`` gives the rows as they enter, and keeps what decides about the next event: what is open,
what was recorded and is not in the view, and how the next request may continue. Where that does not
suffice (a rewind, a compaction, an input recorded long ago) it says so; then the ledger of the
whole log tells, and ``Standing.of`` goes on from there. What it keeps is a function of the log
alone, wherever it was put down and taken up again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from eventlog.events import Event
from eventlog.fold import Enter, Item, State, Unit, item_of
from eventlog.ledger import Ledger
from projections.continuation import Chain, chain_of, gave
from projections.reference import Reference, reference_of
from projections.standing_json import pack, unpack

_MOST, _LEAST = 256, 128
"""Of what was recorded and never sent so much is remembered; when it is more, so much is kept."""
SPOKEN = frozenset({"message-added", "function-call", "function-result"})
"""The types of what can be sent and enter."""


class Recent(NamedTuple):
    """A row that entered while a service call was open, which may not have carried it."""

    since: int
    run: str
    """The run of its unit, or empty."""
    completed: int
    versions: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Standing:
    """The fold of a log up to an event, without the rows that entered."""

    state: State = field(default_factory=State)
    unsent: dict[int, Item] = field(default_factory=dict)
    """What was recorded and is not in the view, by version; complete above ``floor``."""
    floor: int = 0
    strays: list[int] = field(default_factory=list)
    """The versions of results in the view that answer no call in it, in log order."""
    units: bool = False
    """Whether the view holds a unit."""
    service: dict[str, Any] | None = None
    ahead: list[int] | None = field(default_factory=list)
    """What stands in the view and the calls of the last unit's chain have not carried. None: not known."""
    root: int = 0
    """As in ``Chain``."""
    recent: list[Recent] = field(default_factory=list)

    @classmethod
    def of(cls, events: Sequence[Event]) -> tuple[Standing, list[Reference]]:
        """The fold of these events, which are all from the log's first on, and the rows of its view."""
        ledger = Ledger.of(events)
        unsent: dict[int, Item] = {}
        for event in events:
            if event.type in SPOKEN and not ledger.holds(event.version):
                unsent[event.version] = item_of(event)  # type: ignore[assignment]
        chain = chain_of(ledger.view)
        self = cls(ledger.state, unsent, 0, ledger.stray_results())
        self.units = any(row.unit is not None for row in ledger.view)
        self.service, self.root = chain.service, chain.root
        rows = [_in_view(reference_of(row), ledger.pairs) for row in ledger.view]
        if chain.service:
            self.ahead = list(chain.ahead)
        elif not self.units:
            self.ahead = [version for row in rows for version in row.versions]
        for row, reference in zip(ledger.view, rows, strict=True):
            since = row.past[0].since if row.past else row.since or 0
            unit = row.unit
            self.recent.append(
                Recent(since, unit.run if unit else "", unit.completed if unit else 0, reference.versions)
            )
        self.recent = self.live_recent()
        self._bound()
        return self, rows

    @staticmethod
    def recents(packed: Iterable[Sequence[Any]]) -> list[Recent]:
        """``recent`` from JSON."""
        return [Recent(since, run, completed, tuple(versions)) for since, run, completed, versions in packed]

    @property
    def chain(self) -> Chain | None:
        """What the next request may build on; None: only the whole log tells."""
        if not self.service:
            return Chain(None)
        return None if self.ahead is None else Chain(self.service, tuple(self.ahead), self.root)

    def pack(self) -> bytes:
        """As JSON; equal ones give equal bytes."""
        return pack(self)

    @classmethod
    def unpack(cls, packed: bytes) -> Standing:
        """The inverse of ``pack``."""
        return unpack(cls, packed)

    def stray_results(self) -> list[int]:
        """The versions of the results in the view that answer no call in it, in log order."""
        return self.strays

    def unentered_results(self) -> list[Item]:
        """The results that are recorded and not in the view and may answer a call, in log order."""
        return [item for item in self.unsent.values() if item.kind == "result"]

    def apply(self, event: Event) -> list[Reference] | None:
        """Take the next event; return the rows that entered. None: only the whole log tells; go on with ``of``."""
        if event.type in SPOKEN:
            self.unsent[event.version] = item_of(event)  # type: ignore[assignment]
        if self.recent:
            self.recent = self.live_recent()
        rows: list[Reference] = []
        for change in self.state.apply(event):
            row = self._enter(change) if type(change) is Enter else None
            if row is None:
                return None
            rows.append(row)
        if len(self.unsent) > _MOST:
            self._bound()
        return rows

    def live_recent(self) -> list[Recent]:
        """The rows that entered since the oldest call began whose unit has not entered."""
        runs = self.state.runs.values()
        starts = [call.started for run in runs for call in run.calls.values()]
        starts += [unit.started for run in runs for unit in run.units]
        if not starts:
            return []
        oldest = min(starts)
        return [row for row in self.recent if row.since > oldest]

    def _enter(self, change: Enter) -> Reference | None:
        """Let them enter; None when it is not known whether one of the inputs is in the view."""
        _, sends, outputs, unit = change
        unsent = self.unsent
        inputs, items = [], []
        for version in dict.fromkeys(sends):
            item = unsent.pop(version, None)
            if item is not None:
                inputs.append(version)
                if item.kind != "message":
                    items.append(item)
            elif version <= self.floor:
                return None
        new = {item.version for item in items if item.kind == "result"}
        for item in outputs:
            known = unsent.pop(item.version, None)
            if item.kind == "message":
                continue
            items.append(item)
            if item.kind == "result":
                if known is not None:
                    new.add(item.version)
                elif item.version <= self.floor:
                    return None
        pairs = self.state.enter(unit, items)
        self._note_strays(new, pairs)
        row = Reference(tuple(inputs), tuple([item.version for item in outputs]), unit is not None, 0, tuple(pairs))
        self._continue(unit, row)
        return row

    def _note_strays(self, new: set[int], pairs: list[tuple[int, int]]) -> None:
        if new or self.strays:
            closed = {result for result, _ in pairs}
            self.strays = sorted({*self.strays, *new} - closed)

    def _continue(self, unit: Unit | None, row: Reference) -> None:
        """Keep what the calls of the last unit's chain have not carried."""
        versions = row.versions
        if unit is None:
            if self.ahead is not None:
                self.ahead += versions
                if len(self.ahead) > _MOST:
                    self.ahead = None
            self.recent.append(Recent(self.state.version, "", 0, versions))
            return
        if unit.continues is None:
            self.root = unit.started
            self.ahead = [
                version
                for other in self.recent
                if other.since > unit.started and not (other.run == unit.run and other.completed < unit.started)
                for version in other.versions
            ]
        elif not self.units:
            self.root = 0
        elif not gave(self.service, unit.continues):
            # It builds on an older unit, or on none that is known.
            self.root, self.ahead = 0, None
        if self.ahead:
            carried = {*unit.sends, *(item.version for item in unit.outputs)}
            self.ahead = [version for version in self.ahead if version not in carried]
            if len(self.ahead) > _MOST:
                self.ahead = None
        self.units, self.service = True, unit.service or None
        self.recent.append(Recent(self.state.version, unit.run, unit.completed, versions))

    def _bound(self) -> None:
        """Let go of what was recorded long ago and not sent, and answers nothing that is open."""
        if len(self.unsent) <= _MOST:
            return
        runs = self.state.runs
        live = list(self.state.calls.open)
        for run in runs.values():
            outputs = [call.outputs for call in run.calls.values()] + [list(unit.outputs) for unit in run.units]
            live += [item for items in outputs for item in items if item.kind == "call"]
        versions = {call.version for call in live}
        ids = {call.call_id for call in live if type(call.call_id) is str}

        def is_needed(item: Item) -> bool:
            if item.run in runs:
                return True
            if item.kind != "result":
                return False
            if item.answers is not None:
                return item.answers in versions
            return type(item.call_id) is not str or item.call_id in ids

        gone = [version for version, item in self.unsent.items() if not is_needed(item)][:-_LEAST]
        for version in gone:
            del self.unsent[version]
            self.floor = max(self.floor, version)


def _in_view(row: Reference, pairs: Mapping[int, int]) -> Reference:
    """The row with those of its pairs that are in the view now: a compaction may have parted one."""
    return row._replace(pairs=tuple([pair for pair in row.pairs if pairs.get(pair[0]) == pair[1]]))
