"""A parked event: which, how often it was delivered, and why it was given up. Pure."""

from __future__ import annotations

import traceback
from dataclasses import asdict, dataclass

import orjson

from eventlog.errors import Unreadable
from eventlog.identity import LogId

MOST_ERROR, MOST_TRACE = 1_000, 8_000
"""Characters that are kept of an error and of its trace; of a trace, the end."""


@dataclass(frozen=True, slots=True)
class Parked:
    """An event that was taken out of the way. The event itself stays in the log."""

    tenant: str
    conversation: str
    version: int
    stamp: int
    """The event's stamp; 0 when it was parked unread, because its handler's process had ended."""
    deliveries: int
    """How often it was handed over, deliveries that ended with their process included."""
    error: str
    trace: str
    at_ms: int
    """When it was parked, by the store's clock."""
    waits: bool
    """Its conversation waits until it is replayed or dropped."""

    @property
    def log(self) -> LogId:
        """Which conversation."""
        return LogId(self.tenant, self.conversation)

    @property
    def field(self) -> str:
        """What it is stored under: ``<version>@<path>``."""
        return parked_field(self.log, self.version)

    def encode(self) -> bytes:
        """As it is stored."""
        return orjson.dumps(asdict(self))

    @classmethod
    def decode(cls, document: bytes) -> Parked:
        """The inverse of ``encode``. Raises ``Unreadable``."""
        try:
            return cls(**orjson.loads(document))
        except (ValueError, TypeError) as error:
            raise Unreadable(f"a parked event does not hold what it should: {document!r:.80}") from error


def parked_field(log: LogId, version: int) -> str:
    """What a parked event of this log is stored under."""
    return f"{version}@{log.path}"


def parse_field(field: str) -> tuple[LogId, int]:
    """The inverse of ``parked_field``. Raises ``Unreadable``."""
    version, _, path = field.partition("@")
    if not version.isdecimal():
        raise Unreadable(f"{field!r:.80} names no parked event")
    return LogId.of_path(path), int(version)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a delivery failed, at a bounded size."""

    error: str
    trace: str = ""

    @classmethod
    def of(cls, error: BaseException | str) -> Failure:
        """From what a handler raised, or said."""
        if isinstance(error, str):
            return cls(_sound(error)[:MOST_ERROR])
        named = f"{type(error).__name__}: {error}"
        trace = "".join(traceback.format_exception(error))
        return cls(_sound(named)[:MOST_ERROR], _sound(trace)[-MOST_TRACE:])


def _sound(text: str) -> str:
    """Text that can be stored: a lone surrogate is shown by its number."""
    return text.encode(errors="backslashreplace").decode()
