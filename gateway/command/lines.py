"""The lines of a file to import, packed or not, and how far it has been read."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from typing import IO

import typer

from eventlog.errors import InvalidInput

_GZIP = b"\x1f\x8b"
_IN_MEMORY = 64 * 1024 * 1024
"""Bytes of a pipe that are kept in memory; more go to a temporary file."""


class Lines:
    """The lines of a file, numbered from 1; empty ones are left out. ``size`` is in bytes of the file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.size = file.seek(0, io.SEEK_END)
        file.seek(0)
        self.number = 0

    @property
    def position(self) -> int:
        """Up to where the file has been read, in bytes."""
        return self._file.tell()

    def __iter__(self) -> Iterator[bytes]:
        packed = self._file.read(2) == _GZIP
        self._file.seek(0)
        source = gzip.GzipFile(fileobj=self._file, mode="rb") if packed else self._file
        try:
            for line in source:
                self.number += 1
                content = line.removeprefix(b"\xef\xbb\xbf") if self.number == 1 else line
                if content.strip():
                    yield content.rstrip(b"\r\n")
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            self.number += 1
            raise InvalidInput(f"the packed file is damaged or ends early: {error}") from error


@contextmanager
def open_lines(path: Path) -> Iterator[Lines]:
    """The lines of the file, or of stdin for ``-``.

    A pipe is read to its end first: a read that waits for another program could not be interrupted later.
    """
    if str(path) == "-" or not path.is_file():
        with SpooledTemporaryFile(_IN_MEMORY) as spooled:
            if str(path) == "-":
                copyfileobj(typer.get_binary_stream("stdin"), spooled)
            else:
                with path.open("rb") as pipe:
                    copyfileobj(pipe, spooled)
            yield Lines(spooled)
    else:
        with path.open("rb") as file:
            yield Lines(file)
