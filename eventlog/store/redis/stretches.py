"""Which stretches of a log are read when single events of it are wanted. Pure."""

from __future__ import annotations

from collections.abc import Sequence

_GAP = 8
"""So many events that are not wanted may stand between two that are: they cost less than another command."""
_LONGEST = 500


def stretches(versions: Sequence[int]) -> list[tuple[int, int]]:
    """First and last version of each stretch; ``versions`` ascend."""
    found: list[tuple[int, int]] = []
    first = last = 0
    for version in versions:
        if found and version - last <= _GAP and version - first < _LONGEST:
            found[-1] = first, version
        else:
            first = version
            found.append((version, version))
        last = version
    return found
