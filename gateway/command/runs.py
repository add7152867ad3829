"""A conversation run by run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from eventlog.events import Event, Mode
from eventlog.messages import Json
from eventlog.store.port import OpenRun
from projections.explain import IN_VIEW, Fate


@dataclass(slots=True)
class RunSummary:
    """A run as its events tell."""

    run: str
    first: int
    """The version of its start."""
    mode: str
    agent: str | None
    state: str = "open"
    """``open``, ``committed`` or ``aborted``."""
    reason: str | None = None
    """Why it was aborted, or how it was committed."""
    completed: int = 0
    failed: int = 0
    in_doubt: int = 0
    """The service calls that were started and have no end."""
    holder: OpenRun | None = None

    def as_json(self) -> dict[str, Json]:
        """The run as a JSON object; ``holder`` and ``lease_until`` only of an open one."""
        document: dict[str, Json] = {
            "run": self.run,
            "mode": self.mode,
            "state": self.state,
            "reason": self.reason,
            "agent": self.agent,
            "calls": {"completed": self.completed, "failed": self.failed, "in_doubt": self.in_doubt},
            "first": self.first,
        }
        if self.holder is not None:
            document |= {
                "holder": self.holder.holder,
                "exclusive": self.holder.exclusive,
                "lease_until": moment(self.holder.lease_ms),
            }
        return document


@dataclass(slots=True)
class RunFates:
    """What became of all that one run recorded; or, without a run, of what stood outside any."""

    run: RunSummary | None
    fates: list[Fate] = field(default_factory=list)

    def as_json(self) -> dict[str, Json]:
        """The run, and each thing with whether it is kept and why not."""
        return {
            "run": None if self.run is None else self.run.as_json(),
            "fates": [
                {
                    "version": fate.version,
                    "kind": fate.kind,
                    "what": fate.what,
                    "call": fate.call,
                    "kept": fate.fate == IN_VIEW,
                    "reason": None if fate.fate == IN_VIEW else fate.fate,
                }
                for fate in self.fates
            ],
        }


def summaries(events: Iterable[Event], open_runs: Sequence[OpenRun] = ()) -> list[RunSummary]:
    """The runs of these events, in the order of their start. ``open_runs`` tells who holds which."""
    runs: dict[str, RunSummary] = {}
    pending: dict[str, set[int]] = {}
    for event in events:
        if event.run is None:
            continue
        if event.type == "run-started":
            mode = event.data.get("mode", Mode.PER_SERVICE_CALL.value)
            runs[event.run] = RunSummary(event.run, event.version, mode, event.data.get("agent"))
            pending[event.run] = set()
        run = runs.get(event.run)
        if run is not None:
            _count(run, pending[event.run], event)
    for name, calls in pending.items():
        runs[name].in_doubt = len(calls)
    for held in open_runs:
        if held.run in runs and runs[held.run].state == "open":
            runs[held.run].holder = held
    return list(runs.values())


def by_run(found: Iterable[Fate], runs: Iterable[RunSummary]) -> list[RunFates]:
    """The fates run by run, in log order of their beginnings; of what stood outside any run, together."""
    groups = {run.run: RunFates(run) for run in runs}
    starts: dict[str | None, int] = {run.run: run.first for run in (group.run for group in groups.values()) if run}
    outside = RunFates(None)
    for fate in found:
        group = groups.get(fate.run or "", outside)
        group.fates.append(fate)
        if group is outside:
            starts.setdefault(None, fate.version)
    everything = [*groups.values(), *([outside] if outside.fates else [])]
    return sorted(everything, key=lambda group: starts[group.run.run if group.run else None])


def moment(milliseconds: int) -> str:
    """Milliseconds since 1970 as a time, RFC 3339 in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _count(run: RunSummary, pending: set[int], event: Event) -> None:
    if event.type in ("run-committed", "run-aborted"):
        run.state = event.type.removeprefix("run-")
        run.reason = event.data.get("reason" if run.state == "aborted" else "outcome")
    elif event.call is None:
        return
    elif event.type == "service-call-started":
        pending.add(event.call)
    elif event.call in pending and event.type == "service-call-completed":
        pending.discard(event.call)
        run.completed += 1
    elif event.call in pending and event.type == "service-call-failed":
        pending.discard(event.call)
        run.failed += 1
