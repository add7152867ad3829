"""What a run that was left open holds, and which calls stay open when it is given up. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from eventlog import recording
from eventlog.events import Draft
from eventlog.fold import Calls
from eventlog.identity import Cursor
from eventlog.ledger import Ledger
from eventlog.messages import Json
from eventlog.progress import FunctionCall, Progress
from eventlog.store.port import OpenRun
from projections.repair import NO_RESULT


@dataclass(frozen=True, slots=True)
class Doubt:
    """A service call that was started and not ended: nobody can tell whether the service kept it."""

    number: int
    started: int
    """The version of its service-call-started."""

    def as_json(self) -> dict[str, Json]:
        """The call as a JSON object."""
        return {"number": self.number, "started": self.started}


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A function call of a completed service call without a recorded result."""

    call: FunctionCall
    awaits_approval: bool

    def as_json(self) -> dict[str, Json]:
        """The call as a JSON object."""
        return {**self.call._asdict(), "awaits_approval": self.awaits_approval}


@dataclass(frozen=True, slots=True)
class UnsentResult:
    """A recorded result that no completed service call of the run has carried."""

    version: int
    answers: int | None
    """The version of its function call; None when it is a call of another run."""

    def as_json(self) -> dict[str, Json]:
        """The result as a JSON object."""
        return {"version": self.version, "answers": self.answers}


@dataclass(frozen=True, slots=True)
class LeftRun:
    """An open run: who holds it, how far it has come, what it left behind. Times are by the server's clock."""

    run: str
    mode: str
    agent: str | None
    exclusive: bool
    first: int
    """The version of its run-started."""
    holder: str
    since_ms: int
    """Since when its holder has it, in milliseconds since 1970."""
    lease_ms: int
    """Until when it is held, in milliseconds since 1970."""
    expired: bool
    """Its lease is over: it may be taken over or aborted."""
    age_ms: int
    """How long its holder has had it, by the server's clock."""
    last_completed: int
    """The number of its newest completed service call, 0 when there is none."""
    in_doubt: tuple[Doubt, ...]
    unanswered: tuple[Unanswered, ...]
    unsent_results: tuple[UnsentResult, ...]

    @property
    def approvals(self) -> tuple[FunctionCall, ...]:
        """The function calls that wait for approval."""
        return tuple(left.call for left in self.unanswered if left.awaits_approval)

    def as_json(self) -> dict[str, Json]:
        """The run as a JSON object."""
        return {
            "run": self.run,
            "mode": self.mode,
            "agent": self.agent,
            "exclusive": self.exclusive,
            "first": self.first,
            "holder": self.holder,
            "since_ms": self.since_ms,
            "lease_ms": self.lease_ms,
            "expired": self.expired,
            "age_ms": self.age_ms,
            "last_completed": self.last_completed,
            "in_doubt": [doubt.as_json() for doubt in self.in_doubt],
            "unanswered": [left.as_json() for left in self.unanswered],
            "unsent_results": [result.as_json() for result in self.unsent_results],
            "approvals": [call.version for call in self.approvals],
        }


@dataclass(frozen=True, slots=True)
class Recovery:
    """What the open runs of one conversation left behind, as of ``cursor``."""

    tenant: str
    conversation: str
    cursor: Cursor
    runs: tuple[LeftRun, ...]

    @property
    def expired(self) -> tuple[LeftRun, ...]:
        """The runs whose lease is over."""
        return tuple(run for run in self.runs if run.expired)

    def as_json(self) -> dict[str, Json]:
        """The conversation and its open runs as a JSON object."""
        return {
            "tenant": self.tenant,
            "conversation": self.conversation,
            "cursor": str(self.cursor),
            "version": self.cursor.version,
            "runs": [run.as_json() for run in self.runs],
        }


class Why(StrEnum):
    """How a call that stays open in the service view will be answered."""

    SEALED = "sealed"
    """By the synthetic result that the seal records."""
    RECORDED = "recorded"
    """By a result that is recorded and was not sent."""
    APPROVAL = "approval"
    """Once a person has decided."""
    OTHER_RUN = "other-run"
    """By another run, which is open."""


