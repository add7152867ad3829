"""The port that every store of logs fills, and the values that cross it. Pure.

A store checks an append in this order, and writes only when all checks have passed:

1. the operation's record: a retry is recognised before anything can refuse it. Else, for the
   expectations *none* and *exact*, the operation id of the event that follows; else a run already
   open under this operation's id
2. a deleted conversation
3. the caller's cursor: its event is the last, or the last trimmed, or is there
4. the runs: fence, closed, busy, answered
5. the expected version
6. the limits
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from eventlog.codec import Encoded
from eventlog.identity import Cursor, LogId

LAYOUT = 1
"""The version of the stored layout. A namespace laid out otherwise is refused at connect."""

DELETION = "conversation-deleted"
"""The kind of the feed entry that tells that a conversation was deleted. It names no event."""

OPERATION_WINDOW = 512
"""A retry is recognised for certain while fewer operations than this followed its first try."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one operation may carry. Larger ones are refused, never cut."""

    events: int = 1_000
    event_bytes: int = 8 * 1024 * 1024
    operation_bytes: int = 16 * 1024 * 1024

    def exceeded_by(self, documents: tuple[bytes, ...]) -> str | None:
        """What is too large, for a person to read, or None."""
        if len(documents) > self.events:
            return f"{len(documents):,} events in one operation; at most {self.events:,}: split it"
        total = 0
        for index, document in enumerate(documents):
            if len(document) > self.event_bytes:
                return (
                    f"events[{index}] has {len(document):,} bytes; at most {self.event_bytes:,}: "
                    "store the body elsewhere and send its uri"
                )
            total += len(document)
        if total > self.operation_bytes:
            return f"{total:,} bytes in one operation; at most {self.operation_bytes:,}: split it"
        return None


class Expectation(StrEnum):
    """What the caller expects of the log, besides the exact cursor of its last event."""

    ANY = "any"
    NONE = "none"
    """Nothing was ever appended."""
    EXISTS = "exists"


ANY, NONE, EXISTS = Expectation.ANY, Expectation.NONE, Expectation.EXISTS
Expected = Expectation | Cursor


class Step(StrEnum):
    """What an append does with its run."""

    START = "start"
    GO_ON = "go-on"
    RESUME = "resume"
    """Take an expired run over, under a new fence."""
    FORCE = "force"
    """Take a run over that has not expired."""


@dataclass(frozen=True, slots=True)
class RunClaim:
    """The run that an append is part of, and what it does with it."""

    run: str
    step: Step
    fence: str
    """Hexadecimal digits, compared for equality."""
    lease_ms: int
    """How long the run is held from this append on, by the server's clock."""
    mode: str = ""
    exclusive: bool = True
    holder: str = ""
    last_call: int = 0
    """The number of the newest service call that this append starts, or 0."""
    closes: bool = False
    answers: tuple[int, ...] = ()
    """The versions of the function calls that the appended results answer."""


@dataclass(frozen=True, slots=True)
class Append:
    """One append as a store receives it."""

    log: LogId
    operation_id: str
    encoded: Encoded
    cursor: Cursor
    """The last one the caller was given."""
    expected: Expected = ANY
    claim: RunClaim | None = None
    alone: bool = False
    """Refuse while a run is open that ``supersedes`` does not name."""
    supersedes: tuple[str, ...] = ()
    """Open runs that this append closes, whoever holds them."""
    retry: bool = False
    """It was sent before, with this cursor, and its outcome was not learnt."""


class Appended(NamedTuple):
    """What an append did. ``cursor`` is that of its last event, ``first`` the version of its first."""

    cursor: Cursor
    first: int
    operation_id: str
    duplicate: bool
    """The operation had been appended before; this is its first outcome."""
    before: Cursor | None = None
    """The event that its first one follows; None for a duplicate, of which that is not known."""

    @property
    def versions(self) -> range:
        """The versions of its events."""
        return range(self.first, self.cursor.version + 1)


class Entry(NamedTuple):
    """One stored event: its version, its stamp and its document."""

    version: int
    stamp: int
    document: bytes


class FeedEntry(NamedTuple):
    """One append as its partition's feed names it. ``seq`` counts 1, 2, 3 … in the partition, with no gap."""

    partition: int
    seq: int
    log: LogId
    first: int
    """The version of the append's first event."""
    events: int
    """How many events it holds."""
    kinds: str
    """Their distinct types in order of appearance, joined by commas."""
    stamp: int

    @property
    def is_deletion(self) -> bool:
        """Whether it tells that its conversation was deleted. ``first`` is the version that never came."""
        return not self.events


class FeedBase(NamedTuple):
    """What was trimmed of a partition's feed."""

    seq: int = 0
    """The number of the last trimmed entry; 0: nothing was trimmed."""
    stamp: int = 0
    """Its stamp, so that a place that stands exactly there is known to be sound."""
    announced: int = 0
    """Entries with a number below this may be trimmed at any time, unless a reader's mark keeps them."""


