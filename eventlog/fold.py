"""The rules of history: one pass over the log, in order, that knows what the service would remember. Pure.

``State`` is what must be remembered between two events. It is bounded by what is open (runs, calls
in the view without a result), not by what happened. ``State.apply`` takes the next event and
returns what changes in the view; ``eventlog.ledger`` keeps the view itself.

1. A message appended outside any run enters at its own version; a function result never by itself.
2. A completed service call makes a unit: the inputs it sent, in the order sent, then its outputs.
   Per service call, a unit enters when the call completes; per run, all enter at run-committed.
3. An input that no completed call carried does not enter.
4. Output of a call that did not complete does not enter.
5. A rewind makes the view what it was; a compaction puts its messages in place of what entered.
6. A result closes the call it answers, also one that enters later. Where it does not say: the
   oldest open call of that id in its own run, else the newest open one. Entering closes a call.

An approval is a fact of the world, not of the history: one that was resolved stays so over a rewind.

The fold is total: what it does not know, what refers to what is not there and what is not of the shape it
should be changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from eventlog.events import Event, Mode, versions


class Item(NamedTuple):
    """A recorded message, call or result: what can stand in a view. ``call`` marks an output."""

    version: int
    kind: str
    run: str | None
    call: int | None
    call_id: str = ""
    answers: int | None = None
    synthetic: bool = False


class Unit(NamedTuple):
    """A completed service call: what it sent and what came back."""

    run: str
    call: int
    started: int
    completed: int
    sends: tuple[int, ...]
    outputs: tuple[Item, ...]
    continues: dict[str, Any] | None
    service: dict[str, Any] | None


class Enter(NamedTuple):
    """These enter the view at ``entered``: a unit, or inputs by themselves."""

    entered: int
    inputs: tuple[int, ...]
    outputs: tuple[Item, ...] = ()
    unit: Unit | None = None


class Rewind(NamedTuple):
    """The view becomes what it was at ``to``."""

    at: int
    to: int


class Compact(NamedTuple):
    """What entered up to ``through`` gives way to the messages of the event at ``at``."""

    at: int
    through: int


Change = Enter | Rewind | Compact
_NOTHING: tuple[Change, ...] = ()


@dataclass(slots=True)
class StartedCall:
    """A service call that was started and has not completed."""

    run: str
    call: int
    started: int
    sends: tuple[int, ...]
    continues: dict[str, Any] | None
    outputs: list[Item] = field(default_factory=list)


@dataclass(slots=True)
class OpenRunState:
    """A run that is neither committed nor aborted."""

    mode: str
    first: int
    calls: dict[int, StartedCall] = field(default_factory=dict)
    units: list[Unit] = field(default_factory=list)
    """Per run only: the completed calls, waiting for the commit."""
    inputs: list[int] = field(default_factory=list)
    """Per run only: what was recorded as input, for the untrimmed view."""


@dataclass(slots=True)
class Calls:
    """The calls in the view that no result in the view answers."""

    open: list[Item] = field(default_factory=list)
    early: dict[int, int] = field(default_factory=dict)
    """Version of a call that has not entered -> version of the result, which has."""

    def enter(self, items: Iterable[Item]) -> list[tuple[int, int]]:
        """Let items enter the view in this order; return the pairs (result, call) that were closed."""
        pairs = []
        for item in items:
            if item.kind == "call":
                result = self.early.pop(item.version, None)
                if result is None:
                    self.open.append(item)
                else:
                    pairs.append((result, item.version))
            elif item.kind == "result":
                call = self.closed_by(item)
                if call is not None:
                    self.open.remove(call)
                    pairs.append((item.version, call.version))
                elif item.answers is not None:
                    self.early.setdefault(item.answers, item.version)
        return pairs

    def closed_by(self, result: Item) -> Item | None:
        """The open call that this result closes when it enters."""
        if result.answers is not None:
            return next((call for call in self.open if call.version == result.answers), None)
        same = [call for call in self.open if call.call_id == result.call_id]
        own = [call for call in same if call.run == result.run and call.run is not None]
        return own[0] if own else (same[-1] if same else None)


@dataclass(slots=True)
class State:
    """What the fold remembers between two events. ``untrimmed`` keeps a committed per-run run's inputs, too."""

    untrimmed: bool = False
    version: int = 0
    runs: dict[str, OpenRunState] = field(default_factory=dict)
    calls: Calls = field(default_factory=Calls)
    awaiting: dict[int, int] = field(default_factory=dict)
    """Version of an open function call -> version of the request for its approval."""
    doubtful: list[StartedCall] = field(default_factory=list)
    """Calls that ended without a known outcome, since a completed call last sent the whole history."""
    cause: int = 0
    """The newest version that made the service's own memory differ from the view; 0 when there is none."""
    fresh: int = 0
    """The newest start of a call that continued nothing and whose unit has entered; 0 when there is none."""

    def apply(self, event: Event) -> Sequence[Change]:
        """Take the next event; return what changes in the view.

        The caller carries the changes out in order, and for each ``Enter`` calls ``enter``, for
        each other ``restore``.
        """
        self.version = event.version
        if self.calls.early or self.awaiting:
            self._forget()
        rule = _RULES.get(event.type)
        return rule(self, event) if rule is not None else _NOTHING

    def enter(self, unit: Unit | None, items: Iterable[Item]) -> list[tuple[int, int]]:
        """Let these calls and results enter, in order; return the pairs (result, call) that were closed."""
        if unit is not None and unit.continues is None:
            self.fresh = max(self.fresh, unit.started)
        return self.calls.enter(items)

    def restore(self, calls: Calls, approvals: dict[int, int]) -> None:
        """Know again what is open, after the view changed otherwise than by entering.

        ``approvals`` are all requests that were not resolved, by the version of their call.
        """
        self.calls = calls
        self.awaiting = dict(approvals)
        self._forget()

    @property
    def in_step(self) -> bool:
        """Whether the service's own memory is what the view shows, as far as the log tells.

        Not from a rewind, a compaction, a call in doubt, or a completed call of a per-run run that
        is not committed, until a unit enters whose call started later and continued nothing.
        """
        causes = [self.cause]
        for run in self.runs.values():
            causes += [call.started for call in run.calls.values()]
            causes += [unit.completed for unit in run.units]
        return not any(cause >= self.fresh for cause in causes if cause)

    def _pending(self) -> set[int]:
        """The calls of completed service calls whose run has yet to be committed."""
        return {
            item.version
            for run in self.runs.values()
            for unit in run.units
            for item in unit.outputs
            if item.kind == "call"
        }

    def _forget(self) -> None:
        """Forget the results of calls that will never enter, and the approvals of calls that are not open."""
        pending = self._pending()
        self.calls.early = {call: result for call, result in self.calls.early.items() if call in pending}
        live = pending | {call.version for call in self.calls.open}
        self.awaiting = {call: request for call, request in self.awaiting.items() if call in live}

    def _fall_out(self, *calls: StartedCall) -> None:
        """The service may hold what the view does not show, or the other way round."""
        self.cause = self.version
        self.doubtful += calls


