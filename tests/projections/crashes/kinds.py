"""The projections that are run in other processes, by names that can be sent there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eventlog.events import Event
from projections.projection import Add, Change, Projection, Push, Put, sortable
from projections.views.built_in import BUILT_IN, named
from tests.projections.counting import COUNTING, Counts, Failing

ALL = (*(projection.name for projection in BUILT_IN), "counting")


class Marked(Projection[int]):
    """A row and an entry for each event; all carry a mark, which is no part of the log."""

    name = "marked"

    def __init__(self, version: int, mark: str) -> None:
        self.version = version  # type: ignore[misc]  # releases differ in it
        self.mark = mark

    def initial(self) -> int:
        return 0

    def apply(self, state: int, event: Event) -> Iterable[Change]:
        return (
            Push([self.mark, event.version]),
            Put(str(event.version), {"mark": self.mark}, {"all": sortable(event.version)}),
            Add("events", 1),
        )


class Stumbling(Failing):
    """Cannot apply the event that says ``stumble``."""

    def __init__(self) -> None:
        super().__init__(says_stumble)

    def apply(self, state: Counts, event: Event) -> Iterable[Change]:
        return super().apply(state, event)


def says_stumble(event: Event) -> bool:
    return event.type == "message-added" and any(part.get("content") == "stumble" for part in event.data["parts"])


def made(kind: str) -> Projection[Any]:
    """``history`` and its like, ``counting``, ``stumbling``, or ``marked:VERSION:MARK``."""
    if kind == "counting":
        return COUNTING
    if kind == "stumbling":
        return Stumbling()
    if kind.startswith("marked:"):
        _, version, mark = kind.split(":")
        return Marked(int(version), mark)
    return named(kind)
