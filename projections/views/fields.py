"""Reading fields of events that may hold anything, and writing what they say into indexes. Pure.

What is kept of an event is bounded: names and texts are cut, and of many names the first are taken.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from projections.projection import sortable

CUT = 250
"""Characters that are kept of a title, a label, a name or a text."""
MOST_LABELS = 50
MOST_AMOUNTS = 32
"""Token numbers that are taken of one usage."""
LARGEST = 10**9
"""No single token number counts for more."""
_MOST_TOTAL = 10**15
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def text(value: Any, most: int = CUT) -> str | None:
    """Its first ``most`` characters when it is text, as well-formed text; else None."""
    if type(value) is not str:
        return None
    short = value[:most]
    return short if short.isascii() else short.encode("utf-8", "replace").decode()


def name(value: Any, most: int = CUT) -> str | None:
    """As ``text``, and None when it is empty: an empty name names nothing."""
    return text(value, most) or None


def moment(at: Any) -> datetime | None:
    """The time that an event's ``at`` tells, in UTC; None when it tells none."""
    try:
        found = datetime.fromisoformat(at)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def milliseconds(at: Any) -> int | None:
    """The time that an event's ``at`` tells, in milliseconds since 1970; None when it tells none since then."""
    found = moment(at)
    return None if found is None or found < _EPOCH else (found - _EPOCH) // _MILLISECOND


def place(at_ms: int, version: int) -> str:
    """By what something of this time and version is sorted: of one moment in a conversation, by the version."""
    return f"{sortable(at_ms)}.{version:012d}"


def labels(value: Any) -> dict[str, str]:
    """The labels in a stored object; not more than ``MOST_LABELS``."""
    if type(value) is not dict:
        return {}
    found: dict[str, str] = {}
    for label, content in value.items():
        key, said = text(label), text(content)
        if key is not None and said is not None and len(found) < MOST_LABELS:
            found[key] = said
    return found


def amounts(usage: Any) -> dict[str, int]:
    """The token numbers of a usage: whole numbers from 0 on, under names that speak of tokens."""
    if type(usage) is not dict:
        return {}
    found: dict[str, int] = {}
    for key, amount in usage.items():
        if type(amount) is int and amount >= 0 and "token" in key and len(found) < MOST_AMOUNTS:
            found[text(key) or ""] = min(amount, LARGEST)
    return found


def add_amounts(sums: dict[str, int], more: dict[str, int]) -> None:
    """Add to sums that are kept; names beyond ``MOST_AMOUNTS`` are left out."""
    for key, amount in more.items():
        if key in sums or len(sums) < MOST_AMOUNTS:
            sums[key] = min(sums.get(key, 0) + amount, _MOST_TOTAL)


def escaped(value: str) -> str:
    """The text without NUL, which keys and indexes may not hold. Different texts stay different."""
    return value.replace("%", "%25").replace("\0", "%00")


def agent_index(agent: str) -> str:
    """The index of what this agent took part in."""
    return f"agent:{escaped(agent[:CUT])}"


def label_index(label: str, value: str) -> str:
    """The index of what carries this label with this value."""
    return f"label:{escaped(label[:CUT]).replace('=', '%3D')}={escaped(value[:CUT])}"
