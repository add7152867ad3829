"""The runs: one document per run, from its start to its end. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson

from eventlog.events import Event, Mode
from eventlog.messages import Json
from eventlog.store.views import Found
from projections.projection import Change, Projection, Put
from projections.views.fields import add_amounts, agent_index, amounts, escaped, labels, milliseconds, name, place, text

STARTED = "started"
"""The index of all runs, by their start."""
STATES = ("open", "committed", "aborted")
_LONGEST_ID = 1000
_LONGEST_ERROR = 1000

State = dict[str, dict[str, Any]]
"""The documents of the open runs, by the run's id."""


def state_index(state: str) -> str:
    """The index of the runs in this state."""
    return f"state:{state}"


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run as its events tell. Times are milliseconds since 1970, by its holder's clock."""

    conversation: str
    run: str
    version: int
    """The version of its run-started."""
    state: str
    """``open``, ``committed`` or ``aborted``."""
    mode: str
    agent: str | None
    labels: dict[str, str]
    parent: dict[str, str] | None
    """The ``conversation`` and ``run`` that started it."""
    started_ms: int
    """0 when its start does not tell."""
    ended_ms: int | None
    duration_ms: int | None
    completed: int
    """Its completed service calls."""
    failed: int
    """Its failed service calls."""
    usage: dict[str, int]
    """Token numbers of its completed service calls, summed."""
    run_usage: dict[str, int]
    """Token numbers that its commit told."""
    outcome: str | None
    """Of a committed run."""
    reason: str | None
    """Why it was aborted."""
    error: str | None
    """How the error begins: at most 1,000 characters."""
    resumed: int
    """How often it was taken over."""

    @classmethod
    def of(cls, found: Found) -> RunEntry:
        """The entry that a line of an index holds."""
        return cls(found.log.conversation, **orjson.loads(found.document or b""))

    def as_json(self) -> dict[str, Json]:
        """The entry as a JSON object."""
        return {field: getattr(self, field) for field in self.__slots__}


class Runs(Projection[State]):
    """One document per run, filed by its start, in all and under its state and agent. Keeps the open ones."""

    name: ClassVar[str] = "runs"

    def initial(self) -> State:
        return {}

    def apply(self, state: State, event: Event) -> Sequence[Change]:
        if event.run is None:
            return ()
        if event.type == "run-started":
            state[event.run] = _started(event)
            return (_put(state[event.run]),)
        run = state.get(event.run)
        if run is None:
            return ()
        match event.type:
            case "run-resumed":
                run["resumed"] += 1
            case "service-call-completed":
                run["completed"] += 1
                add_amounts(run["usage"], amounts(event.data.get("usage")))
            case "service-call-failed":
                run["failed"] += 1
            case "run-committed":
                run["outcome"] = name(event.data.get("outcome"))
                run["run_usage"] = amounts(event.data.get("usage"))
                _end(run, "committed", event)
            case "run-aborted":
                run["reason"] = name(event.data.get("reason"))
                run["error"] = text(event.data.get("error"), _LONGEST_ERROR)
                _end(run, "aborted", event)
            case _:
                return ()
        if run["state"] != "open":
            del state[event.run]
        return (_put(run),)


RUNS = Runs()


def _started(event: Event) -> dict[str, Any]:
    data = event.data
    return {
        "run": text(event.run, _LONGEST_ID),
        "version": event.version,
        "state": "open",
        "mode": (Mode.PER_RUN if data.get("mode") == Mode.PER_RUN else Mode.PER_SERVICE_CALL).value,
        "agent": name(data.get("agent")),
        "labels": labels(data.get("labels")),
        "parent": _parent(data.get("parent")),
        "started_ms": milliseconds(event.at) or 0,
        "ended_ms": None,
        "duration_ms": None,
        "completed": 0,
        "failed": 0,
        "usage": {},
        "run_usage": {},
        "outcome": None,
        "reason": None,
        "error": None,
        "resumed": 0,
    }


def _parent(value: Any) -> dict[str, str] | None:
    if type(value) is not dict:
        return None
    conversation, run = name(value.get("conversation"), _LONGEST_ID), name(value.get("run"), _LONGEST_ID)
    return None if conversation is None or run is None else {"conversation": conversation, "run": run}


def _end(run: dict[str, Any], state: str, event: Event) -> None:
    run["state"] = state
    run["ended_ms"] = max(milliseconds(event.at) or 0, run["started_ms"])
    run["duration_ms"] = run["ended_ms"] - run["started_ms"]


def _put(run: dict[str, Any]) -> Put:
    by = place(run["started_ms"], run["version"])
    under = {STARTED: by, state_index(run["state"]): by}
    if run["agent"] is not None:
        under[agent_index(run["agent"])] = by
    return Put(escaped(run["run"]), run, under)
