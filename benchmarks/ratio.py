"""One row of the table: a contender against something else, round by round. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Rounds = Mapping[str, Sequence[float]]
"""Of each contender, one figure a round: microseconds, operations a second, or bytes."""


class Ratio(NamedTuple):
    """One row: the contender against something else, over all rounds."""

    name: str
    """The work, with its unit."""
    ratio: float
    """The median of the rounds' ratios."""
    target: str
    """``≤ 1.15`` or ``≥ 2``; empty when the ratio is for information."""
    met: bool | None
    """None: there is no target."""
    contender: str
    against: str
    median: float
    """Of the contender over the rounds, in the unit that the name tells."""
    spread: tuple[float, float]
    """The smallest and the largest ratio of a round."""


def ratio(
    name: str,
    found: Rounds,
    contender: str,
    against: str,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    times_as_fast: bool = False,
) -> Ratio:
    """The row for two contenders of one measurement.

    The ratio is the contender's figure over the other's; ``times_as_fast`` turns it round, for figures that
    are times and a target that says how many times as fast.

    Raises ``ValueError`` when both targets are given, or the contenders have no round or not as many as each other.
    """
    if at_most is not None and at_least is not None:
        raise ValueError(f"{name}: at_most={at_most:g} and at_least={at_least:g}: a row has one target")
    ours, theirs = found[contender], found[against]
    if not ours or len(ours) != len(theirs):
        raise ValueError(
            f"{name}: {contender} has {len(ours)} rounds, {against} has {len(theirs)}: measure them together"
        )
    over = (theirs, ours) if times_as_fast else (ours, theirs)
    ratios = [upper / lower for upper, lower in zip(*over, strict=True)]
    value = statistics.median(ratios)
    target, met = "", None
    if at_most is not None:
        target, met = f"≤ {at_most:g}", value <= at_most
    if at_least is not None:
        target, met = f"≥ {at_least:g}", value >= at_least
    return Ratio(name, value, target, met, contender, against, statistics.median(ours), (min(ratios), max(ratios)))
