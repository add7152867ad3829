"""The port that every store of readers fills, and the values that cross it. Pure.

A reader is a group's place in one partition's feed: a mark, and who may move it until when. Every
write is compared with the holder's fence; a former holder gets ``ReaderFenced`` and changes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

NEVER = -1
"""When a conversation is due that waits for a person."""


class Mark(NamedTuple):
    """The last feed entry passed: its number and stamp. Number 0 stands before the first entry."""

    seq: int
    stamp: int

    def __str__(self) -> str:
        return f"{self.seq}-{self.stamp}"

    @classmethod
    def parse(cls, text: str) -> Mark:
        """The inverse of ``str``. Raises ``ValueError``."""
        seq, _, stamp = text.partition("-")
        return cls(int(seq), int(stamp))


BEGINNING = Mark(0, 0)


class Waiting(NamedTuple):
    """A conversation that the mark passed and whose events from ``version`` on are still to be delivered.

    They are read from the log, when ``due_ms`` of the store's clock has come.
    """

    version: int
    through: int
    """The last version held back."""
    stamp: int
    """The stamp of that last one: while it is there, so is everything before it."""
    given: int = 0
    """How often ``version`` was handed over."""
    doubtful: int = 0
    """Up to this version a holder that died may have handed them over: each goes alone, and named first."""
    due_ms: int = 0
    busy: bool = False
    """``version`` was handed over and has not come back."""

    def pack(self) -> str:
        """As it is stored."""
        last = f"{self.through}-{self.stamp}"
        return f"{self.version}|{last}|{self.given}|{self.doubtful}|{self.due_ms}|{int(self.busy)}"

    @classmethod
    def parse(cls, text: str) -> Waiting:
        """The inverse of ``pack``. Raises ``ValueError``."""
        version, last, given, doubtful, due, busy = text.split("|")
        through = Mark.parse(last)
        return cls(int(version), *through, int(given), int(doubtful), int(due), busy == "1")


class Ask(StrEnum):
    """What a person asks the holder to do with a parked event."""

    REPLAY = "replay"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a group was created with."""

    tenant: str | None = None
    """Whose events; all when None."""
    start: tuple[Mark, ...] = ()
    """For each partition the mark that stands while none was written; empty: the beginning."""

    def mark(self, partition: int) -> Mark:
        """Where a reader without a mark stands: never at the feed's present end."""
        return self.start[partition] if self.start else BEGINNING


class Member(NamedTuple):
    """A living member. Times are milliseconds of the store's clock."""

    id: str
    since_ms: int
    lease_ms: int
    name: str


class Roll(NamedTuple):
    """The living members in the order in which they joined, and whether the group is paused."""

    members: tuple[Member, ...]
    paused: bool


class Place(NamedTuple):
    """What is known of a reader: of none that was ever held, the defaults."""

    mark: Mark | None = None
    holder: str = ""
    lease_ms: int = 0
    """Until when it is held; 0 when it is not."""
    since_ms: int = 0
    generation: int = 0
    """How often it changed hands. It counts up while the server loses nothing."""
    window: int = 0
    """The last entry that was handed over, when that is behind the mark; else 0."""

    def stands(self, start: Mark) -> Mark:
        """Its mark; ``start`` while none was written: where the group began in this partition."""
        return start if self.mark is None else self.mark


class Counts(NamedTuple):
    """How many conversations wait, how many events are parked, and what was asked and not yet done."""

    waiting: int
    parked: int
    asked: int


@dataclass(slots=True)
class Advance:
    """One step of a reader: all of it under the fence, or nothing."""

    before: Mark | None
    """The mark as the holder left it."""
    mark: Mark | None
    window: int = 0
    """The last entry handed over from now on; 0: none."""
    waiting: dict[str, Waiting | None] = field(default_factory=dict)
    """By conversation path; None: waits no longer."""
    parked: dict[str, bytes | None] = field(default_factory=dict)
    """By ``<version>@<path>``; None: parked no longer, and what was asked of it is done."""
    done: set[str] = field(default_factory=set)
    """Parked events of which what was asked is done, and that stay parked."""


class Hold(NamedTuple):
    """A reader as its holder names it in each write."""

    group: str
    partition: int
    fence: str


class ReaderStore(Protocol):
    """A store of readers. Every method raises ``ServerUnavailable`` when the server cannot be reached.

    What is sent twice has its effect once, so that a store may repeat what was not answered.
    """

    async def create(self, group: str, settings: Settings) -> Settings:
        """Create the group unless it is there; return what it was created with."""
        ...

    async def settings(self, group: str) -> Settings:
        """What the group was created with. Raises ``GroupGone``."""
        ...

    async def groups(self) -> list[str]:
        """The names of all groups, sorted."""
        ...

    async def join(self, group: str, member: str, name: str, lease_ms: int) -> Roll:
        """Be a member for another ``lease_ms``; whose lease has expired is struck off. Raises ``GroupGone``."""
        ...

    async def roll(self, group: str) -> Roll:
        """The living members. Raises ``GroupGone``."""
        ...

    async def leave(self, group: str, member: str) -> None:
        """Be a member no longer."""
        ...

    async def pause(self, group: str, paused: bool) -> None:
        """Pause the group, or resume it. Raises ``GroupGone``."""
        ...

    async def remove(self, group: str) -> None:
        """Forget the group, its marks and all that it parked."""
        ...

    async def acquire(self, hold: Hold, holder: str, lease_ms: int) -> Place | None:
        """Take the reader under a new fence; None while another holds it. The place is as it was left."""
        ...

    async def renew(self, hold: Hold, lease_ms: int, mark: Mark | None) -> Counts:
        """Hold it for another ``lease_ms`` from now on. ``mark`` is where the holder left it.

        Raises ``ReaderFenced``, also when the mark is elsewhere: a server can lose a step and nothing else.
        """
        ...

    async def advance(self, hold: Hold, step: Advance, lease_ms: int) -> Counts:
        """Take the step, and hold the reader for another ``lease_ms``.

        Raises ``ReaderFenced``, or ``FeedLost`` when the feed does not hold the entry that the mark is to name.
        """
        ...

    async def release(self, hold: Hold) -> None:
        """Give the reader up, with nothing handed over. Raises ``ReaderFenced``."""
        ...

    async def place(self, group: str, partition: int) -> Place:
        """What is known of a reader."""
        ...

    async def counts(self, group: str, partition: int) -> Counts:
        """How much waits and is parked."""
        ...

    async def waiting(self, group: str, partition: int) -> dict[str, Waiting]:
        """The waiting conversations, by path."""
        ...

    def parked(self, group: str, partition: int) -> AsyncIterator[tuple[str, bytes]]:
        """The parked events, by ``<version>@<path>``, in no order."""
        ...

    async def parked_one(self, group: str, partition: int, field: str) -> bytes | None:
        """One parked event, or None."""
        ...

    async def asked(self, group: str, partition: int) -> dict[str, Ask]:
        """What was asked and is not yet done, by ``<version>@<path>``."""
        ...

    async def ask(self, group: str, partition: int, field: str, ask: Ask) -> bool:
        """Ask something of the holder, the present or the next; False when no such event is parked."""
        ...

    async def wait(self, after: Mapping[int, int], seconds: float) -> dict[int, int]:
        """Wait until a partition has entries after ``after[partition]``; for each that has, the number of one of them.

        A hint: it may come late or not at all.
        """
        ...

    async def close(self) -> None:
        """Let go of what is held open."""
        ...
