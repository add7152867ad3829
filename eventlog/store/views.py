"""The port that every store of views fills, and the values that cross it. Pure.

A projection keeps a *view*: per conversation a small state, rows, entries that indexes file, and
sums. Each rebuild makes a new generation of it beside the others. A view's holder writes what
changed together with its mark, in one fenced step of its reader; so an event has its effect
exactly once, whoever crashes where.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from eventlog.identity import Cursor, LogId
from eventlog.store.port import Entry
from eventlog.store.readers import Advance, Counts, Hold

PAGE = 500
"""Events that ``read`` gives of the log behind a view, at most."""
RESERVED = "@"
"""What the names of the readers of views begin with; no consumer group may."""


class ViewId(NamedTuple):
    """One generation of a projection's view. Generations count 1, 2, 3 … and are never used again."""

    projection: str
    generation: int

    @property
    def group(self) -> str:
        """The name of its readers."""
        return f"{RESERVED}{self.projection}.{self.generation}"


class Kept(NamedTuple):
    """How far a view is in one conversation, and its state there."""

    cursor: Cursor
    """The last event applied."""
    state: bytes


class Filed(NamedTuple):
    """A document that indexes file: for each index, by which text it is sorted there."""

    document: bytes
    under: dict[str, str]


@dataclass(slots=True)
class Writing:
    """What one step writes of one conversation."""

    log: LogId
    kept: Kept | None
    """None: everything that was kept of the conversation goes."""
    fresh: bool = False
    """What was kept before goes first: rows, entries and sums."""
    rows: list[bytes] = field(default_factory=list)
    """Put behind the rows that are there."""
    entries: dict[str, Filed | None] = field(default_factory=dict)
    """By key, which is unique in the conversation; None takes it out."""
    sums: dict[str, int] = field(default_factory=dict)
    """Added to the conversation's sums and to its tenant's totals."""


class Snapshot(NamedTuple):
    """A conversation in a view, and the log behind it, as of one moment."""

    present: bool
    """Whether the view is there at all."""
    kept: Kept | None
    rows: list[bytes]
    """The newest ones asked for, in order."""
    total: int
    """How many rows there are."""
    behind: list[Entry]
    """The log from the last applied event on, that one included; from the start when nothing is kept.

    At most ``PAGE`` + 1 events."""


class Contents(NamedTuple):
    """All that a view keeps of one conversation, as of one moment."""

    kept: Kept
    rows: list[bytes]
    entries: dict[str, Filed]
    sums: dict[str, int]


class Found(NamedTuple):
    """One line of an index. ``member`` is its place: lines are sorted by it, byte for byte."""

    member: str
    log: LogId
    key: str
    document: bytes | None
    """None when the line was moved or removed while the index was read."""

    @property
    def sort(self) -> str:
        """The text by which it is sorted."""
        return self.member.partition("\0")[0]


class ViewStore(Protocol):
    """A store of views. Every method raises ``ServerUnavailable`` when the server cannot be reached.

    What is sent twice has its effect once, so that a store may repeat what was not answered.
    """

    async def names(self) -> list[str]:
        """The names of all projections that have a record, sorted."""
        ...

    async def record(self, projection: str) -> bytes | None:
        """What is recorded of a projection's generations."""
        ...

    async def replace(self, projection: str, before: bytes | None, after: bytes | None) -> bool:
        """Put ``after`` in place of the record (None: remove it), if that still is ``before``; whether it was done.

        Removing what is not there counts as done.
        """
        ...

    async def create(self, view: ViewId) -> None:
        """Make the view, empty, in every partition. Its readers are made apart from it."""
        ...

    async def progress(self, view: ViewId, partition: int) -> str | None:
        """The last ``scanned`` that was committed; None before the first."""
        ...

    async def load(self, view: ViewId, partition: int, logs: Sequence[LogId]) -> list[Kept | None]:
        """What is kept of these conversations, in their order."""
        ...

    async def commit(
        self,
        view: ViewId,
        hold: Hold,
        step: Advance,
        writings: Sequence[Writing],
        lease_ms: int,
        *,
        scanned: str | None = None,
    ) -> Counts:
        """Take a reader's step and write, all or nothing; as ``ReaderStore.advance``, whose errors it raises.

        ``scanned`` replaces what ``progress`` tells. At most one writing for a conversation. Unlike ``advance`` it
        wants the mark at ``step.before``, and nowhere else: a holder that did not learn the outcome loads again.
        Raises ``ViewMissing`` when the view is not there, ``InvalidInput`` for a writing that cannot be kept.
        """
        ...

    async def read(self, view: ViewId, log: LogId, last: int | None = None) -> Snapshot:
        """One conversation, with its newest ``last`` rows (all when None), and the log behind, in one step."""
        ...

    async def contents(self, view: ViewId, log: LogId) -> Contents | None:
        """All that is kept of one conversation, in one step; None when nothing is."""
        ...

    def kept(self, view: ViewId, partition: int) -> AsyncIterator[tuple[LogId, Cursor]]:
        """The conversations of which something is kept, and how far; some perhaps more than once."""
        ...

    async def index(
        self,
        view: ViewId,
        partition: int,
        tenant: str,
        index: str,
        *,
        count: int,
        after: str | None = None,
        reverse: bool = False,
    ) -> list[Found]:
        """At most ``count`` lines of a tenant's index behind the place ``after``, in order or in reverse."""
        ...

    async def indexes(self, view: ViewId, partition: int) -> list[tuple[str, str]]:
        """The (tenant, index) of all indexes that have lines in this partition, sorted."""
        ...

    async def totals(self, view: ViewId, partition: int, tenant: str) -> dict[str, int]:
        """The sums over a tenant's conversations of the partition; none that is 0."""
        ...

    async def tenants(self, view: ViewId, partition: int) -> list[str]:
        """The tenants that have totals in this partition, sorted."""
        ...

    async def forget(self, view: ViewId, log: LogId) -> None:
        """Remove all that is kept of a conversation, whoever holds the partition."""
        ...

    async def drop(self, view: ViewId) -> None:
        """Remove the view from every partition. Its readers go apart from it."""
        ...

    async def size(self, view: ViewId) -> int:
        """About how many bytes of the server's memory the view takes."""
        ...