def item_of(event: Event) -> Item | None:
    """The item that an event records, if it records one."""
    data = event.data
    if event.type == "message-added":
        return Item(event.version, "message", event.run, event.call)
    if event.type == "function-call":
        return Item(event.version, "call", event.run, event.call, data.get("call_id", ""))
    if event.type == "function-result":
        answers = data.get("answers")
        return Item(
            event.version,
            "result",
            event.run,
            event.call,
            data.get("call_id", ""),
            answers if type(answers) is int else None,
            bool(data.get("synthetic")),
        )
    return None


def _recorded(state: State, event: Event) -> Sequence[Change]:
    if event.run is None:
        return _NOTHING if event.type == "function-result" else [Enter(event.version, (event.version,))]
    run = state.runs.get(event.run)
    if run is None:
        return _NOTHING
    if event.call is not None:
        call = run.calls.get(event.call)
        item = item_of(event)
        if call is not None and item is not None:
            call.outputs.append(item)
    elif state.untrimmed and run.mode == Mode.PER_RUN:
        run.inputs.append(event.version)
    return _NOTHING


def _run_started(state: State, event: Event) -> Sequence[Change]:
    if event.run is not None:
        state.runs[event.run] = OpenRunState(event.data.get("mode", Mode.PER_SERVICE_CALL), event.version)
    return _NOTHING


