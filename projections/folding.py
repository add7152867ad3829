"""One conversation being folded into one projection: what it holds, and what changed since it was kept. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from eventlog.events import Event
from eventlog.identity import Cursor, LogId
from eventlog.store.views import Filed, Kept, Writing
from projections.projection import Add, Change, Drop, Projection, Push, Put, Refold, canonical

S = TypeVar("S")


class Folding(Generic[S]):
    """Take a conversation's events in order; ``writing`` is what the store is then to write.

    Without ``kept`` it begins before the first event, and its writing is all there is.
    """

    def __init__(self, projection: Projection[S], log: LogId, kept: Kept | None = None) -> None:
        self.projection = projection
        self.log = log
        self._version, self._stamp = (0, 0) if kept is None else kept.cursor[:2]
        self.state = projection.initial() if kept is None else projection.unpack(kept.state)
        self._start_writing(fresh=kept is None)

    def take(self, event: Event) -> bool:
        """Take the next event. False: ``refold`` is needed, with every event up to and with this one."""
        for change in self.projection.apply(self.state, event):
            if type(change) is Refold:
                return False
            self._carry_out(change)
        self._version, self._stamp = event[:2]
        return True

    @property
    def cursor(self) -> Cursor:
        """The last event taken."""
        return self.log.cursor(self._version, self._stamp)

    def refold(self, events: Sequence[Event]) -> None:
        """Begin anew with these events, which are all from the log's first on."""
        self._start_writing(fresh=True)
        self.state, changes = self.projection.refold(events)
        self._carry_out_all(changes)
        self._version, self._stamp = events[-1][:2]

    def writing(self) -> Writing:
        """What changed since it was kept."""
        kept = Kept(self.cursor, self.projection.pack(self.state))
        return Writing(self.log, kept, self.fresh, self.rows, self.entries, self.sums)

    def written(self) -> None:
        """The writing was written: from now on changes count anew."""
        self._start_writing(fresh=False)

    @property
    def weight(self) -> int:
        """About how many bytes the writing has, the state left out."""
        return self._weight

    def _start_writing(self, *, fresh: bool) -> None:
        self.fresh = fresh
        self.rows: list[bytes] = []
        self.entries: dict[str, Filed | None] = {}
        self.sums: dict[str, int] = {}
        self._weight = 0

    def _carry_out_all(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self._carry_out(change)

    def _carry_out(self, change: Change) -> None:
        if type(change) is Push:
            row = canonical(change.row)
            self.rows.append(row)
            self._weight += len(row)
        elif type(change) is Put:
            document = canonical(change.document)
            self.entries[change.key] = Filed(document, dict(change.under))
            self._weight += len(document)
        elif type(change) is Drop:
            if self.fresh:
                self.entries.pop(change.key, None)
            else:
                self.entries[change.key] = None
        elif type(change) is Add:
            self.sums[change.name] = self.sums.get(change.name, 0) + change.amount


def fold(projection: Projection[S], log: LogId, events: Sequence[Event]) -> Writing:
    """All that the projection keeps of a log with these events: the same as when they came one by one."""
    folding = Folding(projection, log)
    for index, event in enumerate(events):
        if not folding.take(event):
            folding.refold(events[: index + 1])
    return folding.writing()
