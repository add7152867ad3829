"""Pages of an index, and the cursors between them. Pure."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Generic, NamedTuple, TypeVar

from eventlog.errors import CursorInvalid, InvalidInput
from eventlog.messages import Json

T = TypeVar("T")

LARGEST = 1_000
"""Items that a page holds at most."""
_CURSOR = re.compile(r"([A-Za-z0-9_-]*={0,2})~([0-9a-f]{8})([0-9a-f]{8})", re.ASCII)


class AsOf(NamedTuple):
    """How far a view has come across all conversations."""

    lag: int
    """Appends that it has not passed yet, of all tenants."""
    at_ms: int | None
    """Everything before this moment is in the view: milliseconds since 1970, now when nothing is behind.

    None when the oldest event that is not yet in the view is gone."""

    def as_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return self._asdict()


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Items of a list in its order. The cursors are opaque; what moves while it is read may be seen twice or missed."""

    items: tuple[T, ...]
    next: str | None
    """Give it as ``after`` for the page behind this one; None when there is nothing behind it."""
    previous: str | None
    """Give it as ``before`` for the page ahead of this one; None when there is nothing ahead of it."""
    as_of: AsOf

    def as_json(self, item: Callable[[T], Json]) -> dict[str, Json]:
        """As a JSON object; ``item`` tells how an item is one."""
        items = [item(one) for one in self.items]
        return {"items": items, "next": self.next, "previous": self.previous, "as_of": self.as_of.as_json()}


@dataclass(frozen=True, slots=True)
class Index:
    """Which list a cursor is of: one index of a tenant, in every generation of a projection's view."""

    projection: str
    tenant: str
    index: str

    def cursor(self, member: str) -> str:
        """The cursor at this place in the list."""
        place = urlsafe_b64encode(member.encode()).decode()
        return f"{place}~{self._tag}{_check(place + self._tag)}"

    def place(self, cursor: str) -> str:
        """The inverse of ``cursor``. Raises ``CursorInvalid``."""
        match = _CURSOR.fullmatch(cursor) if isinstance(cursor, str) else None
        if match is None or _check(match[1] + match[2]) != match[3]:
            raise CursorInvalid(
                f"{ascii(cursor)[:80]} is not a cursor of a page: pass one back as a page gave it, unchanged"
            )
        if match[2] != self._tag:
            raise CursorInvalid(
                f"cursor {cursor[:80]!r} is of another list, not of {self.index!r} in view {self.projection!r} "
                f"of {self.tenant!r}: pass it back with the tenant and the filters it came from"
            )
        return urlsafe_b64decode(match[1]).decode()

    @property
    def _tag(self) -> str:
        return blake2b(
            "\0".join(map(_escaped, (self.projection, self.tenant, self.index))).encode(), digest_size=4
        ).hexdigest()


def check_page(limit: int, after: str | None, before: str | None) -> None:
    """Raise ``InvalidInput`` for a limit that no page can have, or two cursors."""
    if type(limit) is not int or not 1 <= limit <= LARGEST:
        raise InvalidInput(f"limit={limit!r}: a page holds 1 to {LARGEST:,} items; ask for the next page with `after`")
    if after is not None and before is not None:
        raise InvalidInput("after and before were both given: give the one from which to go on")


def cut(found: Sequence[tuple[str, T]], which: Index, limit: int, as_of: AsOf, *, after: bool, before: bool) -> Page[T]:
    """The page of what was found: at most one item more than it takes, with their places.

    It was found from the cursor on, so in the opposite order when ``before`` one.
    """
    more, taken = len(found) > limit, list(found[:limit])
    if before:
        taken.reverse()
    has_next, has_previous = (True, more) if before else (more, after)
    return Page(
        tuple(item for _, item in taken),
        which.cursor(taken[-1][0]) if taken and has_next else None,
        which.cursor(taken[0][0]) if taken and has_previous else None,
        as_of,
    )


def _escaped(part: str) -> str:
    """The text without NUL: different lists stay different."""
    return part.replace("%", "%25").replace("\0", "%00")


def _check(text: str) -> str:
    return blake2b(text.encode(), digest_size=4, person=b"page").hexdigest()