def _call_started(state: State, event: Event) -> Sequence[Change]:
    run = state.runs.get(event.run or "")
    if run is not None and event.run is not None and event.call is not None:
        run.calls[event.call] = StartedCall(
            event.run,
            event.call,
            event.version,
            tuple(versions(event.data.get("sends"))),
            _object(event.data.get("continues")),
        )
    return _NOTHING


def _call_completed(state: State, event: Event) -> Sequence[Change]:
    run = state.runs.get(event.run or "")
    call = run.calls.pop(event.call, None) if run and event.call else None
    if run is None or call is None:
        return _NOTHING
    unit = Unit(
        call.run,
        call.call,
        call.started,
        event.version,
        call.sends,
        tuple(call.outputs),
        call.continues,
        _object(event.data.get("service")),
    )
    if unit.continues is None and state.doubtful:
        state.doubtful = [doubt for doubt in state.doubtful if doubt.started > unit.started]
    if run.mode == Mode.PER_RUN:
        run.units.append(unit)
        return _NOTHING
    return [Enter(event.version, unit.sends, unit.outputs, unit)]


def _call_failed(state: State, event: Event) -> Sequence[Change]:
    run = state.runs.get(event.run or "")
    call = run.calls.pop(event.call, None) if run and event.call else None
    if call is not None and event.data.get("outcome") != "refused":
        state._fall_out(call)
    return _NOTHING


def _run_committed(state: State, event: Event) -> Sequence[Change]:
    run = state.runs.pop(event.run or "", None)
    if run is None:
        return _NOTHING
    if run.calls:
        state._fall_out(*run.calls.values())
    units = sorted(run.units, key=lambda unit: unit.call)
    changes: list[Change] = [Enter(event.version, unit.sends, unit.outputs, unit) for unit in units]
    if run.inputs:
        changes.append(Enter(event.version, tuple(run.inputs)))
    return changes


def _run_aborted(state: State, event: Event) -> Sequence[Change]:
    run = state.runs.pop(event.run or "", None)
    if run is not None and (run.calls or run.units):
        state._fall_out(*run.calls.values())
    return _NOTHING


def _rewound(state: State, event: Event) -> Sequence[Change]:
    to = event.data.get("to")
    if type(to) is not int:
        return _NOTHING
    state._fall_out()
    return (Rewind(event.version, to),)


def _compacted(state: State, event: Event) -> Sequence[Change]:
    through = event.data.get("through")
    if type(through) is not int or type(event.data.get("messages")) is not list:
        return _NOTHING
    state._fall_out()
    return (Compact(event.version, through),)


def _approval_requested(state: State, event: Event) -> Sequence[Change]:
    call = event.data.get("function_call")
    if type(call) is int and (call in state._pending() or any(item.version == call for item in state.calls.open)):
        state.awaiting[call] = event.version
    return _NOTHING


def _approval_resolved(state: State, event: Event) -> Sequence[Change]:
    call = event.data.get("function_call")
    if type(call) is int:
        state.awaiting.pop(call, None)
    return _NOTHING


def _object(value: Any) -> dict[str, Any] | None:
    return value if type(value) is dict else None


_RULES: dict[str, Callable[[State, Event], Sequence[Change]]] = {
    "message-added": _recorded,
    "function-call": _recorded,
    "function-result": _recorded,
    "run-started": _run_started,
    "service-call-started": _call_started,
    "service-call-completed": _call_completed,
    "service-call-failed": _call_failed,
    "run-committed": _run_committed,
    "run-aborted": _run_aborted,
    "history-rewound": _rewound,
    "history-compacted": _compacted,
    "approval-requested": _approval_requested,
    "approval-resolved": _approval_resolved,
}
