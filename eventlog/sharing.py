"""Which member holds how many partitions, and how long a failed delivery waits. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def share(partitions: int, members: Sequence[str], me: str) -> int:
    """How many partitions are due to ``me``: the same number each, one more for those who joined first.

    ``members`` stand in the order in which they joined; 0 for one that is not among them.
    """
    if me not in members:
        return 0
    least, more = divmod(partitions, len(members))
    return least + (1 if members.index(me) < more else 0)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Capped exponential growth. Seconds."""

    first: float = 0.5
    factor: float = 2.0
    most: float = 60.0
    jitter: float = 0.25
    """The part of the pause that is random, so that what failed together does not return together."""

    def seconds(self, count: int, random: float) -> float:
        """How long to wait after the ``count``-th delivery failed; ``random`` is drawn from [0, 1)."""
        whole = self.most
        if count < 64:
            whole = min(self.first * self.factor ** (count - 1), self.most)
        return whole * (1 - self.jitter * random)
