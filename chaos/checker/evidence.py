"""What is proved from: the state, and what the processes wrote down. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from chaos.checker.fold import Fold
from chaos.checker.state import State

Line = dict[str, Any]


class Life(Protocol):
    """One life of a process, as ``chaos.ledger`` reads it."""

    @property
    def name(self) -> str:
        """The same for all lives of a process."""
        ...

    @property
    def kind(self) -> str:
        """``agent``, ``follower``, ``group``, ``projector``, ``reader``."""
        ...

    @property
    def lines(self) -> list[Line]:
        """In order."""
        ...


@dataclass
class Evidence:
    """The state and the lives, and which logs are broken in themselves."""

    state: State
    lives: Sequence[Life]
    broken: set[str] = field(default_factory=set)
    """Paths whose structure does not hold: what builds on it is not compared."""
    _folds: dict[str, Fold] = field(default_factory=dict)

    def fold(self, path: str) -> Fold:
        """The history of a log, at each of its versions."""
        if path not in self._folds:
            self._folds[path] = Fold(self.state.logs.get(path, ()))
        return self._folds[path]

    def lines(self, *kinds: str) -> Iterable[Line]:
        """The lines of these kinds, of all lives."""
        return (line for life in self.lives for line in life.lines if line["do"] in kinds)

    def sound(self) -> Iterable[str]:
        """The paths whose structure holds."""
        return sorted(set(self.state.logs) - self.broken)

    def sent(self) -> dict[str, list[Line]]:
        """Operation -> the lines that say it was handed to a store."""
        found: dict[str, list[Line]] = defaultdict(list)
        for line in self.lines("sent"):
            found[line["op"]].append(line)
        return found
