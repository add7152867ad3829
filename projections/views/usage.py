"""The usage: tokens and service calls, summed per day, model and agent. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import orjson

from eventlog.events import Event
from projections.projection import Add, Change, Projection
from projections.views.fields import amounts, moment, name

SERVICE_CALLS = "service_calls"
"""What completed service calls are counted under. No token number has this name."""

State = dict[str, dict[str, Any]]
"""Of each open run its ``agent``, and the ``models`` that its open service calls asked for, by their number."""


class SumName(NamedTuple):
    """What a sum is of. None stands for what no event told."""

    day: str | None
    """Of the completion, in UTC: ``2026-12-01``."""
    model: str | None
    agent: str | None
    field: str
    """``input_tokens``, ``output_tokens``, another token number of the usage, or ``service_calls``."""

    def pack(self) -> str:
        """A JSON array."""
        return orjson.dumps(list(self)).decode()

    @classmethod
    def unpack(cls, packed: str) -> SumName:
        """The inverse of ``pack``."""
        return cls(*orjson.loads(packed))


class Usage(Projection[State]):
    """Sums of what completed service calls used. What a rewind or an abort takes back was used all the same."""

    name: ClassVar[str] = "usage"

    def initial(self) -> State:
        return {}

    def apply(self, state: State, event: Event) -> Sequence[Change]:
        if event.run is None:
            return ()
        match event.type:
            case "run-started":
                state[event.run] = {"agent": name(event.data.get("agent")), "models": {}}
            case "run-committed" | "run-aborted":
                state.pop(event.run, None)
            case "service-call-started" if event.run in state:
                state[event.run]["models"][str(event.call)] = name(event.data.get("model"))
            case "service-call-failed" if event.run in state:
                state[event.run]["models"].pop(str(event.call), None)
            case "service-call-completed":
                return _completed(state.get(event.run, {}), event)
        return ()


USAGE = Usage()


def _completed(run: dict[str, Any], event: Event) -> Sequence[Change]:
    asked = run["models"].pop(str(event.call), None) if run else None
    model = name(event.data.get("model")) or asked
    at = moment(event.at)
    day = None if at is None else at.date().isoformat()
    agent = run.get("agent")
    used = {SERVICE_CALLS: 1, **amounts(event.data.get("usage"))}
    return [Add(SumName(day, model, agent, field).pack(), amount) for field, amount in used.items() if amount]
