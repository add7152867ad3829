"""The generations of a projection's view: which there are, which is live. Pure.

A rebuild makes a new generation beside the live one; when it is whole it becomes live, and the one
before is kept until it is dropped. Numbers are never used again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import orjson

from eventlog.errors import InvalidInput, Unreadable
from projections.projection import canonical

State = Literal["building", "ready"]


class Generation(NamedTuple):
    """One building of a view."""

    number: int
    version: int
    """The version of the projection that builds it."""
    state: State
    since_ms: int
    """When it was begun, by the store's clock."""


@dataclass(frozen=True, slots=True)
class Record:
    """What is recorded of one projection."""

    live: int = 0
    """The number of the generation that is read; 0 while none was ever whole."""
    before: int = 0
    """The one that was live before it, to which a rollback goes; 0 when there is none."""
    last: int = 0
    """The highest number ever given."""
    generations: tuple[Generation, ...] = ()

    def get(self, number: int) -> Generation | None:
        """The generation with this number, while it is there."""
        return next((one for one in self.generations if one.number == number), None)

    def read_by(self, version: int) -> Generation | None:
        """What a release with this version of the projection reads: the live one when it is of that version.

        Else its own newest whole one: two releases may run side by side.
        """
        live = self.get(self.live)
        if live is not None and live.version == version:
            return live
        ready = [one for one in self.generations if one.version == version and one.state == "ready"]
        return ready[-1] if ready else None

    def kept_by(self, version: int) -> list[Generation]:
        """The generations that a release with this version keeps up to date."""
        return [one for one in self.generations if one.version == version]

    def wants_building(self, version: int) -> bool:
        """Whether a release with this version should build a generation: only a higher version does by itself."""
        return all(one.version < version for one in self.generations)

    def begin(self, version: int, now_ms: int) -> Record:
        """With a new generation being built."""
        building = Generation(self.last + 1, version, "building", now_ms)
        return replace(self, last=building.number, generations=(*self.generations, building))

    def flip(self, number: int) -> Record:
        """With this generation whole, and live."""
        generations = tuple(one._replace(state="ready") if one.number == number else one for one in self.generations)
        if number not in [one.number for one in generations]:
            raise InvalidInput(f"there is no generation {number}; there are {self._numbers()}")
        return self if self.live == number else replace(self, live=number, before=self.live, generations=generations)

    def rollback(self) -> Record:
        """With the generation live that was before. Raises ``InvalidInput`` when it is gone."""
        if self.get(self.before) is None:
            raise InvalidInput(
                f"generation {self.before or 'before the live one'} is not kept: there are {self._numbers()}; rebuild"
            )
        return replace(self, live=self.before, before=self.live)

    def without(self, number: int) -> Record:
        """Without this generation. Raises ``InvalidInput`` when it is the live one or not there."""
        if number == self.live:
            raise InvalidInput(f"generation {number} is live: roll back first, or drop the whole projection")
        if self.get(number) is None:
            raise InvalidInput(f"there is no generation {number}; there are {self._numbers()}")
        generations = tuple(one for one in self.generations if one.number != number)
        return replace(self, before=0 if self.before == number else self.before, generations=generations)

    def pack(self) -> bytes:
        """As it is stored."""
        return canonical({"live": self.live, "before": self.before, "last": self.last, "generations": self.generations})

    @classmethod
    def unpack(cls, stored: bytes | None) -> Record:
        """The inverse of ``pack``; of None, a record without generations. Raises ``Unreadable``."""
        if stored is None:
            return cls()
        try:
            found = orjson.loads(stored)
            generations = tuple(Generation(*one) for one in found["generations"])
            return cls(found["live"], found["before"], found["last"], generations)
        except (ValueError, KeyError, TypeError) as error:
            raise Unreadable(f"a projection's record does not hold what it should: {stored!r:.80}") from error

    def _numbers(self) -> str:
        return ", ".join(str(one.number) for one in self.generations) or "none"
