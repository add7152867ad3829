"""Where chance comes from: the seed, and who asks. Pure."""

from __future__ import annotations

from random import Random


def chance(seed: int, *who: object) -> Random:
    """A source of its own for each ``who``; the same for the same seed."""
    return Random(f"{seed}/{'/'.join(map(str, who))}")  # noqa: S311  nothing here is a secret
