"""Every event's fate: in the view, or the first reason why not. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from eventlog.events import Event, Mode, versions
from eventlog.ledger import Ledger, Row
from projections.assembly import objects

IN_VIEW = "in-view"
REASONS = (
    "failed-call",
    "rewound",
    "compacted",
    "uncommitted-run",
    "aborted-run",
    "trailing-result",
    "unsent-message",
)
"""Why something recorded is not in the view; the first that fits."""


class Fate(NamedTuple):
    """What became of one message part, call or result."""

    version: int
    kind: str
    """``message``, ``call`` or ``result``."""
    what: str
    """Its text, or the id of the call."""
    run: str | None
    call: int | None
    fate: str
    """``in-view`` or one of ``REASONS``."""


def fates(events: Sequence[Event], ledger: Ledger) -> list[Fate]:
    """One fate for every message part, call and result, in log order."""
    story = _Story(events, ledger)
    return [
        Fate(event.version, kind, what, event.run, event.call, story.fate(event))
        for event in events
        for kind, what in _parts(event)
    ]


class _Story:
    """What must be known of the whole log to tell a fate."""

    def __init__(self, events: Sequence[Event], ledger: Ledger) -> None:
        self._ledger = ledger
        self._rows: dict[int, list[Row]] = {}
        for row in ledger.rows:
            for version in (row.summary,) if row.summary else row.versions:
                self._rows.setdefault(version, []).append(row)
        self._completed: set[tuple[str | None, int | None]] = set()
        self._per_run: dict[str, str] = {}
        """Each per-run run and how it stands: open, committed or aborted."""
        self._carriers: dict[int, list[str]] = {}
        """Version of an input -> the per-run runs whose completed calls carried it."""
        self._read(events)

    def fate(self, event: Event) -> str:
        rows = self._rows.get(event.version, [])
        if any(row.since is not None for row in rows):
            return IN_VIEW
        if event.type == "service-call-failed":
            return "failed-call"
        if event.call is not None and (event.run, event.call) not in self._completed:
            return "failed-call"
        if rows:
            return max((stint for row in rows for stint in row.past), key=lambda stint: stint.until).why
        runs = [event.run, *self._carriers.get(event.version, ())]
        stands = {self._per_run.get(run) for run in runs if run is not None}
        if "open" in stands:
            return "uncommitted-run"
        if "aborted" in stands:
            return "aborted-run"
        return "trailing-result" if event.type == "function-result" else "unsent-message"

    def _read(self, events: Sequence[Event]) -> None:
        sends: dict[tuple[str | None, int | None], list[int]] = {}
        for event in events:
            key = (event.run, event.call)
            if event.type == "run-started" and event.run is not None:
                if event.data.get("mode") == Mode.PER_RUN:
                    self._per_run[event.run] = "open"
            elif event.type in ("run-committed", "run-aborted"):
                if self._per_run.get(event.run or "") == "open":
                    self._per_run[event.run or ""] = event.type.removeprefix("run-")
            elif event.type == "service-call-started":
                sends[key] = versions(event.data.get("sends"))
            elif event.type == "service-call-completed" and key in sends:
                self._completed.add(key)
                if event.run in self._per_run:
                    for version in sends[key]:
                        self._carriers.setdefault(version, []).append(event.run)


def _parts(event: Event) -> Iterator[tuple[str, str]]:
    """The kind and the words of each thing an event records that can have a fate."""
    data = event.data
    if event.type == "function-call":
        yield "call", str(data.get("call_id", ""))
    elif event.type == "function-result":
        yield "result", str(data.get("call_id", ""))
    elif event.type == "message-added":
        yield from map(_part, objects(data.get("parts")))
    elif event.type == "service-call-failed":
        yield from map(_part, objects(data.get("partial")))
    elif event.type == "history-compacted":
        for message in objects(data.get("messages")):
            yield from map(_part, objects(message.get("parts")))


def _part(part: dict[str, Any]) -> tuple[str, str]:
    kind = part.get("type")
    if kind == "tool_call":
        return "call", str(part.get("id", ""))
    if kind == "tool_call_response":
        return "result", str(part.get("id", ""))
    content = part.get("content")
    return "message", content if isinstance(content, str) and kind in ("text", "reasoning") else f"[{kind}]"
