"""The open calls: one document per function call that no result in the history answers. Pure.

A call is open in the service view, or will be once its per-run run is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import orjson

from eventlog.carry import recorded_results
from eventlog.events import Event
from eventlog.fold import Calls, Item
from eventlog.messages import Json
from eventlog.store.views import Found
from projections.projection import REFOLD, Change, Drop, Projection, Put, canonical
from projections.standing import Standing
from projections.views.fields import milliseconds, name, place, text

SINCE = "since"
"""The index of the calls that have no recorded result or wait for approval, by when they were made."""
APPROVAL = "approval"
"""The index of those that wait for approval, by since when they wait."""
OPEN_RUN = "open-run"
"""The index of those whose run is open, with or without a recorded result, by when they were made."""
FINISHED_RUN = "finished-run"
"""The index of all others, by when they were made."""
_LONGEST_ID = 1000
_MATTERS = frozenset(
    {
        "run-started",
        "function-call",
        "function-result",
        "service-call-completed",
        "run-committed",
        "run-aborted",
        "approval-requested",
        "approval-resolved",
    }
)
"""What can change a document without a refold."""


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A function call without a result in the history. Times are milliseconds since 1970, by its writers' clocks."""

    conversation: str
    version: int
    call_id: str
    name: str
    run: str | None
    """None when it was posted outside any run."""
    agent: str | None
    in_open_run: bool
    since_ms: int
    """When it was recorded; 0 when its event does not tell."""
    result: int | None
    """The version of the recorded result that no service call in the history has carried."""
    awaits_since_ms: int | None
    """Since when it waits for approval; None when it does not."""

    @classmethod
    def of(cls, found: Found) -> OpenCall:
        """The call that a line of an index holds."""
        return cls(found.log.conversation, **orjson.loads(found.document or b""))

    def as_json(self) -> dict[str, Json]:
        """The call as a JSON object."""
        return {field: getattr(self, field) for field in self.__slots__}


@dataclass(slots=True)
class State:
    """What must be known of a conversation: what is open, and what is told of it."""

    standing: Standing = field(default_factory=Standing)
    agents: dict[str, str] = field(default_factory=dict)
    """Of the open runs that have one, the agent."""
    told: dict[int, dict[str, Json]] = field(default_factory=dict)
    """Of each call that is open or may become so, what its own event tells."""
    requested: dict[int, list[int]] = field(default_factory=dict)
    """Of each call that waits for approval, the version and the time of the request."""
    filed: dict[str, Json] = field(default_factory=dict)
    """The documents as they stand in the indexes, by key."""


class OpenCalls(Projection[State]):
    """One document per open call, filed by when it was made, and by whether its run is open."""

    name: ClassVar[str] = "open_calls"

    def initial(self) -> State:
        return State()

    def apply(self, state: State, event: Event) -> Sequence[Change]:
        _note(state, event)
        if state.standing.apply(event) is None:
            return REFOLD
        if event.type not in _MATTERS:
            return ()
        if event.type == "function-call" and event.call is not None and event.run in state.standing.state.runs:
            return ()  # output of a service call that has not completed
        changes = _changes(state)
        return REFOLD if changes is None else changes

    def refold(self, events: Sequence[Event]) -> tuple[State, Iterable[Change]]:
        state = State(Standing.of(events)[0])
        for event in events:
            _note(state, event)
        return state, _changes(state) or ()

    def pack(self, state: State) -> bytes:
        return canonical(
            {
                "standing": state.standing.pack().decode(),
                "agents": state.agents,
                "told": list(state.told.values()),
                "requested": [[version, *request] for version, request in state.requested.items()],
                "filed": list(state.filed.values()),
            }
        )

    def unpack(self, kept: bytes) -> State:
        fields = orjson.loads(kept)
        return State(
            Standing.unpack(fields["standing"].encode()),
            fields["agents"],
            {told["version"]: told for told in fields["told"]},
            {version: request for version, *request in fields["requested"]},
            {_key(document): document for document in fields["filed"]},
        )


OPEN_CALLS = OpenCalls()


def _note(state: State, event: Event) -> None:
    """Keep what the event itself tells of a call, before it is known whether it matters."""
    if event.type == "run-started" and event.run is not None:
        agent = name(event.data.get("agent"))
        state.agents.pop(event.run, None)
        if agent is not None:
            state.agents[event.run] = agent
    elif event.type == "function-call":
        state.told[event.version] = {
            "version": event.version,
            "call_id": text(event.data.get("call_id"), _LONGEST_ID) or "",
            "name": text(event.data.get("name")) or "",
            "run": text(event.run, _LONGEST_ID),
            "agent": state.agents.get(event.run or ""),
            "since_ms": milliseconds(event.at) or 0,
        }
    elif event.type == "approval-requested":
        call = event.data.get("function_call")
        if type(call) is int:
            state.requested[call] = [event.version, milliseconds(event.at) or 0]


