"""What a check says when something is not as it should be. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

_ENTRY_ID = re.compile(rb"(0|[1-9][0-9]{0,15})-(0|[1-9][0-9]{0,18})")
_LONGEST = 80


class Fault(NamedTuple):
    """One thing that is not as it should be, for a person to read."""

    where: str
    """``version 7``, ``field 'open' of the head``, …: within ``owner``."""
    wrong: str
    right: str
    owner: str = ""
    """The conversation or the key; filled in by whoever knows it."""

    def __str__(self) -> str:
        return f"{self.owner}, {self.where}: {self.wrong}; {self.right}"


def show(value: object) -> str:
    """The value as text, cut to what a line can hold."""
    return f"{value!r:.{_LONGEST}}"


def id_of(entry_id: bytes) -> tuple[int, int] | None:
    """The two numbers of a stream entry's id, or None where it is none of ours."""
    match = _ENTRY_ID.fullmatch(entry_id)
    return None if match is None else (int(match[1]), int(match[2]))
