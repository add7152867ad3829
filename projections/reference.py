"""What stands together in a view, as references: the versions of its events. Pure."""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

from eventlog.ledger import Row
from eventlog.messages import Json


class Reference(NamedTuple):
    """A row of a view: inputs, then outputs, in order; or the messages of a compaction."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...] = ()
    is_unit: bool = False
    summary: int = 0
    """The version of the history-compacted event whose messages these are, or 0."""
    pairs: tuple[tuple[int, int], ...] = ()
    """What its entering closed: (version of the result, version of the call)."""

    @property
    def versions(self) -> tuple[int, ...]:
        """The versions of the events that are read to show it."""
        return (self.summary,) if self.summary else self.inputs + self.outputs

    @property
    def is_loose(self) -> bool:
        """Whether it was posted outside any run; one operation's events then make messages together."""
        return not self.is_unit and len(self.inputs) == 1

    def pack(self) -> Json:
        """A short form in JSON: of a posted message its version alone."""
        if self.summary:
            return {"summary": self.summary}
        pairs: list[Json] = list(chain.from_iterable(self.pairs))
        if not self.is_unit:
            return [self.inputs[0], pairs] if pairs else self.inputs[0]
        packed: list[Json] = [list(self.inputs), list(self.outputs)]
        return [*packed, pairs] if pairs else packed

    @classmethod
    def unpack(cls, packed: Any) -> Reference:
        """The inverse of ``pack``."""
        if type(packed) is int:
            return cls((packed,))
        if type(packed) is dict:
            return cls((), summary=packed["summary"])
        first, *rest = packed
        if type(first) is int:
            return cls((first,), pairs=_paired(rest[0]))
        pairs = _paired(rest[1]) if len(rest) > 1 else ()
        return cls(tuple(first), tuple(rest[0]), True, 0, pairs)


def _paired(flat: list[int]) -> tuple[tuple[int, int], ...]:
    if len(flat) == 2:
        return ((flat[0], flat[1]),)
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def reference_of(row: Row) -> Reference:
    """The reference that a ledger's row is."""
    outputs = tuple([item.version for item in row.outputs])
    return Reference(row.inputs, outputs, row.unit is not None, row.summary, tuple(row.pairs))
