"""One event as it is handed to a consumer, and what the consumer says of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from eventlog.errors import InvalidInput, ReaderFenced
from eventlog.events import Event
from eventlog.identity import LogId
from eventlog.parking import Failure


class Verdict(StrEnum):
    """What becomes of a delivery."""

    ACK = "ack"
    RETRY = "retry"
    PARK = "park"
    CANCELLED = "cancelled"
    """It ended because its member stopped: delivered again, and not held against the event."""


_NONE = Failure("")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict, with what belongs to it."""

    verdict: Verdict
    failure: Failure = _NONE
    after: float | None = None
    """Seconds until it is delivered again; None: as the group's backoff says."""


class DeliveryKey(NamedTuple):
    """The same for each delivery of an event, and for no other event of the store: what duplicates are known by."""

    tenant: str
    conversation: str
    version: int


class Holder(NamedTuple):
    """Who delivers, as a sink may check it."""

    group: str
    partition: int
    fence: str
    """Random, new whenever the partition changes hands: compared for equality."""
    generation: int
    """How often the partition changed hands."""


class Signal(Protocol):
    """What can be set."""

    def set(self) -> object:
        """Set it."""


ACK = Outcome(Verdict.ACK)


class Delivery:
    """An event in a consumer's hands. A handler that returns acknowledges it, one that raises has it retried."""

    __slots__ = ("answered", "conversation", "count", "event", "fenced", "holder", "outcome")

    def __init__(self, event: Event, conversation: LogId, count: int, holder: Holder) -> None:
        self.event = event
        self.conversation = conversation
        """Which log: its tenant and conversation."""
        self.count = count
        """How often it was delivered, this time included. After a crash it may be one too many, never too few."""
        self.holder = holder
        self.outcome: Outcome | None = None
        """What the consumer said; None as long as it said nothing."""
        self.answered: Signal | None = None
        """Set when the consumer has answered."""
        self.fenced = False
        """The partition has another holder: what is said of it counts no more."""

    @property
    def version(self) -> int:
        """The event's version in its conversation."""
        return self.event.version

    @property
    def key(self) -> DeliveryKey:
        """What duplicates are known by."""
        return DeliveryKey(*self.conversation, self.event.version)

    @property
    def fence(self) -> str:
        """The holder's fence."""
        return self.holder.fence

    async def ack(self) -> None:
        """It is handled. Raises ``ReaderFenced`` when the partition has another holder by now."""
        self.settle(ACK)

    async def retry(
        self, after: float | None = None, error: BaseException | str = "asked for another delivery"
    ) -> None:
        """Deliver it again, ``after`` seconds from now or as the group's backoff says; its conversation waits."""
        if after is not None and not 0 <= after <= 7 * 24 * 3600:
            raise InvalidInput(f"after={after}: give 0 seconds to 7 days")
        self.settle(Outcome(Verdict.RETRY, Failure.of(error), after))

    async def park(self, error: BaseException | str = "parked by its consumer") -> None:
        """Take it out of the way now, whatever the count."""
        self.settle(Outcome(Verdict.PARK, Failure.of(error)))

    def settle(self, outcome: Outcome) -> None:
        """Take the consumer's word. The first one counts; another raises ``InvalidInput``."""
        if self.fenced:
            raise ReaderFenced(
                f"partition {self.holder.partition} of group {self.holder.group!r} has another holder: "
                f"version {self.version} of {self.conversation} is delivered again"
            )
        if self.outcome is not None:
            raise InvalidInput(f"this delivery was answered with {self.outcome.verdict.value!r}: answer it once")
        self.outcome = outcome
        if self.answered is not None:
            self.answered.set()
