"""What a store of views refuses before it sends anything. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from eventlog.errors import InvalidInput
from eventlog.identity import partition_of
from eventlog.store.views import Writing

MOST = 2**53
"""The largest amount that a sum may change by in one step, up or down."""


def check_text(value: str, what: str) -> str:
    """Return ``value`` when it can be encoded, else raise ``InvalidInput``."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{what} {ascii(value)[:80]} has a lone surrogate: give well-formed text") from error
    return value


def check_writings(writings: Sequence[Writing], partition: int, partitions: int) -> None:
    """Raise ``InvalidInput`` unless each can be written, and all in one step of this partition's reader."""
    paths = set()
    for writing in writings:
        path = writing.log.path
        there = partition_of(path, partitions)
        if there != partition:
            raise InvalidInput(f"{path} belongs to partition {there}, not {partition}: write it with that one's reader")
        if path in paths:
            raise InvalidInput(f"there are two writings of {path} in one step: put them into one")
        paths.add(path)
        _check(writing)


def _check(writing: Writing) -> None:
    for key, filed in writing.entries.items():
        check_text(key, "key")
        for index, sort in filed.under.items() if filed is not None else ():
            _check_no_nul(check_text(index, "index"), "index")
            _check_no_nul(check_text(sort, "sort text"), "sort text")
    for name, amount in writing.sums.items():
        check_text(name, "sum")
        if not -MOST <= amount <= MOST:
            raise InvalidInput(
                f"sum {ascii(name)[:80]} is to change by {amount:,}; at most {MOST:,} up or down in one step: "
                "count in a larger unit"
            )


def _check_no_nul(value: str, what: str) -> None:
    if "\0" in value:
        raise InvalidInput(f"{what} {ascii(value)[:80]} holds a NUL, which separates the parts of a line: leave it out")