@dataclass(frozen=True, slots=True)
class StillOpen:
    """A function call in the service view that no result in the view answers."""

    version: int
    call_id: str
    run: str | None
    why: Why

    def as_json(self) -> dict[str, Json]:
        """The call as a JSON object."""
        return {"version": self.version, "call_id": self.call_id, "run": self.run, "why": self.why.value}


@dataclass(frozen=True, slots=True)
class Closed:
    """What an abort or a seal did. ``version`` is that of the run-aborted event."""

    run: str
    reason: str
    """``expired``, ``superseded`` (by force) or ``sealed``."""
    version: int
    open_calls: tuple[StillOpen, ...] = ()
    """Of a seal: the calls that stay open in the service view, in the order in which they entered."""

    def as_json(self) -> dict[str, Json]:
        """What was done as a JSON object."""
        return {
            "run": self.run,
            "reason": self.reason,
            "version": self.version,
            "open_calls": [call.as_json() for call in self.open_calls],
        }


@dataclass(frozen=True, slots=True)
class Swept:
    """A conversation with open runs, as it was found, and what was done about them."""

    conversation: str
    found: Recovery | None
    """None when it could not be read."""
    done: tuple[Closed, ...] = ()
    problem: str | None = None
    """Why this conversation could not be dealt with; the sweep goes on with the others."""

    def as_json(self) -> dict[str, Json]:
        """The conversation as a JSON object."""
        return {
            "conversation": self.conversation,
            "found": None if self.found is None else self.found.as_json(),
            "done": [closed.as_json() for closed in self.done],
            "problem": self.problem,
        }


def left_run(held: OpenRun, progress: Progress, *, now_ms: int) -> LeftRun:
    """The run as the head knows it and as its events tell."""
    return LeftRun(
        run=held.run,
        mode=progress.mode.value,
        agent=progress.agent,
        exclusive=held.exclusive,
        first=held.first,
        holder=held.holder,
        since_ms=held.since_ms,
        lease_ms=held.lease_ms,
        expired=held.lease_ms <= now_ms,
        age_ms=max(now_ms - held.since_ms, 0),
        last_completed=progress.last_completed,
        in_doubt=tuple(Doubt(number, started) for number, started in sorted(progress.in_doubt.items())),
        unanswered=tuple(
            Unanswered(call, version in progress.awaits_approval)
            for version, call in sorted(progress.unanswered.items())
        ),
        unsent_results=tuple(
            UnsentResult(version, answers or None) for version, answers in sorted(progress.unsent_results.items())
        ),
    )


def still_open(ledger: Ledger, run: str) -> tuple[StillOpen, ...]:
    """The calls that stay open in the service view when ``run`` is aborted, and who answers them.

    Those marked ``sealed`` are the calls that a repair would answer and that have no recorded
    result: of a per-run run none, for it leaves nothing in the view.
    """
    state, recorded = ledger.state, _recorded(ledger)

    def why(version: int, owner: str | None) -> Why:
        if version in state.awaiting:
            return Why.APPROVAL
        if version in recorded:
            return Why.RECORDED
        return Why.OTHER_RUN if owner != run and owner in state.runs else Why.SEALED

    return tuple(
        StillOpen(call.version, call.call_id, call.run, why(call.version, call.run)) for call in state.calls.open
    )


def synthetic_results(calls: tuple[StillOpen, ...], operation_id: str) -> Iterator[Draft]:
    """A marked result outside any run for each call that is to be sealed."""
    for call in calls:
        if call.why is Why.SEALED:
            yield recording.result(
                call.call_id,
                NO_RESULT,
                f"{operation_id}.{call.version}",
                answers=call.version,
                is_error=True,
                synthetic=True,
            )


def _recorded(ledger: Ledger) -> set[int]:
    """The open calls for which a result is recorded: what a run's first call would carry."""
    calls = Calls(list(ledger.state.calls.open))
    found = set()
    for result in sorted(ledger.unentered_results(), key=lambda item: (item.synthetic, item.version)):
        call = calls.closed_by(result)
        if call is not None and call.version < result.version:
            calls.open.remove(call)
            found.add(call.version)
    return found
