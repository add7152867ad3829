"""What a session holds, told from its log, the newest event first. Pure.

A session's items are what was recorded, in log order: what a rewind took back is not among them,
a compaction stands in place of what had entered before it, and a per-run run counts once it is
committed. Read backwards, a rewind says at once what to pass over, and a limit where to stop.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from eventlog.codec import decode
from eventlog.events import Event, versions
from gateway.adapters.openai_agents.items import items_of
from gateway.adapters.openai_agents.kinds import Item

ITEMS = frozenset({"message-added", "function-call", "function-result"})
PER_RUN = "per-run"
_TYPE = re.compile(rb'\{"id":"(?:[^"\\]|\\.)*","type":"([^"]*)"')
"""How a stored event begins. One that begins otherwise is read whole."""


class Found(NamedTuple):
    """The items of one event of the session."""

    version: int
    items: list[Item]
    run: str | None
    is_output: bool
    waits: bool
    """It is an input, and in the service's history only once a service call has carried it."""


class Backwards:
    """The session's items, as they come to be known.

    ``runs=False`` passes over the events of runs unread, where the whole log is read anyway: they matter only
    where one is per run, and then ``unread`` tells that it must be read again.
    """

    def __init__(self, *, runs: bool = True) -> None:
        self.unread = False
        self._runs = runs
        self.found: list[Found] = []
        """The newest first."""
        self.complete = False
        """Nothing older is in the session."""
        self.last_edit = 0
        """The newest rewind or compaction that was met."""
        self._outputs = False
        """An output was found: what stands before it was carried by a service call."""
        self._skip_above: int | None = None
        self._summary: Found | None = None
        """A compaction whose place was not reached yet, and up to which version it replaces."""
        self._floor = 0
        self._committed: set[str] = set()
        self._unknown: set[str] = set()
        """Runs that are not committed and whose items were met, but not their start."""
        self._completed: dict[tuple[str | None, int | None], int] = {}
        self._carried: dict[int, int] = {}
        """Version of an input -> version of the completion of a call that carried it."""

    def take_document(self, version: int, stamp: int, document: bytes) -> None:
        """Take an event as it is stored; what changes nothing is not even read.

        Once the newest output is known, nothing is asked about older service calls.
        """
        match = _TYPE.match(document) if version > 1 else None
        if match is not None:
            if self._outputs and not self._floor and match[1].startswith(b"service-call-"):
                return
            if not self._runs and match[1].startswith(b"run-"):
                self.unread = self.unread or b'"per-run"' in document
                return
        self.take(decode(version, stamp, document))

    def take(self, event: Event) -> None:
        """Take the event before the one taken last."""
        if self.complete:
            return
        if self._skip_above is None or event.version <= self._skip_above:
            self._take(event)
        if event.version == 1:
            self._finish()

    def settled(self) -> bool:
        """Whether nothing older decides about an item that was found."""
        return self.complete or not self._unknown

    def items(self) -> list[tuple[int, Item]]:
        """Version and item, in order."""
        return [(found.version, item) for found in reversed(self.found) for item in found.items]

    @property
    def summary(self) -> int:
        """The version of the compaction that was met, or 0: items may stand behind it that are older."""
        return self._summary.version if self._summary is not None else 0

    def unsent(self) -> list[int] | None:
        """The versions of the inputs behind the newest output that no service call has carried; None: read on."""
        waiting: list[int] = []
        for found in self.found:
            if found.is_output:
                return waiting[::-1]
            if found.waits and found.version not in self._carried:
                waiting.append(found.version)
        return waiting[::-1] if self.complete else None

    def _take(self, event: Event) -> None:
        kind, run = event.type, event.run
        if kind in ITEMS:
            self._take_item(event)
        elif kind == "history-rewound":
            to = event.data.get("to")
            if type(to) is int:
                self.last_edit = max(self.last_edit, event.version)
                self._skip_above = to
                if to <= 0:
                    self._finish()
        elif kind == "history-compacted":
            self.last_edit = max(self.last_edit, event.version)
            through = event.data.get("through")
            if self._summary is None and type(through) is int:
                self._summary, self._floor = Found(event.version, items_of(event), None, True, False), through
        elif kind == "service-call-completed":
            self._completed[run, event.call] = event.version
        elif kind == "service-call-started":
            completion = self._completed.get((run, event.call))
            for version in versions(event.data.get("sends")) if completion is not None else ():
                self._carried.setdefault(version, completion or 0)
        elif run is not None:
            self._take_run(event, run)

    def _take_item(self, event: Event) -> None:
        waits = event.call is None and (event.run is not None or event.type == "function-result")
        if event.version <= self._floor and not (
            waits and self._carried.get(event.version, event.version + self._floor) > self._floor
        ):
            if event.call is not None:
                self._finish()  # what stands before an output was carried before it
            return
        self.found.append(Found(event.version, items_of(event), event.run, event.call is not None, waits))
        self._outputs = self._outputs or event.call is not None
        if self._runs and event.run is not None and event.run not in self._committed:
            self._unknown.add(event.run)

    def _take_run(self, event: Event, run: str) -> None:
        if event.type == "run-committed":
            self._committed.add(run)
        elif event.type == "run-started":
            self._unknown.discard(run)
            if event.data.get("mode") == PER_RUN and run not in self._committed:
                self.found = [found for found in self.found if found.run != run]

    def _finish(self) -> None:
        if self._summary is not None and not self.complete:
            self.found.append(self._summary)
        self.complete = True
