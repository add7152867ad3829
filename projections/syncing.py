"""Brings what a view keeps of one conversation up to its log.

The event that the view applied last is read again with what follows it: where it is gone, the
server lost the log's end, and the conversation is folded anew from what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eventlog.codec import decode
from eventlog.errors import ConversationDeleted, ServerError
from eventlog.events import Event
from eventlog.identity import Cursor, LogId
from eventlog.parking import Failure
from eventlog.reader import missing
from eventlog.reading import pages
from eventlog.store.port import Entry, LogStore
from eventlog.store.views import PAGE, Kept, Writing
from projections.folding import Folding
from projections.projection import Projection

_FIRST_PAGE = 64
_PAGE_BYTES = 4 * 1024 * 1024
"""About how many bytes of a log are read at a time, once the size of its events is known."""
_PIECE_EVENTS, _PIECE_BYTES = 5_000, 1024 * 1024
"""Events that are applied and bytes that are to be written after which a piece is given out."""


class CannotApply(Exception):
    """An event that the projection cannot apply, or that is not there to be applied."""

    def __init__(self, version: int, kind: str, stamp: int, error: Exception) -> None:
        failure = Failure.of(error)
        super().__init__(f"version {version} ({kind}): {failure.error}")
        self.version = version
        self.stamp = stamp
        """0 when the event could not be read."""
        self.failure = failure


@dataclass(slots=True)
class Piece:
    """What is to be written of a conversation now."""

    log: LogId
    writing: Writing | None
    """None: nothing new."""
    events: list[Event]
    """What was applied, when it was asked for."""
    applied: int = 0
    """How many events were applied."""
    more: bool = False
    """The log goes on: write this, then go on from there."""
    lost: bool = False
    """The view had applied events that the server lost: what is written was folded anew."""
    failure: CannotApply | None = None
    """The event behind what is written cannot be applied."""


async def bring_up(
    store: LogStore, projection: Projection[Any], log: LogId, kept: Kept | None, *, collect: bool = False
) -> Piece:
    """Fold what the log holds behind ``kept``. A log with a hole, or trimmed too far, cannot be applied."""
    sync = _Sync(store, projection, log, collect=collect)
    try:
        return await sync.run(kept, None)
    except ConversationDeleted:
        return Piece(log, Writing(log, None), [])
    except CannotApply as failure:
        if failure.version <= sync.started + 1:
            empty = Folding(projection, log).writing() if sync.lost else None
            return Piece(log, empty, [], failure=failure, lost=sync.lost)
        piece = await _Sync(store, projection, log, collect=collect).run(kept, failure.version - 1)
        piece.failure = None if piece.more else failure
        return piece


class _Sync:
    def __init__(self, store: LogStore, projection: Projection[Any], log: LogId, *, collect: bool) -> None:
        self._store = store
        self._projection = projection
        self._log = log
        self._collected: list[Event] | None = [] if collect else None
        self.started = 0
        self.lost = False

    async def run(self, kept: Kept | None, until: int | None) -> Piece:
        """Fold up to ``until``, or a piece."""
        folding = Folding(self._projection, self._log, kept)
        self.started = folding.cursor.version
        count, applied = _FIRST_PAGE, 0
        while True:
            entries = await self._behind(folding.cursor, count, until)
            if entries is None:
                head = await self._store.head(self._log)
                if head.deleted or head.last.version == 0:
                    return Piece(self._log, Writing(self._log, None), [], lost=not head.deleted)
                folding = Folding(self._projection, self._log)
                self.started, self.lost, applied = 0, True, 0
                if self._collected is not None:
                    self._collected.clear()
                continue
            await self._apply(folding, entries)
            applied += len(entries)
            more = len(entries) == count
            if not more or applied >= _PIECE_EVENTS or folding.weight >= _PIECE_BYTES:
                writing = folding.writing() if applied or self.lost else None
                return Piece(self._log, writing, self._collected or [], applied, more, self.lost)
            size = sum(len(entry.document) for entry in entries) // len(entries) + 1
            count = max(1, min(PAGE, _PAGE_BYTES // size))

    async def _behind(self, at: Cursor, count: int, until: int | None) -> list[Entry] | None:
        """A page of what follows; None when what was applied last is not in the log any more."""
        if not at.version:
            entries = await self._store.read(self._log, 1, until, count)
        else:
            last = None if until is None else max(until, at.version)
            entries = await self._store.read(self._log, at.version, last, count + 1)
            if entries and (entries[0].version, entries[0].stamp) == (at.version, at.stamp):
                del entries[0]
            else:
                head = await self._store.head(self._log)
                if head.deleted or head.base != at:
                    return None
                del entries[count:]
        for version, entry in enumerate(entries, at.version + 1):
            if entry.version != version:
                raise CannotApply(version, "missing", 0, await missing(self._store, self._log, version))
        return entries

    async def _apply(self, folding: Folding[Any], entries: list[Entry]) -> None:
        for entry in entries:
            kind = "unreadable"
            try:
                event = decode(*entry)
                kind = event.type
                understood = folding.take(event)
            except Exception as error:
                raise CannotApply(entry.version, kind, entry.stamp, error) from error
            if not understood:
                try:
                    events = [one async for page in pages(self._store, self._log, until=event.version) for one in page]
                    folding.refold(events)
                except (ServerError, ConversationDeleted):
                    raise
                except Exception as error:
                    raise CannotApply(entry.version, kind, entry.stamp, error) from error
            if self._collected is not None:
                self._collected.append(event)
