"""The history view: rows of references in the order of the service view, one for each unit. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eventlog.events import Event
from projections.projection import REFOLD, Change, Projection, Push
from projections.reference import Reference
from projections.standing import Standing


class History(Projection[Standing]):
    """Rows hold versions; the bodies stay in the log."""

    name = "history"
    version = 1

    def initial(self) -> Standing:
        return Standing()

    def apply(self, state: Standing, event: Event) -> Iterable[Change]:
        rows = state.apply(event)
        if rows is None:
            return REFOLD
        return _pushed(rows) if rows else ()

    def refold(self, events: Sequence[Event]) -> tuple[Standing, Iterable[Change]]:
        standing, rows = Standing.of(events)
        return standing, _pushed(rows)

    def pack(self, state: Standing) -> bytes:
        return state.pack()

    def unpack(self, kept: bytes) -> Standing:
        return Standing.unpack(kept)


HISTORY = History()


def _pushed(rows: Iterable[Reference]) -> list[Change]:
    return [Push(row.pack()) for row in rows if row.versions]
