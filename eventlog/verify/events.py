"""What the events of one log say of each other: runs, service calls, references. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from eventlog.events import NEEDS_CALL, NEEDS_RUN, Event
from eventlog.verify.fault import Fault

_ITEMS = ("message-added", "function-call", "function-result")
_SENDABLE = frozenset({*_ITEMS, "history-compacted"})
_CALLS = frozenset({"function-call"})


@dataclass(slots=True)
class RunSeen:
    """A run as its events tell."""

    first: int
    """The version of its run-started; 0 when that was trimmed."""
    mode: str = ""
    last_call: int = 0
    """The highest number of a started call."""
    fence: str | None = None
    """That of its last holder, where it was resumed."""
    ended: int = 0
    calls: dict[int, int] = field(default_factory=dict)
    """Number of a started call -> version of its end; 0 while it has none."""
    answers: dict[int, int] = field(default_factory=dict)
    """Version of a function call -> first version of the operation with its result in this run."""


class EventRules:
    """Takes the sound events of a log in order, and says which cannot stand where they do.

    Events up to version ``base`` were trimmed: what refers to them is taken on trust.
    """

    def __init__(self, base: int) -> None:
        self.runs: dict[str, RunSeen] = {}
        self._base = base
        self._kinds: dict[int, str] = {}
        self._outputs: dict[tuple[str, int], int] = {}

    @property
    def open(self) -> dict[str, RunSeen]:
        """The runs that were started and not ended."""
        return {name: run for name, run in self.runs.items() if not run.ended}

    def take(self, event: Event, first: int) -> Iterator[Fault]:
        """The faults of the next event, whose operation begins at version ``first``."""
        if event.version == first:
            yield from self.end_of_operation()
        where = f"version {event.version}"
        for wrong, right in self._faults(event, first):
            yield Fault(where, f"{event.type}: {wrong}", right)
        if event.type in _SENDABLE:
            self._kinds[event.version] = event.type

    def end_of_operation(self) -> Iterator[Fault]:
        """Outputs whose call was not completed in the operation that ends here."""
        for (run, call), version in self._outputs.items():
            yield Fault(
                f"version {version}",
                f"an output of call {call} of run {run!r} without the call's completion",
                "service-call-completed should follow in the same operation",
            )
        self._outputs.clear()

    def _faults(self, event: Event, first: int) -> Iterator[tuple[str, str]]:
        if event.run is None:
            if event.call is not None or event.type in NEEDS_RUN or event.type in NEEDS_CALL:
                yield "it names no run", "it should name the run it belongs to"
        else:
            yield from self._in_run(event, event.run)
        yield from self._references(event, first)

    def _in_run(self, event: Event, name: str) -> Iterator[tuple[str, str]]:
        run = self.runs.get(name)
        if event.type == "run-started":
            if run is not None:
                yield f"run {name!r} was started before, at version {run.first}", "a run should be started once"
                return
            if event.operation_id != name:
                yield f"run {name!r} in operation {event.operation_id!r}", "a run's id should be that of its operation"
            self.runs[name] = RunSeen(event.version, event.data.get("mode", ""))
            return
        if run is None:
            if not self._base:
                yield f"run {name!r} was never started", "its run-started should stand before"
                return
            run = self.runs[name] = RunSeen(0)
        if run.ended:
            yield f"run {name!r} had ended at version {run.ended}", "nothing should be recorded in it any more"
            return
        if event.type in NEEDS_CALL and event.call is None:
            yield "it names no service call", "it should name the number of its call"
        elif event.call is not None:
            yield from self._in_call(event, run, name, event.call)
        if event.type == "run-resumed":
            run.fence = event.data.get("fence")
        elif event.type in ("run-committed", "run-aborted"):
            run.ended = event.version

    def _in_call(self, event: Event, run: RunSeen, name: str, call: int) -> Iterator[tuple[str, str]]:
        if event.type == "service-call-started":
            if call in run.calls:
                yield f"call {call} of run {name!r} was started before", "its number should be used once in its run"
            run.calls[call] = 0
            run.last_call = max(call, run.last_call)
            return
        if call not in run.calls:
            if run.first:
                yield f"call {call} of run {name!r} was never started", "its service-call-started should stand before"
                return
            run.calls[call] = 0
        if run.calls[call]:
            yield f"call {call} of run {name!r} had ended at version {run.calls[call]}", "a call should end once"
        elif event.type in NEEDS_CALL:
            run.calls[call] = event.version
            if event.type == "service-call-completed":
                self._outputs.pop((name, call), None)
        elif event.type in _ITEMS:
            self._outputs.setdefault((name, call), event.version)

    def _references(self, event: Event, first: int) -> Iterator[tuple[str, str]]:
        data = event.data
        match event.type:
            case "service-call-started":
                for version in data.get("sends", ()):
                    yield from self._reference(event, "sends", version, _SENDABLE)
            case "function-result" if data.get("answers") is not None:
                yield from self._reference(event, "answers", data["answers"], _CALLS)
                run = self.runs.get(event.run) if event.run is not None else None
                if run is not None and data["answers"] in run.answers:
                    yield f"version {data['answers']} was answered before in its run", "a run should answer a call once"
                elif run is not None:
                    run.answers[data["answers"]] = first
            case "approval-requested" | "approval-resolved":
                yield from self._reference(event, "function_call", data.get("function_call", 0), _CALLS)
            case "history-rewound":
                yield from self._earlier(event, "to", data.get("to", 0))
            case "history-compacted":
                yield from self._earlier(event, "through", data.get("through", 0))

    def _reference(self, event: Event, name: str, version: int, kinds: frozenset[str]) -> Iterator[tuple[str, str]]:
        if self._base < version < event.version and self._kinds.get(version) not in kinds:
            yield f"{name} names version {version}", f"that should be a {' or '.join(sorted(kinds))}"
        yield from self._earlier(event, name, version)

    def _earlier(self, event: Event, name: str, version: int) -> Iterator[tuple[str, str]]:
        if version >= event.version:
            yield f"{name} names version {version}", "it should name an earlier version"
