"""Random well-formed logs: what several agents, people and tools may have recorded on one conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hypothesis import strategies as st

from eventlog.edits import check_compaction
from eventlog.errors import EditRefused
from eventlog.events import DATA, Event
from eventlog.ledger import Ledger
from eventlog.messages import user
from projections.continuation import continuation
from tests.events import profiles

profiles.load()

AT = "2026-01-01T00:00:00.000000Z"
MODES = ("per-service-call", "per-run")
CALL_IDS = ("a", "b")
REPLIES = ((), ("text",), ("a",), ("a", "b"), ("a", "a"), ("text", "a", "text"), ("two-messages",), ("a", "b", "a"))


@dataclass
class OpenCall:
    """A service call under way."""

    run: str
    number: int
    sends: list[int]


@dataclass
class OpenRun:
    mode: str
    calls: int = 0
    inputs: list[int] = field(default_factory=list)
    sent: set[int] = field(default_factory=set)
    service: dict[str, Any] | None = None
    """The ids that the service gave with the last completed call of this run."""


class Choice(NamedTuple):
    """One step: what to do, and three numbers that choose among what is possible."""

    do: str
    a: int
    b: int
    c: int


class Builder:
    """Turns choices into events. A choice that is not possible is passed over.

    ``proper``: a caller continues only what it may, the chain of its own run or the last unit of a
    view that is in step, with what stands ahead of it. ``edits``: compactions that ``eventlog.edits``
    refuses are recorded all the same.
    """

    def __init__(self, *, proper: bool = False, raw_edits: bool = True) -> None:
        self.proper = proper
        self.raw_edits = raw_edits
        self.events: list[Event] = []
        self.runs: dict[str, OpenRun] = {}
        self.calls: list[OpenCall] = []
        self.services: list[dict[str, Any]] = []
        self.ledger = Ledger()

    def build(self, choices: Sequence[Choice]) -> list[Event]:
        for choice in choices:
            getattr(self, "do_" + choice.do)(choice.a, choice.b, choice.c)
        return self.events

    def add(self, kind: str, data: dict[str, Any], run: str | None = None, call: int | None = None) -> int:
        version = len(self.events) + 1
        event = Event(version, version * 7, kind, f"op{version}.0", run, call, AT, None, None, 1, data, None)
        self.events.append(event)
        self.ledger.apply(event)
        return version

    def do_start(self, a: int, b: int, c: int) -> None:
        run = f"r{len(self.events) + 1}"
        self.runs[run] = OpenRun(MODES[a % 2])
        self.add("run-started", {"mode": MODES[a % 2]}, run)

    def do_message(self, a: int, b: int, c: int) -> None:
        run = self._run(a)
        role = ("user", "system", "assistant")[b % 3]
        parts = [{"type": "text", "content": f"m{len(self.events)}.{index}"} for index in range(c % 3)]
        version = self.add("message-added", {"message_id": self._message_id(b), "role": role, "parts": parts}, run)
        if run is not None:
            self.runs[run].inputs.append(version)

    def do_outside_message(self, a: int, b: int, c: int) -> None:
        self.do_message(0, b, c)

    def do_imported_call(self, a: int, b: int, c: int) -> None:
        """A call that was posted outside any run, as by an import."""
        self.add("function-call", {"message_id": self._message_id(a), "call_id": CALL_IDS[b % 2], "name": "tool"})

    def do_result(self, a: int, b: int, c: int) -> None:
        run = self._run(a)
        data: dict[str, Any] = {"message_id": self._message_id(c), "call_id": CALL_IDS[b // 2 % 2], "output": c}
        waiting = [call for call in self.ledger.state.calls.open if call.run in self.runs]
        if waiting and a % 4:
            call = waiting[c % len(waiting)]
            run, data["call_id"] = call.run, call.call_id
        known = [event for event in self.events if event.type == "function-call"]
        if b % 2 and known:
            data["answers"] = known[-1 - c % len(known)].version
            data["call_id"] = known[-1 - c % len(known)].data["call_id"]
        version = self.add("function-result", data, run)
        if run is not None:
            self.runs[run].inputs.append(version)

    def do_call(self, a: int, b: int, c: int) -> None:
        run = self._run(a, outside=False)
        if run is None:
            return
        state = self.runs[run]
        state.calls += 1
        continues, ahead = self._continues(state, b)
        unsent = [version for version in state.inputs if version not in state.sent]
        recorded = [e.version for e in self.events if e.type in ("message-added", "function-result") and e.call is None]
        if c % 4 == 1:
            unsent.reverse()
        elif c % 4 == 2 and recorded:
            unsent.append(recorded[-1 - b % len(recorded)])
        elif c % 4 == 3 and recorded:
            unsent = [recorded[b % len(recorded)], recorded[-1 - c // 4 % len(recorded)]]
        sends = list(dict.fromkeys((*ahead, *unsent)))
        self.calls.append(OpenCall(run, state.calls, sends))
        self.add("service-call-started", {"sends": sends, "continues": continues}, run, state.calls)

    def do_complete(self, a: int, b: int, c: int) -> None:
        if not self.calls:
            return
        call = self.calls.pop(-1 - a % len(self.calls))
        message_id = f"reply{len(self.events)}"
        for kind in REPLIES[b % len(REPLIES)]:
            if kind in ("text", "two-messages"):
                parts = [{"type": "text", "content": f"t{len(self.events)}"}]
                data: dict[str, Any] = {"message_id": message_id, "role": "assistant", "parts": parts}
                self.add("message-added", data, call.run, call.number)
                if kind == "two-messages":
                    self.add("message-added", {**data, "message_id": message_id + "b"}, call.run, call.number)
            else:
                data = {"message_id": message_id, "call_id": kind, "name": "tool"}
                self.add("function-call", data, call.run, call.number)
        service = {"response": f"s{len(self.events) + 1}"} if c % 5 else None
        state = self.runs[call.run]
        state.sent.update(call.sends)
        state.service = service
        if service:
            self.services.append(service)
        self.add("service-call-completed", {"service": service} if service else {}, call.run, call.number)

    def do_call_completed(self, a: int, b: int, c: int) -> None:
        """A call that is started and completed with nothing between."""
        before = len(self.calls)
        self.do_call(a, b, c)
        if len(self.calls) > before:
            self.do_complete(0, b + c, c)

    def do_fail(self, a: int, b: int, c: int) -> None:
        if not self.calls:
            return
        call = self.calls.pop(-1 - a % len(self.calls))
        partial = [{"type": "text", "content": "half"}, {"type": "tool_call", "id": "a", "name": "tool"}][: c % 3]
        data = {"error": "no", "outcome": ("refused", "unknown")[b % 2], "partial": partial}
        self.add("service-call-failed", data, call.run, call.number)

    def do_commit(self, a: int, b: int, c: int) -> None:
        self._end(self._run(a, outside=False), "run-committed", {"outcome": "completed"})

    def do_abort(self, a: int, b: int, c: int) -> None:
        self._end(self._run(a, outside=False), "run-aborted", {"reason": "failed"})

    def do_rewind(self, a: int, b: int, c: int) -> None:
        if not self.events:
            return
        to = len(self.events) - a % (len(self.events) + 1)
        for run in list(self.runs):
            self._end(run, "run-aborted", {"reason": "superseded"})
        self.add("history-rewound", {"to": to})

    def do_compact(self, a: int, b: int, c: int) -> None:
        """A compaction that may be made: the first that is allowed, looking from somewhere."""
        versions = range(1, len(self.events) + 1)
        summary = user("sum")
        for through in [*versions[a % (len(versions) + 1) :], *versions[: a % (len(versions) + 1)]]:
            try:
                check_compaction(self.ledger, through, [summary.as_json()])
            except EditRefused:
                continue
            self._compact(through, 1 + c % 2)
            return

    def do_compact_raw(self, a: int, b: int, c: int) -> None:
        if self.events and self.raw_edits:
            self._compact(1 + a % len(self.events), c % 3)

    def do_approval(self, a: int, b: int, c: int) -> None:
        known = [event.version for event in self.events if event.type == "function-call"]
        if known:
            version = known[-1 - a % len(known)]
            if b % 3:
                self.add("approval-requested", {"function_call": version})
            else:
                self.add("approval-resolved", {"function_call": version, "decision": ("approved", "denied")[c % 2]})

    def do_other(self, a: int, b: int, c: int) -> None:
        self.add(("conversation-annotated", "x-unknown")[a % 2], {"title": "t"})

    def close_all(self) -> None:
        """End every run that is open."""
        for index, run in enumerate(list(self.runs)):
            self._end(run, ("run-committed", "run-aborted")[index % 2], {})

    def _run(self, a: int, *, outside: bool = True) -> str | None:
        choices: list[str | None] = [*([None] if outside else []), *self.runs]
        return choices[a % len(choices)] if choices else None

    def _message_id(self, number: int) -> str:
        """Often one of its own, sometimes that of other messages."""
        return f"m{len(self.events)}" if number % 4 else "shared"

    def _end(self, run: str | None, kind: str, data: dict[str, Any]) -> None:
        if run is not None:
            del self.runs[run]
            self.calls = [call for call in self.calls if call.run != run]
            self.add(kind, data, run)

    def _compact(self, through: int, messages: int) -> None:
        summary = {"role": "user", "parts": [{"type": "text", "content": "sum"}]}
        self.add("history-compacted", {"through": through, "messages": [summary] * messages})

    def _continues(self, state: OpenRun, number: int) -> tuple[dict[str, Any] | None, tuple[int, ...]]:
        how = continuation(self.ledger)
        if number % 4 == 1 and state.service is not None:
            return state.service, ()
        if number % 4 == 2 and how.service is not None and (how.in_step or not self.proper):
            return how.service, how.ahead if number % 8 == 2 else ()
        if number % 4 == 3 and self.services and not self.proper:
            return self.services[-1 - number // 4 % len(self.services)], ()
        return None, ()


_WEIGHTS = {
    "start": 3,
    "message": 3,
    "outside_message": 1,
    "imported_call": 1,
    "result": 7,
    "call": 2,
    "complete": 2,
    "call_completed": 8,
    "fail": 1,
    "commit": 2,
    "abort": 1,
    "rewind": 1,
    "compact": 1,
    "compact_raw": 1,
    "approval": 1,
    "other": 1,
}
_DOING = [name for name, weight in _WEIGHTS.items() for _ in range(weight)]
_NUMBER = st.integers(0, 31)
_CHOICE = st.builds(Choice, st.sampled_from(_DOING), _NUMBER, _NUMBER, _NUMBER)
CHOICES = st.lists(_CHOICE, max_size=10) | st.lists(_CHOICE, min_size=30, max_size=60)
"""Short ones, to which a failure shrinks, and long ones, in which much can meet."""


def logs(**options: bool) -> st.SearchStrategy[list[Event]]:
    """Well-formed logs; the options are those of ``Builder``."""
    return CHOICES.map(lambda choices: Builder(**options).build(choices))


def closed_logs() -> st.SearchStrategy[list[Event]]:
    """Well-formed logs at whose end every run is closed."""

    def build(choices: list[Choice]) -> list[Event]:
        builder = Builder()
        builder.build(choices)
        builder.close_all()
        return builder.events

    return CHOICES.map(build)


WRONG: tuple[Any, ...] = (
    None,
    True,
    0,
    -2,
    3,
    60,
    1 << 63,
    2.5,
    "",
    "x",
    "per-run",
    "tool_call",
    [],
    {},
    [[]],
    [{}],
    ["x", None, 3, {}, []],
    {"x": [1], "type": 5, "parts": 5},
    [{"type": "text", "content": 5}, {"type": "tool_call", "id": {}}, {"type": []}, 7, None],
    [{"role": [], "parts": 5}, {"parts": [5]}, {"parts": {"a": 1}}],
)
"""JSON values, most of them of the wrong type wherever they are put."""
_WRONG = st.sampled_from(WRONG)
_FIELDS = sorted({name for shape in DATA.values() for name in shape.__annotations__})
_KINDS = [*DATA, "x-unknown"]


@st.composite
def broken_logs(draw: st.DrawFn) -> list[Event]:
    """Logs in which events are missing, repeated or invented, and fields hold what they should not."""
    events = draw(logs())
    broken: list[Event] = []
    for event in events:
        match draw(st.integers(0, 9)):
            case 0:
                continue
            case 1:
                broken += [event, event]
            case 2 | 3:
                data = {**event.data, draw(st.sampled_from(sorted(event.data) or _FIELDS)): draw(_WRONG)}
                broken.append(event._replace(data=data))
            case 4:
                data = {name: value for name, value in event.data.items() if draw(st.booleans())}
                broken.append(event._replace(data=data))
            case 5:
                broken += [event, draw(_invented(event))]
            case _:
                broken.append(event)
    return [event._replace(version=index + 1) for index, event in enumerate(broken)]


def _invented(event: Event) -> st.SearchStrategy[Event]:
    return st.builds(
        lambda kind, data, run, call: event._replace(type=kind, data=data, run=run, call=call),
        st.sampled_from(_KINDS),
        st.dictionaries(st.sampled_from(_FIELDS), _WRONG, max_size=6),
        st.sampled_from([None, event.run, "nobody"]),
        st.sampled_from([None, event.call, 1, 7]),
    )