@dataclass(frozen=True, slots=True)
class OpenRun:
    """An open run as the head knows it. Times are milliseconds of the server's clock since 1970."""

    run: str
    mode: str
    exclusive: bool
    first: int
    """The version of its run-started."""
    last_call: int
    since_ms: int
    lease_ms: int
    """Until when it is held."""
    holder: str


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of a log without reading it."""

    last: Cursor
    base: Cursor
    """The last trimmed event; version 0 when nothing was trimmed."""
    updated_ms: int = 0
    deleted: bool = False
    """Nothing is left of it but ``last``, so that its versions never start again, ``why`` and when."""
    runs: tuple[OpenRun, ...] = field(default=())
    why: str = ""
    """Why it was deleted: ``deleted`` or ``expired``."""
    deleted_ms: int = 0


class LogStore(Protocol):
    """A store of logs. Every method raises ``ServerUnavailable`` when the server cannot be reached."""

    companions: dict[str, object]
    """What others keep beside the store, for as long as it lives."""

    @property
    def partitions(self) -> int:
        """How many partitions the namespace has; fixed when it was laid out."""
        ...

    async def append(self, request: Append) -> Appended:
        """Append all events of the request, or none. See ``eventlog.errors`` for what it raises."""
        ...

    async def renew(self, log: LogId, run: str, fence: str, lease_ms: int) -> None:
        """Hold a run for another ``lease_ms`` from now on. Raises ``RunFenced`` or ``RunClosed``."""
        ...

    async def read(self, log: LogId, first: int, last: int | None, count: int, *, reverse: bool = False) -> list[Entry]:
        """At most ``count`` events with versions ``first`` to ``last``, both included; the end when None."""
        ...

    async def pick(self, log: LogId, versions: Sequence[int]) -> list[Entry]:
        """The events at these versions, which ascend, as far as they are there. Many are not read as of one moment."""
        ...

    async def head(self, log: LogId) -> Head:
        """The head; of a log that was never written, version 0."""
        ...

    async def now_ms(self) -> int:
        """The store's clock, by which leases run: milliseconds since 1970."""
        ...

    async def conversations(self, partition: int, offset: int, count: int) -> list[LogId]:
        """A page of the partition's conversations in the order of their first append."""
        ...

    async def conversations_after(self, partition: int, after: int, count: int) -> list[tuple[int, LogId]]:
        """About ``count`` of the partition's conversations with the numbers > ``after`` of their first feed entries.

        A server that lost the feed's end gives numbers again: all of one number come together.
        Going on after the last number given misses none and gives none twice, also while others are deleted.
        """
        ...

    async def delete(
        self, log: LogId, *, force: bool = False, idle_since_ms: int | None = None, why: str = "deleted"
    ) -> bool:
        """Delete the conversation for good, all or nothing; whether it is deleted now.

        Its events and records go, and its path leaves the conversations. Its head stays and tells
        the last version, ``why`` and when; its feed names the deletion, so that all who read it learn
        it in order. A conversation that was deleted before is True and one that never was is False:
        nothing is written. While a run is open it raises ``ConversationBusy``, unless ``force``. With
        ``idle_since_ms`` it is deleted only when nothing was appended from that time on and no run is
        open, else False. What is sent twice has its effect once. Raises ``OutcomeUnknown`` when it is
        not known whether as many replicas hold it as an append needs.
        """
        ...

    async def close(self) -> None:
        """Let go of what the store holds open."""
        ...


class FeedStore(Protocol):
    """The feeds of a store: what was appended, in order, partition by partition. Errors as in ``LogStore``."""

    @property
    def partitions(self) -> int:
        """How many partitions the namespace has."""
        ...

    async def feed_ends(self) -> list[int]:
        """For each partition the ``seq`` of its newest entry, 0 when there is none."""
        ...

    async def read_feed(self, partition: int, first: int, count: int) -> list[FeedEntry]:
        """At most ``count`` entries of a partition with ``seq`` from ``first`` on, as far as they were not trimmed.

        Whoever goes on from a place reads from the entry that it stands at, and compares: when that
        one is gone, ``feed_base`` tells whether it was the last one trimmed.
        """
        ...

    async def feed_base(self, partition: int) -> FeedBase:
        """What was trimmed of the partition's feed."""
        ...

    async def announce_trim(self, partition: int, below: int) -> None:
        """Say that entries with ``seq`` < ``below`` may be trimmed from now on. What was announced before stays."""
        ...

    async def trim_feed(self, partition: int, below: int) -> int:
        """Remove the entries with ``seq`` < ``below``, never the newest one; how many were removed.

        What was trimmed is written in the same step, so that a gap is never taken for an end. It asks
        nobody: ``eventlog.housekeeping.trim_feeds`` finds out what no reader needs any more.
        """
        ...

    async def wait_feeds(self, after: Sequence[int], seconds: float, count: int) -> list[FeedEntry]:
        """Wait until a partition has entries after ``after[partition]``; return some, at most ``count`` of each.

        Empty when nothing was appended for ``seconds``. One caller a process should wait at a time.
        """
        ...
