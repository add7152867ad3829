"""The standard streams of the process, also where it was started without them or they cannot be written."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_STANDARD = 3
"""Descriptors below this one are the standard streams'."""


@contextmanager
def standard_streams() -> Iterator[None]:
    """All three streams, of which none leaves a traceback when the process ends.

    One that was closed when the process started reads or writes nothing, except for stdout: who
    writes there is told what they are of a pipe that nobody reads.
    """
    _mend()
    streams = (sys.stdout, sys.stderr)
    for stream in streams:
        # What the terminal's encoding cannot show is shown by its number, not refused.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        yield
    finally:
        for stream in streams:
            _let_go(stream)


def _mend() -> None:
    # A socket or file that is opened next would get the descriptor of a standard stream.
    while (filler := os.open(os.devnull, os.O_RDWR)) < _STANDARD:
        pass
    os.close(filler)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    if sys.stdout is None:
        reader, writer = os.pipe()
        os.close(reader)
        sys.stdout = os.fdopen(writer, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _let_go(stream: TextIO) -> None:
    """Give up what cannot be written; the interpreter would try, and complain, as it ends."""
    try:
        stream.flush()
    except OSError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