def _changes(state: State) -> list[Change] | None:
    """What is to be filed anew; None when something is not told of a call that is open."""
    fold = state.standing.state
    pending = _pending(state)
    _forget(state)
    if not fold.awaiting.keys() <= state.requested.keys():
        return None
    if not fold.calls.open and not pending and not state.filed:
        return []
    if not all(item.version in state.told for item in (*fold.calls.open, *pending)):
        return None
    return list(_differences(state, pending))


def _forget(state: State) -> None:
    """Forget what is told of calls that are closed and runs that are not open."""
    fold = state.standing.state
    if state.agents:
        state.agents = {run: agent for run, agent in state.agents.items() if run in fold.runs}
    if state.requested:
        awaiting = fold.awaiting
        state.requested = {call: kept for call, kept in state.requested.items() if awaiting.get(call) == kept[0]}
    if state.told:
        live = {item.version for item in fold.calls.open}
        for run in fold.runs.values():
            for outputs in (*[call.outputs for call in run.calls.values()], *[unit.outputs for unit in run.units]):
                live.update([item.version for item in outputs])
        # An input that is a call enters with the service call that sends it.
        unsent = state.standing.unsent
        state.told = {version: told for version, told in state.told.items() if version in live or version in unsent}


def _pending(state: State) -> list[Item]:
    """The calls that the open per-run runs would leave open in the view if each were committed now."""
    standing, found = state.standing, []
    for run in standing.state.runs.values():
        if not run.units:
            continue
        calls = Calls(list(standing.state.calls.open), dict(standing.state.calls.early))
        entered: set[int] = set()
        for unit in sorted(run.units, key=lambda unit: unit.call):
            inputs = [standing.unsent[version] for version in unit.sends if version in standing.unsent]
            new = [item for item in (*inputs, *unit.outputs) if item.version not in entered]
            entered.update(item.version for item in new)
            calls.enter(new)
        found += [item for item in calls.open if item.version in entered]
    return found


def _documents(state: State, pending: Sequence[Item]) -> dict[str, Json]:
    fold = state.standing.state
    results = {call: result.version for call, result in recorded_results(state.standing).items()}
    if pending:
        results |= _results_of(state, pending)
    documents: dict[str, Json] = {}
    for item in (*fold.calls.open, *pending):
        request = state.requested.get(item.version)
        document = {
            **state.told[item.version],
            "in_open_run": item.run in fold.runs,
            "result": results.get(item.version),
            "awaits_since_ms": None if request is None else request[1],
        }
        documents[_key(document)] = document
    return documents


def _results_of(state: State, pending: Sequence[Item]) -> dict[int, int]:
    """The recorded results of calls that have yet to enter: those that name one, or are of its run and id."""
    units = [unit for run in state.standing.state.runs.values() for unit in run.units]
    carried = {version for unit in units for version in unit.sends}
    results = [item for item in state.standing.unentered_results() if item.version not in carried]
    calls = Calls(list(pending))
    found: dict[int, int] = {}
    for result in sorted(results, key=lambda item: (item.synthetic, item.version)):
        call = calls.closed_by(result)
        is_meant = call is not None and (result.answers is not None or call.run == result.run)
        if call is not None and is_meant and call.version < result.version:
            calls.open.remove(call)
            found[call.version] = result.version
    return found


def _differences(state: State, pending: Sequence[Item]) -> Iterator[Change]:
    """From what is filed to what should be."""
    filed, state.filed = state.filed, _documents(state, pending)
    for key in filed.keys() - state.filed.keys():
        yield Drop(key)
    for key, document in state.filed.items():
        if filed.get(key) != document:
            yield Put(key, document, _under(document))


def _under(document: dict[str, Any]) -> dict[str, str]:
    by = place(document["since_ms"], document["version"])
    under = {OPEN_RUN if document["in_open_run"] else FINISHED_RUN: by}
    if document["awaits_since_ms"] is not None:
        under[APPROVAL] = place(document["awaits_since_ms"], document["version"])
    if document["result"] is None or document["awaits_since_ms"] is not None:
        under[SINCE] = by
    return under


def _key(document: dict[str, Any]) -> str:
    return str(document["version"])
