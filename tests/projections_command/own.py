"""Projections of a user's own, as a module that a command is told about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eventlog.events import Event
from projections.projection import Change, Projection, Put

SPEC = "tests.projections_command.own:"


class Lengths(Projection[dict[str, Any]]):
    """How many events a conversation has; one whose message says so cannot be applied, until it is mended."""

    name = "lengths"
    mended = False

    def initial(self) -> dict[str, Any]:
        return {"events": 0}

    def apply(self, state: dict[str, Any], event: Event) -> Sequence[Change]:
        if not self.mended and "poison" in str(event.data):
            raise ValueError("it cannot be\nread")
        state["events"] += 1
        return [Put("length", state["events"], {"length": f"{state['events']:06d}"})]


class Directory(Lengths):
    name = "directory"


class Nameless(Lengths):
    name = None  # type: ignore[assignment]


LENGTHS = Lengths()
A_DIRECTORY = Directory()
NAMELESS = Nameless()
NUMBER = 3
