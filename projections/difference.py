"""Where what a view keeps of a conversation differs from what its log gives. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from eventlog.events import Event
from eventlog.identity import LogId
from eventlog.store.views import Contents, Filed
from projections.folding import Folding, fold
from projections.projection import Projection

_MOST = 200


class Difference(NamedTuple):
    """The first difference of one conversation, or of one line of an index."""

    log: LogId
    version: int
    """The event that made it; 0 where no event can be named."""
    where: str
    kept: str
    """What the view holds, cut."""
    wanted: str
    """What the log gives, cut."""

    def __str__(self) -> str:
        return (
            f"conversation {self.log.conversation!r} of {self.log.tenant!r}, version {self.version}: {self.where} "
            f"is {self.kept}, the log gives {self.wanted}"
        )


@dataclass(frozen=True, order=True, slots=True)
class Line:
    """A line of a tenant's index."""

    tenant: str
    index: str
    sort: str
    key: str


def difference(
    projection: Projection[Any], log: LogId, contents: Contents, events: Sequence[Event]
) -> Difference | None:
    """Compare, byte for byte, with the fold of ``events``: the log's up to the last one that the view applied."""
    wanted = fold(projection, log, events)
    assert wanted.kept is not None
    row = _first(contents.rows, wanted.rows)
    if row is not None:
        return Difference(log, _row_at(projection, log, events, row[0]), f"row {row[0]}", *row[1:])
    entry = _first_of(contents.entries, wanted.entries)
    if entry is not None:
        return Difference(log, _entry_at(projection, log, events, entry[0]), f"entry {entry[0]!r}", *entry[1:])
    sums = {name: amount for name, amount in wanted.sums.items() if amount}
    total = _first_of({name: amount for name, amount in contents.sums.items() if amount}, sums)
    if total is not None:
        return Difference(log, _sum_at(projection, log, events, total[0]), f"sum {total[0]!r}", *total[1:])
    if contents.kept.state != wanted.kept.state:
        last = contents.kept.cursor.version
        return Difference(log, last, "the state", _cut(contents.kept.state), _cut(wanted.kept.state))
    return None


def _first(kept: Sequence[bytes], wanted: Sequence[bytes]) -> tuple[int, str, str] | None:
    for index in range(max(len(kept), len(wanted))):
        one = kept[index] if index < len(kept) else None
        other = wanted[index] if index < len(wanted) else None
        if one != other:
            return index, _cut(one), _cut(other)
    return None


def _first_of(kept: dict[str, Any], wanted: dict[str, Any]) -> tuple[str, str, str] | None:
    for key in sorted({*kept, *wanted}):
        if kept.get(key) != wanted.get(key):
            return key, _cut(kept.get(key)), _cut(wanted.get(key))
    return None


def _steps(projection: Projection[Any], log: LogId, events: Sequence[Event]) -> Any:
    """The version of each event, and all there is to write after it."""
    folding: Folding[Any] = Folding(projection, log)
    for index, event in enumerate(events):
        if not folding.take(event):
            folding.refold(events[: index + 1])
        yield event.version, folding


def _row_at(projection: Projection[Any], log: LogId, events: Sequence[Event], row: int) -> int:
    return next((version for version, folding in _steps(projection, log, events) if len(folding.rows) > row), 0)


def _entry_at(projection: Projection[Any], log: LogId, events: Sequence[Event], key: str) -> int:
    found, before = 0, None
    for version, folding in _steps(projection, log, events):
        if folding.entries.get(key) != before:
            found, before = version, folding.entries.get(key)
    return found


def _sum_at(projection: Projection[Any], log: LogId, events: Sequence[Event], name: str) -> int:
    found, before = 0, 0
    for version, folding in _steps(projection, log, events):
        if folding.sums.get(name, 0) != before:
            found, before = version, folding.sums.get(name, 0)
    return found


def _cut(value: Any) -> str:
    if value is None:
        return "not there"
    if isinstance(value, Filed):
        value = value.document + repr(sorted(value.under.items())).encode(errors="backslashreplace")
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= _MOST else text[:_MOST] + "…"


def lines_of(log: LogId, contents: Contents | None) -> set[Line]:
    """The lines that the indexes should have of a conversation."""
    entries = {} if contents is None else contents.entries
    return {Line(log.tenant, index, sort, key) for key, filed in entries.items() for index, sort in filed.under.items()}
