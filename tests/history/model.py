"""A reference model of the rules of history, and a strict double of the model service.

The model is slow and obvious, written from the rules and from nothing else. ``Model(events)`` walks
the log once and keeps, for every version, a whole copy of the view, so that "history is what it was
at v" is a look-up. It expects well-formed logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from eventlog.events import Event
from eventlog.ledger import Ledger

SPOKEN = ("message-added", "function-call", "function-result")


class Row(NamedTuple):
    """What entered together: at which version, the inputs, the outputs, or a compaction's version."""

    entered: int
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    summary: int = 0

    @property
    def versions(self) -> tuple[int, ...]:
        return (self.summary,) if self.summary else self.inputs + self.outputs


@dataclass
class Snapshot:
    """The view after one event. ``pairs``: version of a result -> version of the call it closes."""

    rows: list[Row] = field(default_factory=list)
    pairs: dict[int, int] = field(default_factory=dict)

    @property
    def versions(self) -> list[int]:
        return [version for row in self.rows for version in row.versions]


class Model:
    def __init__(self, events: Sequence[Event], *, untrimmed: bool = False) -> None:
        self.events = {event.version: event for event in events}
        self.untrimmed = untrimmed
        self.snapshots = [Snapshot()]
        self.way_out: dict[int, str] = {}
        """What last took an event out of the view."""
        for event in events:
            before = self.snapshots[-1]
            after = self._after(event, Snapshot(list(before.rows), dict(before.pairs)))
            for version in set(before.versions) - set(after.versions):
                self.way_out[version] = "rewound" if event.type == "history-rewound" else "compacted"
            self.snapshots.append(after)

    @property
    def now(self) -> Snapshot:
        return self.snapshots[-1]

    def open_calls(self, at: int = -1) -> list[int]:
        """The calls in the view that no result in the view closes, in the order in which they entered."""
        snapshot = self.snapshots[at]
        closed = snapshot.pairs.values()
        return [v for v in snapshot.versions if self.events[v].type == "function-call" and v not in closed]

    def awaiting(self) -> set[int]:
        """The open calls whose approval was asked for and not decided since."""
        waiting: set[int] = set()
        for event in self.events.values():
            if event.type == "approval-requested":
                waiting.add(event.data["function_call"])
            elif event.type == "approval-resolved":
                waiting.discard(event.data["function_call"])
        return waiting & set(self.open_calls())

    def stray_results(self) -> list[int]:
        """The results in the view that close nothing in it."""
        snapshot = self.now
        return [v for v in snapshot.versions if self.events[v].type == "function-result" and v not in snapshot.pairs]

    def fates(self) -> dict[int, str]:
        """Version of whatever has parts -> its fate."""
        kinds = (*SPOKEN, "history-compacted", "service-call-failed")
        return {event.version: self._fate(event) for event in self.events.values() if event.type in kinds}

    def out_of_step(self) -> tuple[list[int], list[int], list[tuple[int, int]]]:
        """Where each cause of being out of step begins; where it is over; what may end it.

        What may end it are the calls that continued nothing and have entered: (started, entered).
        """
        begun: list[int] = []
        over: list[int] = []
        fresh: list[tuple[int, int]] = []
        for event in self.events.values():
            if event.type in ("history-rewound", "history-compacted"):
                begun.append(event.version)
                over.append(event.version)
            elif event.type == "service-call-started":
                end = self._end_of_call(event)
                if end is not None and end.type == "service-call-completed":
                    entered = self._entered(end)
                    if entered is None:
                        begun.append(end.version)
                        over.append(self._abort_of(event) or end.version)
                    elif event.data["continues"] is None:
                        fresh.append((event.version, entered))
                elif end is None or end.data["outcome"] == "unknown":
                    begun.append(event.version)
                    over.append(end.version if end else self._closed_at(event) or event.version)
        return begun, over, fresh

    def _end_of_call(self, start: Event) -> Event | None:
        ends = ("service-call-completed", "service-call-failed")
        same = (e for e in self.events.values() if (e.run, e.call) == (start.run, start.call) and e.type in ends)
        return next(same, None)

    def _entered(self, completed: Event) -> int | None:
        """The version at which the unit of this completed call entered, or None."""
        if self._mode(str(completed.run)) == "per-service-call":
            return completed.version
        return self._closed_at(completed, "run-committed")

    def _abort_of(self, event: Event) -> int | None:
        return self._closed_at(event, "run-aborted")

    def _closed_at(self, event: Event, *kinds: str) -> int | None:
        ends = kinds or ("run-committed", "run-aborted")
        return next((e.version for e in self.events.values() if e.run == event.run and e.type in ends), None)

    def _fate(self, event: Event) -> str:
        if event.version in self.now.versions:
            return "in-view"
        if event.type == "service-call-failed" or (event.call is not None and not self._completed(event)):
            return "failed-call"
        if event.version in self.way_out:
            return self.way_out[event.version]
        ends = {self._end(run) for run in self._per_run_runs_of(event)}
        if None in ends:
            return "uncommitted-run"
        if "run-aborted" in ends:
            return "aborted-run"
        return "trailing-result" if event.type == "function-result" else "unsent-message"

    def _per_run_runs_of(self, event: Event) -> set[str]:
        """The per-run runs that it was recorded in, or carried by a completed call of."""
        runs = {event.run} if event.run is not None else set()
        for other in self.events.values():
            if other.type == "service-call-completed" and event.version in self._start(other).data["sends"]:
                runs.add(str(other.run))
        return {run for run in runs if self._mode(run) == "per-run"}

    def _after(self, event: Event, view: Snapshot) -> Snapshot:
        if event.run is None and event.type in ("message-added", "function-call"):
            self._enter(view, event.version, [event.version], [])
        elif event.type == "service-call-completed" and self._mode(str(event.run)) == "per-service-call":
            self._enter_unit(view, event.version, event)
        elif event.type == "run-committed" and self._mode(str(event.run)) == "per-run":
            mine = [other for other in self._until(event) if other.run == event.run]
            done = [other for other in mine if other.type == "service-call-completed"]
            for completed in sorted(done, key=lambda other: other.call or 0):
                self._enter_unit(view, event.version, completed)
            if self.untrimmed:
                inputs = [other.version for other in mine if other.type in SPOKEN and other.call is None]
                self._enter(view, event.version, inputs, [])
        elif event.type == "history-rewound":
            was = self.snapshots[event.data["to"]]
            return Snapshot(list(was.rows), dict(was.pairs))
        elif event.type == "history-compacted":
            through = event.data["through"]
            kept = [row for row in view.rows if row.entered > through]
            view.rows = [Row(through, summary=event.version), *kept]
            here = set(view.versions)
            view.pairs = {result: call for result, call in view.pairs.items() if result in here and call in here}
        return view

    def _enter_unit(self, view: Snapshot, entered: int, completed: Event) -> None:
        sends = self._start(completed).data["sends"]
        outputs = [
            event.version
            for event in self._until(completed)
            if (event.run, event.call) == (completed.run, completed.call) and event.type in SPOKEN
        ]
        self._enter(view, entered, sends, outputs)

    def _enter(self, view: Snapshot, entered: int, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        here = set(view.versions)
        new = [version for version in dict.fromkeys(inputs) if version not in here]
        view.rows.append(Row(entered, (), ()))
        for position, version in enumerate([*new, *outputs]):
            self._close(view, version)
            taken = [*new, *outputs][: position + 1]
            view.rows[-1] = Row(entered, tuple(taken[: len(new)]), tuple(taken[len(new) :]))

    def _close(self, view: Snapshot, entering: int) -> None:
        event = self.events[entering]
        if event.type == "function-call":
            for version in view.versions:
                other = self.events[version]
                early = other.type == "function-result" and other.data.get("answers") == entering
                if early and version not in view.pairs:
                    view.pairs[version] = entering
                    return
        elif event.type == "function-result":
            open_calls = [
                self.events[version]
                for version in view.versions
                if self.events[version].type == "function-call" and version not in view.pairs.values()
            ]
            answers = event.data.get("answers")
            if answers is not None:
                found = [call for call in open_calls if call.version == answers]
            else:
                same = [call for call in open_calls if call.data["call_id"] == event.data["call_id"]]
                own = [call for call in same if event.run is not None and call.run == event.run]
                found = own[:1] or same[-1:]
            for call in found:
                view.pairs[entering] = call.version

    def _until(self, event: Event) -> list[Event]:
        return [other for other in self.events.values() if other.version <= event.version]

    def _start(self, event: Event) -> Event:
        return next(
            other
            for other in self.events.values()
            if other.type == "service-call-started" and (other.run, other.call) == (event.run, event.call)
        )

    def _completed(self, event: Event) -> bool:
        return any(
            other.type == "service-call-completed" and (other.run, other.call) == (event.run, event.call)
            for other in self.events.values()
        )

    def _mode(self, run: str) -> str:
        starts = (event for event in self.events.values() if event.type == "run-started" and event.run == run)
        return str(next(starts).data["mode"])

    def _end(self, run: str) -> str | None:
        """How the run ended, or None while it is open."""
        ends = [e.type for e in self.events.values() if e.run == run and e.type in ("run-committed", "run-aborted")]
        return ends[0] if ends else None


class Service:
    """What a model service that stores conversations remembers.

    ``memory``: response id -> the versions of all that the service holds behind it, in order. A
    call that continues nothing carries the whole history as it was when the call started: the
    view, the completed calls of its own per-run run, its inputs. One that continues carries its
    inputs only, and the service has the rest.
    """

    def __init__(self) -> None:
        self.memory: dict[str, list[int]] = {}
        self._sends: dict[tuple[str | None, int | None], list[int]] = {}
        self._requests: dict[tuple[str | None, int | None], list[int]] = {}
        self._replies: dict[tuple[str | None, int | None], list[int]] = {}
        self._own: dict[str | None, list[int]] = {}
        """Of each per-run run: what its completed calls sent and got."""

    def receive(self, event: Event, before: Ledger) -> None:
        """Take the next event; ``before`` is the ledger of the events before it."""
        key = (event.run, event.call)
        if event.type == "run-started" and event.data["mode"] == "per-run":
            self._own[event.run] = []
        elif event.type == "service-call-started":
            continues = event.data["continues"]
            if continues is None:
                shown = [v for row in before.view for v in ((row.summary,) if row.summary else row.versions)]
                held = [*shown, *self._own.get(event.run, ())]
            else:
                held = self.memory[continues["response"]]
            self._sends[key] = event.data["sends"]
            self._requests[key] = list(dict.fromkeys([*held, *event.data["sends"]]))
        elif event.type in ("message-added", "function-call") and event.call is not None:
            self._replies.setdefault(key, []).append(event.version)
        elif event.type == "service-call-completed":
            reply = self._replies.get(key, [])
            if event.run in self._own:
                self._own[event.run] += [*self._sends[key], *reply]
            service = event.data.get("service")
            if service:
                self.memory[service["response"]] = [*self._requests[key], *reply]
