"""How far a run has come, told from its events. Pure."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from eventlog.events import Event, Mode, versions
from eventlog.messages import Json


class FunctionCall(NamedTuple):
    """A tool call of a completed service call, to be answered with ``run.add_result``."""

    version: int
    call_id: str
    name: str
    arguments: Json


@dataclass(slots=True)
class Progress:
    """What a run has done so far: what its next holder must know in order to go on."""

    run: str
    mode: Mode = Mode.PER_SERVICE_CALL
    agent: str | None = None
    first: int = 0
    """The version of its run-started."""
    last_call: int = 0
    """The number of its newest service call, 0 when it made none."""
    last_completed: int = 0
    """The number of its newest completed service call, 0 when there is none."""
    in_doubt: dict[int, int] = field(default_factory=dict)
    """Service calls that were started and not ended: number -> version of the start."""
    unsent: list[int] = field(default_factory=list)
    """What its next service call sends: the versions of its inputs, and of results recorded outside it for
    its calls, that no completed service call has carried, in log order."""
    sent: set[int] = field(default_factory=set)
    """The versions of what its completed service calls have carried."""
    asked: set[str] = field(default_factory=set)
    """The ids of its function calls."""
    unanswered: dict[int, FunctionCall] = field(default_factory=dict)
    """Its function calls without a recorded result, by version."""
    unsent_results: dict[int, int] = field(default_factory=dict)
    """Recorded results that no completed service call has carried: version -> version of the call, or 0."""
    awaits_approval: set[int] = field(default_factory=set)
    """The versions of its unanswered function calls that wait for approval."""
    ended: str = ""
    """``committed``, ``aborted``, or empty while it is open."""
    _sends: dict[int, list[int]] = field(default_factory=dict)
    _outputs: dict[int, list[FunctionCall]] = field(default_factory=dict)
    _completed_calls: set[int] = field(default_factory=set)

    def apply(self, event: Event) -> None:
        """Take the next event of the log; those of other runs count where they concern this one."""
        if event.type == "function-result":
            self._result(event)
        elif event.type in ("approval-requested", "approval-resolved"):
            call = event.data.get("function_call")
            if type(call) is not int:
                return
            if event.type == "approval-requested" and call in self.unanswered:
                self.awaits_approval.add(call)
            else:
                self.awaits_approval.discard(call)
        elif event.run == self.run:
            self._own(event)

    def _own(self, event: Event) -> None:
        data, number = event.data, event.call or 0
        match event.type:
            case "run-started":
                self.mode = Mode.PER_RUN if data.get("mode") == Mode.PER_RUN else Mode.PER_SERVICE_CALL
                self.agent, self.first = data.get("agent"), event.version
            case "message-added" | "function-call" if event.call is None:
                self._add(event.version)
            case "function-call" if number not in self._completed_calls:
                call = FunctionCall(
                    event.version, str(data.get("call_id", "")), str(data.get("name", "")), data.get("arguments")
                )
                self._outputs.setdefault(number, []).append(call)
            case "service-call-started" if number not in self._completed_calls:
                self.last_call = max(self.last_call, number)
                self.in_doubt[number] = event.version
                self._sends[number] = versions(data.get("sends"))
            case "service-call-completed" if number not in self._completed_calls:
                self._completed(number)
            case "service-call-failed":
                self.in_doubt.pop(number, None)
            case "run-committed" | "run-aborted":
                self.ended = event.type.removeprefix("run-")

    def _add(self, version: int) -> None:
        if version not in self.sent and version not in self.unsent:
            insort(self.unsent, version)

    def _completed(self, number: int) -> None:
        self._completed_calls.add(number)
        self.in_doubt.pop(number, None)
        self.last_completed = max(self.last_completed, number)
        self.sent.update(self._sends.pop(number, ()))
        self.unsent = [version for version in self.unsent if version not in self.sent]
        self.unsent_results = {result: call for result, call in self.unsent_results.items() if result not in self.sent}
        calls = self._outputs.pop(number, ())
        # New dicts, never changed ones: callers go through these while results are recorded.
        self.unanswered = {**self.unanswered, **{call.version: call for call in calls}}
        self.asked.update(call.call_id for call in calls)

    def _result(self, event: Event) -> None:
        answers = event.data.get("answers")
        if type(answers) is not int:
            answers = None
        if answers is None and event.run == self.run:
            same = [call.version for call in self.unanswered.values() if call.call_id == event.data.get("call_id")]
            answers = same[0] if same else None
        call = self.unanswered.get(answers) if answers is not None else None
        if call is not None:
            self.unanswered = {version: one for version, one in self.unanswered.items() if version != call.version}
            self.awaits_approval.discard(call.version)
        if (event.run == self.run or call is not None) and event.version not in self.sent:
            self._add(event.version)
            self.unsent_results = {**self.unsent_results, event.version: call.version if call is not None else 0}


def progress(events: Iterable[Event], run: str) -> Progress:
    """How far the run has come; ``events`` must begin at or before its first."""
    found = Progress(run)
    for event in events:
        found.apply(event)
    return found
