"""The feed entries that were fetched and not yet passed, and how far the mark may move. Pure."""

from __future__ import annotations

from collections import deque

from eventlog.store.readers import Mark


class Cell:
    """One feed entry and how many of its events are neither handled, parked nor set waiting."""

    __slots__ = ("left", "mark")

    def __init__(self, mark: Mark, left: int) -> None:
        self.mark = mark
        self.left = left


class Window:
    """Entries in feed order. The mark moves past a contiguous prefix of settled ones, and no further."""

    def __init__(self, mark: Mark) -> None:
        self.mark = mark
        """The last entry passed."""
        self.end = mark
        """The last entry fetched."""
        self.left = 0
        """How many events are not settled."""
        self._cells: deque[Cell] = deque()

    def add(self, mark: Mark, events: int) -> Cell:
        """The next entry, with so many events to settle."""
        if mark.seq != self.end.seq + 1:
            raise ValueError(f"entry {mark.seq} does not follow entry {self.end.seq}")
        cell = Cell(mark, events)
        self._cells.append(cell)
        self.end = mark
        self.left += events
        return cell

    def settle(self, cell: Cell, events: int = 1) -> None:
        """So many events of an entry were handled, parked or set waiting."""
        if cell.left < events:
            raise ValueError(f"entry {cell.mark.seq} has {cell.left} events left, not {events}")
        cell.left -= events
        self.left -= events

    def advance(self) -> Mark:
        """Move the mark as far as it may go, and return it."""
        cells = self._cells
        while cells and cells[0].left == 0:
            self.mark = cells.popleft().mark
        return self.mark
