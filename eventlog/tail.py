"""The newest entries of one log, kept for all who follow it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eventlog.store.port import Entry

MOST_ENTRIES = 256
MOST_BYTES = 256 * 1024


class Mark(NamedTuple):
    """A place in a log: an entry that was read there."""

    version: int
    stamp: int


class Tail:
    """A stretch of a log without a gap, behind ``base``: at most 256 entries and 256 KiB, the oldest go first."""

    __slots__ = ("base", "entries", "size")

    def __init__(self, base: Mark) -> None:
        self.base = base
        """The entry before the first that is kept."""
        self.entries: list[Entry] = []
        self.size = 0
        """Bytes of the documents kept."""

    @property
    def last(self) -> Mark:
        """The newest entry."""
        return Mark(*self.entries[-1][:2]) if self.entries else self.base

    def extend(self, entries: Sequence[Entry]) -> None:
        """Take what follows ``last``."""
        self.entries += entries
        self.size += sum(len(entry.document) for entry in entries)
        cut = max(len(self.entries) - MOST_ENTRIES, 0)
        size = self.size - sum(len(entry.document) for entry in self.entries[:cut])
        while size > MOST_BYTES:
            size -= len(self.entries[cut].document)
            cut += 1
        if cut:
            self.base = Mark(*self.entries[cut - 1][:2])
            del self.entries[:cut]
            self.size = size

    def clear(self) -> None:
        """Keep the place, and none of the entries."""
        self.base, self.entries, self.size = self.last, [], 0

    def holds(self, version: int, stamp: int) -> bool:
        """Whether this entry is kept, or is the one before."""
        index = version - self.base.version
        if not 0 <= index <= len(self.entries):
            return False
        return (self.entries[index - 1].stamp if index else self.base.stamp) == stamp

    def after(self, version: int, stamp: int) -> list[Entry]:
        """All that follows this entry; nothing where it is not held."""
        return self.entries[version - self.base.version :] if self.holds(version, stamp) else []
