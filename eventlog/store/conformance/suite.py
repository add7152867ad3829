"""What the tests of the suite share: the hooks that a subclass fills, and ways to ask a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from eventlog.codec import encode
from eventlog.errors import EventLogError
from eventlog.events import Draft
from eventlog.identity import Cursor, LogId
from eventlog.store.port import ANY, Append, Appended, Entry, Expected, Head, Limits, LogStore, RunClaim, Step

PARTITIONS = 16
"""How many partitions the store under test has."""

LIMITS = Limits(events=64, event_bytes=4_096, operation_bytes=16_384)
"""The limits of the store under test: small, so that their edges are cheap to reach."""

LEASE_MS = 60_000
"""A lease that no test outlives."""

LOG = LogId("acme", "support")

Refusal = TypeVar("Refusal", bound=EventLogError)


class FeedEntry(NamedTuple):
    """One append as its partition's feed names it."""

    path: str
    first: int
    events: int
    kinds: str
    stamp: int


class Known(NamedTuple):
    """All that a store tells of one log."""

    head: Head
    entries: list[Entry]
    feed: list[FeedEntry]


class Suite:
    """The hooks: preconditions that the port cannot set, and the feed, which it does not show."""

    async def mark_deleted(self, store: LogStore, log: LogId) -> None:
        """Make the store take no more appends to this log, which may never have been written."""
        raise NotImplementedError

    async def trim(self, store: LogStore, log: LogId, version: int) -> None:
        """Forget the events up to ``version``, on purpose; that event's cursor becomes the base."""
        raise NotImplementedError

    async def lose(self, store: LogStore, log: LogId, version: int) -> None:
        """Lose the events after ``version``, as a server does: what is left is as it was then.

        Only logs with one event an operation and no run are asked for.
        """
        raise NotImplementedError

    async def feed(self, store: LogStore, log: LogId) -> list[FeedEntry]:
        """The entries of the feed of this log's partition, in order."""
        raise NotImplementedError

    async def known(self, store: LogStore, log: LogId) -> Known:
        """All that the store tells of this log."""
        return Known(await store.head(log), await store.read(log, 1, None, 10_000), await self.feed(store, log))


def notes(*values: object) -> list[Draft]:
    """Events of a type that no store needs to know, one for each value."""
    return [Draft("note", {"value": value}) for value in values]


def request(
    drafts: Sequence[Draft] | object,
    operation_id: str,
    *,
    log: LogId = LOG,
    cursor: Cursor | None = None,
    expected: Expected = ANY,
    claim: RunClaim | None = None,
    alone: bool = False,
    supersedes: tuple[str, ...] = (),
) -> Append:
    """An append, of one note where ``drafts`` is a bare value. Without a cursor its writer has seen nothing."""
    events = list(drafts) if isinstance(drafts, Sequence) and not isinstance(drafts, str) else notes(drafts)
    encoded = encode(events, operation_id, "2030-01-02T03:04:05.678901Z")
    return Append(log, operation_id, encoded, cursor or log.cursor(0, 0), expected, claim, alone, supersedes)


async def put(store: LogStore, drafts: Sequence[Draft] | object, operation_id: str, **options: Any) -> Appended:
    """Append; the options are those of ``request``."""
    return await store.append(request(drafts, operation_id, **options))


async def refused(kind: type[Refusal], store: LogStore, append: Append) -> Refusal:
    """The error of this very kind that the append is refused with."""
    outcome: Appended | EventLogError
    try:
        outcome = await store.append(append)
    except EventLogError as error:
        outcome = error
    assert type(outcome) is kind, f"{outcome!r} where {kind.__name__} was due"
    return outcome


def starting(run: str, *, exclusive: bool = True, fence: str = "aa", lease_ms: int = LEASE_MS) -> RunClaim:
    """The claim that opens a run."""
    return RunClaim(run, Step.START, fence, lease_ms, "per-service-call", exclusive, "first-holder")


def going_on(
    run: str,
    *,
    fence: str = "aa",
    lease_ms: int = LEASE_MS,
    last_call: int = 0,
    closes: bool = False,
    answers: tuple[int, ...] = (),
) -> RunClaim:
    """The claim of a later append of a run."""
    return RunClaim(run, Step.GO_ON, fence, lease_ms, last_call=last_call, closes=closes, answers=answers)


def taking_over(
    run: str, step: Step, *, fence: str = "bb", closes: bool = False, answers: tuple[int, ...] = ()
) -> RunClaim:
    """The claim that gives a run another holder."""
    return RunClaim(run, step, fence, LEASE_MS, holder="second-holder", closes=closes, answers=answers)


async def start(
    store: LogStore,
    run: str,
    *,
    exclusive: bool = True,
    lease_ms: int = LEASE_MS,
    log: LogId = LOG,
    supersedes: tuple[str, ...] = (),
) -> Appended:
    """Open a run, as its recorder does: the run's id is the operation id."""
    return await put(
        store,
        run_started(run),
        run,
        log=log,
        claim=starting(run, exclusive=exclusive, lease_ms=lease_ms),
        supersedes=supersedes,
    )


def run_started(run: str) -> list[Draft]:
    """The event that opens a run."""
    return [Draft("run-started", {"mode": "per-service-call"}, run=run)]
