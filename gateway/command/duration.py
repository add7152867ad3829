"""Lengths of time as people write them: ``90d``, ``12h``. Pure."""

from __future__ import annotations

import re
from datetime import timedelta

from eventlog.errors import InvalidInput

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_MOST = timedelta(days=365_000)


def parse_duration(text: str) -> timedelta:
    """A whole number with its unit. Raises ``InvalidInput``."""
    match = re.fullmatch(r"([0-9]{1,9})([smhdw])", text.strip(), re.ASCII)
    found = timedelta() if match is None else timedelta(**{_UNITS[match[2]]: int(match[1])})
    if not timedelta() < found <= _MOST:
        raise InvalidInput(f"{text!r:.80} is no length of time: give a number and s, m, h, d or w, as 90d")
    return found
