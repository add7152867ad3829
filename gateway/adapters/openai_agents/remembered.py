"""What a session remembers between two of its calls, and how it follows what others append. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import orjson

from eventlog.events import Event, versions
from eventlog.identity import Cursor
from gateway.adapters.openai_agents.backwards import ITEMS, PER_RUN
from gateway.adapters.openai_agents.items import items_of, packed
from gateway.adapters.openai_agents.kinds import Item


@dataclass(slots=True)
class Remembered:
    """The session as it was at ``cursor``. What is None is not known and must be read again."""

    cursor: Cursor
    kept: list[tuple[int, bytes | str]] | None = None
    """All its items, in order: version and JSON; JSON text that is not for every reader is a ``str``."""
    unsent: list[int] | None = None
    """The versions of the inputs behind its newest output that no service call has carried."""
    last_edit: int = 0
    """The newest rewind or compaction that ``kept`` is told from."""
    summary: int = 0
    """The version of a compaction that stands in ``kept``, before items that may be older; 0 when there is none."""
    _sends: dict[tuple[str | None, int | None], list[int]] = field(default_factory=dict)
    _started: set[str] = field(default_factory=set)
    """The open runs that were seen to start, none of them per run."""

    def items(self) -> list[Item]:
        """All its items, for a caller who may change them. ``kept`` must be known."""
        kept = self.kept or []
        try:
            documents = b",".join([document for _, document in kept])  # type: ignore[misc]
        except TypeError:
            return [orjson.loads(one) if isinstance(one, bytes) else json.loads(one) for _, one in kept]
        found: list[Item] = orjson.loads(b"[%b]" % documents)
        return found

    def keep(self, version: int, item: Item | str) -> None:
        """Another item, at the end; one that is JSON text stays so."""
        if self.kept is not None:
            self.kept.append((version, item if isinstance(item, str) else packed(item)))

    def rewound(self, to: int, cursor: Cursor) -> None:
        """The event at ``cursor``, the next one, is a rewind to version ``to``."""
        self._cut(to)
        self.cursor, self.last_edit = cursor, cursor.version

    def _cut(self, to: int) -> None:
        self.unsent = None
        if self.kept is None:
            return
        # What former edits took out comes back, unless the rewind ends behind them all, or right before an item that
        # stands, and all that came before that one stands before it.
        plain = not self.summary and any(version == to + 1 for version, _ in self.kept)
        if to <= 0 or to >= self.last_edit or plain:
            self.kept = [one for one in self.kept if one[0] <= to]
        else:
            self.kept = None

    def apply(self, event: Event) -> None:
        """Take the next event of the log."""
        kind, data = event.type, event.data
        if event.run is not None:
            self._take_run(event, event.run)
        if kind in ITEMS:
            for item in items_of(event):
                self.keep(event.version, item)
            if self.unsent is not None and event.call is None and (event.run or kind == "function-result"):
                self.unsent.append(event.version)
        elif kind == "service-call-started":
            self._sends[event.run, event.call] = versions(data.get("sends"))
        elif kind == "service-call-completed":
            sent = self._sends.pop((event.run, event.call), [])
            if self.unsent is not None:
                self.unsent = [version for version in self.unsent if version not in sent]
        elif kind == "history-rewound":
            to = data.get("to")
            if type(to) is int:
                self._cut(to)
                self.last_edit = event.version
        elif kind == "history-compacted":
            self.kept = self.unsent = None
        self.cursor = Cursor(event.version, event.stamp, self.cursor.log)

    def _take_run(self, event: Event, run: str) -> None:
        if event.type == "run-started" and event.data.get("mode") != PER_RUN:
            self._started.add(run)
        elif event.type in ("run-committed", "run-aborted") and run in self._started:
            self._started.discard(run)
        elif run not in self._started:  # its mode, which decides about its items, was told before
            self.kept = self.unsent = None
