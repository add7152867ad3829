"""What a process was told, line by line, on disk before it goes on.

A line is a JSON object; ``do`` says what it is:

    plan     op, path, marks: a message is about to be posted, and could be posted again
    sent     op, path, n, run, step, fence, closes, exclusive: an append of n events is handed to the store
    acked    op, path, first, last, stamp, duplicate: the store acknowledged it
    refused  op, error: the store said that nothing was written
    unknown  op: the store could not learn the outcome
    told     op, path, first, last, marks: a caller was told; each event holds its mark
    view     path, version, stamp, source, messages, open: a history that was read
    request  path, at, run, sends, versions: what a service call sends
    began    who, at: a follower begins behind this; of a tenant's, at is ``start``
    saw      who, path, v, s, cursor: a follower was given an event
    begin    path, v, s, part, gen, t: an event is handed to a handler (t: nanoseconds, one clock for all)
    end      path, v, t: the handler returned
    delete   path: a conversation is about to be deleted
    deleted  path: the store said that it is
    differs  told: the product's own verification of its views found this, or its two ways to read differ
    left     error: the process ended because the server was away
    strange  error: what should not happen at all
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

Line = dict[str, Any]
_NAME = re.compile(r"(?P<kind>[a-z]+)-(?P<number>\d+)\.(?P<life>\d+)\.jsonl")


class Life(NamedTuple):
    """One life of a process: who it was, and its lines in order."""

    name: str
    """As ``agent-1``; the same for all its lives."""
    kind: str
    life: int
    lines: list[Line]


class Ledger:
    """A file of lines. Each is one write, so that a kill leaves it whole or not at all."""

    def __init__(self, home: Path, name: str, life: int) -> None:
        self._file = os.open(home / f"{name}.{life}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, do: str, **fields: Any) -> None:
        """Put a line down. When this returns, a kill of the process loses it no more."""
        self.write_all({"do": do, **fields})

    def write_all(self, *lines: Line) -> None:
        """Put lines down, all or none."""
        os.write(self._file, b"".join(json.dumps(line).encode() + b"\n" for line in lines))


class Reading:
    """The ledgers of a run, read on while they are still written."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lives: dict[Path, tuple[Life, int]] = {}
        """With how many bytes of the file were read."""

    def read(self, name: str | None = None) -> list[Life]:
        """All lives, or those of one process, in the order in which they lived."""
        for path in self._home.glob("*.jsonl"):
            match = _NAME.fullmatch(path.name)
            if match is not None and name in (None, f"{match['kind']}-{match['number']}"):
                self._read_on(path, match)
        return sorted((life for life, _ in self._lives.values()), key=lambda life: (life.kind, life.name, life.life))

    def _read_on(self, path: Path, match: re.Match[str]) -> None:
        empty = Life(f"{match['kind']}-{match['number']}", match["kind"], int(match["life"]), [])
        life, position = self._lives.get(path, (empty, 0))
        with path.open("rb") as file:
            file.seek(position)
            *whole, _ = file.read().split(b"\n")  # a last line without its end was not put down, or not yet
        life.lines.extend(map(json.loads, whole))
        self._lives[path] = life, position + sum(len(line) + 1 for line in whole)


def read(home: Path, name: str | None = None) -> list[Life]:
    """All lives, or those of one process, in the order in which they lived."""
    return Reading(home).read(name)
