"""What a projection is: how events become state, rows, entries of indexes, and sums. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import orjson

from eventlog.events import Event
from eventlog.messages import Json

S = TypeVar("S")


class Push(NamedTuple):
    """Put a row behind the conversation's rows."""

    row: Json


class Put(NamedTuple):
    """File a document under a key that is unique in its conversation, in place of the one before.

    ``under`` tells for each index by which text it is sorted there. Texts hold no NUL.
    """

    key: str
    document: Json
    under: Mapping[str, str]


class Drop(NamedTuple):
    """Take the document with this key out of every index."""

    key: str


class Add(NamedTuple):
    """Add to a sum of the conversation and to the tenant's total of that name."""

    name: str
    amount: int


class Refold(NamedTuple):
    """What this event does cannot be told from the state: fold the log up to it anew."""


Change = Push | Put | Drop | Add | Refold
REFOLD: Sequence[Change] = (Refold(),)


class Projection(Generic[S]):
    """Derive from it, name it, give it a version, and say what an event changes.

    ``S`` is the state of one conversation. It is kept as JSON, so plain lists, numbers, texts and
    dicts with text keys need nothing more; for other types override ``pack`` and ``unpack``. Raise
    ``version`` whenever ``apply`` would give something else for the same log: a view of a lower
    version is then rebuilt.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1

    def initial(self) -> S:
        """The state before the first event."""
        raise NotImplementedError

    def apply(self, state: S, event: Event) -> Iterable[Change]:
        """What the event changes. ``state`` is yours to change in place; nobody else holds it.

        Look at nothing but the two: the same log must always give the same view.
        """
        raise NotImplementedError

    def refold(self, events: Sequence[Event]) -> tuple[S, Iterable[Change]]:
        """State and content after all these events, from the log's first. Called after ``apply`` gave ``REFOLD``."""
        raise NotImplementedError(f"projection {self.name!r} gives REFOLD and has no refold")

    def pack(self, state: S) -> bytes:
        """The state as it is kept. Equal states give equal bytes."""
        return canonical(state)

    def unpack(self, kept: bytes) -> S:
        """The inverse of ``pack``."""
        found: S = orjson.loads(kept)
        return found


def canonical(value: Any) -> bytes:
    """JSON with sorted keys: equal values give equal bytes."""
    return orjson.dumps(value, _named, orjson.OPT_SORT_KEYS)


def _named(value: Any) -> tuple[Any, ...]:
    """A named tuple is a list in JSON."""
    if isinstance(value, tuple):
        return tuple(value)
    raise TypeError(f"a {type(value).__name__} is not JSON")


def sortable(milliseconds: int) -> str:
    """A time as text that sorts as the times do. Milliseconds since 1970, from 0 on."""
    return f"{min(max(milliseconds, 0), 10**15 - 1):015d}"
