"""One held partition of a view at work: scan the logs, then follow the feed; write and move the mark in one step.

The feed tells which conversations changed; what happened is read from their logs, so a conversation
may be further than the mark, and what was applied already is passed over. Where the feed lost what
the mark names, every conversation is compared with its log, and folded anew where it differs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eventlog.errors import Gap, ProjectionStopped
from eventlog.events import Event
from eventlog.identity import LogId
from eventlog.parking import MOST_ERROR, Parked, parked_field, parse_field
from eventlog.reader import Reader, Store, ends_of
from eventlog.store.port import FeedEntry
from eventlog.store.readers import NEVER, Advance, Counts, Hold, Mark, ReaderStore, Waiting
from eventlog.store.views import ViewId, ViewStore, Writing
from projections.progress import Scan
from projections.projection import Projection
from projections.syncing import CannotApply, Piece, bring_up

_log = logging.getLogger("eventlog.projections")
_SIDE_BY_SIDE = 8
"""Conversations that are read at the same time."""
_SCANNED = 100
"""Conversations of a scan that are written in one step."""


@dataclass(frozen=True, slots=True)
class Told:
    """A step of the work on one partition. Of what is applied it counts conversations and events."""

    step: str
    """``acquired``, ``scanning``, ``scanned``, ``fetched``, ``applied``, ``committed``, ``lost``, ``failed``."""
    view: ViewId
    partition: int
    conversations: int = 0
    events: int = 0
    replaying: bool = False
    """It is done again from the logs: nothing with an effect outside may follow from it."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What one step applied and wrote, for ``after``."""

    view: ViewId
    partition: int
    events: Sequence[tuple[LogId, Event]]
    replaying: bool


@dataclass(slots=True)
class Task:
    """What the workers of one view have in common."""

    projection: Projection[Any]
    view: ViewId
    waits: bool
    """An event that cannot be applied sets its conversation waiting, and does not stop the projection."""
    batch: int
    poll: float
    told: Callable[[Told], None]
    after: Callable[[Applied], Awaitable[None]] | None
    is_live: Callable[[], bool]
    paused: bool = False

    @property
    def group(self) -> str:
        """The name of the view's readers."""
        return self.view.group


class Partition:
    """Keeps one partition of a view, from taking it over to giving it up."""

    def __init__(self, store: Store, readers: ReaderStore, views: ViewStore, reader: Reader, task: Task) -> None:
        self.reader = reader
        self.asked = False
        self._store = store
        self._readers = readers
        self._views = views
        self._task = task
        self._number = reader.hold.partition
        self._stopping = False
        self._lost: Exception | None = None
        self._wake = asyncio.Event()
        self._waiting: dict[str, Waiting] = {}
        self._parked: dict[str, str] = {}
        """The field under which the event is parked that a conversation failed at, by path."""

    @property
    def stopping(self) -> bool:
        """Whether the place is being given up."""
        return self._stopping

    @property
    def position(self) -> int:
        """The number of the last feed entry passed."""
        return self.reader.mark.seq

    def more(self) -> None:
        """There is, or may be, more to do."""
        self._wake.set()

    def stop(self, *, cancel: bool = False) -> None:
        """Finish the piece in hand and give the place up."""
        self._stopping = True
        self._wake.set()

    def lose(self, error: Exception) -> None:
        """The place is another's: write nothing more."""
        self._lost = self._lost or error
        self.stop()

    async def run(self) -> None:
        """Work until it is stopped. Raises ``ProjectionStopped``, ``ReaderFenced``, and the store's errors."""
        try:
            await self._work()
        except ProjectionStopped:
            await self.reader.release()  # for one that is mended to begin at once
            raise
        self._goes_on()
        await self.reader.release()

    async def _work(self) -> None:
        await self._take_over()
        scan = Scan.parse(await self._views.progress(self._task.view, self._number))
        while self._goes_on():
            self._wake.clear()
            try:
                if self._task.paused:
                    moved = False
                elif not scan.done:
                    scan = await self._scan(scan)
                    moved = True
                else:
                    if self.asked:
                        await self._retry()
                    moved = await self._follow()
            except Gap as error:
                scan, moved = await self._begin_again(error), True
            if not moved:
                await self._sleep()

    def _goes_on(self) -> bool:
        if self._lost is not None:
            raise self._lost
        return not self._stopping

    async def _sleep(self) -> None:
        try:
            async with asyncio.timeout(self._task.poll):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _take_over(self) -> None:
        self._tell("acquired")
        self._waiting = await self._readers.waiting(self._task.group, self._number)
        async for name, _ in self._readers.parked(self._task.group, self._number):
            self._parked[parse_field(name)[0].path] = name
        await self._retry()

    async def _scan(self, scan: Scan) -> Scan:
        """Bring the next conversations up to their logs, in the order of their first appends."""
        page = await self._store.conversations_after(self._number, scan.after, _SCANNED)
        if page:
            logs = [log for _, log in page if log.path not in self._waiting]
            self._tell("scanning", len(logs), replaying=True)
            pieces = await self._bring_up(logs, replaying=True)
            scan = scan.past(page[-1][0], len(page))
        else:
            pieces = await self._sweep() if scan.checks else []
            scan = scan.ended()
        await self._commit(pieces, None, replaying=True, scanned=scan)
        self._tell("scanned", len(pieces), sum(piece.applied for piece in pieces), replaying=True)
        return scan

    async def _sweep(self) -> list[Piece]:
        """What is kept of conversations that are not there any more."""
        pieces = []
        async for log, _ in self._views.kept(self._task.view, self._number):
            head = await self._store.head(log)
            if head.deleted or head.last.version == 0:
                pieces.append(Piece(log, Writing(log, None), [], lost=True))
        return list({piece.log: piece for piece in pieces}.values())

    async def _begin_again(self, error: Gap) -> Scan:
        """The feed lost what the mark names: note where it ends now, then compare every conversation with its log."""
        _log.error("view %s: partition %d: %s; every conversation is compared with its log", *self._named(), error)
        self._tell("lost")
        end = (await ends_of(self._store))[self._number]
        scan = Scan(checks=True)
        await self._commit([], end, replaying=True, scanned=scan)
        return scan

    async def _follow(self) -> bool:
        """Apply what the feed names next; whether there was anything."""
        entries = await self.reader.fetch(self.reader.mark, self._task.batch)
        if not entries:
            return False
        entries = self._cut(entries)
        self._tell("fetched", len({entry.log for entry in entries}), sum(entry.events for entry in entries))
        replaying = not self._task.is_live()
        gone = {entry.log for entry in entries if entry.is_deletion}
        logs = dict.fromkeys(entry.log for entry in entries if entry.log not in gone)
        pieces = await self._bring_up([log for log in logs if log.path not in self._waiting], replaying=replaying)
        pieces += [Piece(log, Writing(log, None), []) for log in gone]
        self._tell("applied", len(pieces), sum(piece.applied for piece in pieces), replaying=replaying)
        await self._commit(pieces, self._passed(entries, pieces), replaying=replaying)
        return True

    def _cut(self, entries: list[FeedEntry]) -> list[FeedEntry]:
        """So many that they name about one batch of events."""
        total = 0
        for index, entry in enumerate(entries):
            total += entry.events
            if total > self._task.batch and index:
                return entries[:index]
        return entries

    def _passed(self, entries: list[FeedEntry], pieces: list[Piece]) -> Mark:
        """How far the mark may go: where the projection stops, to before the entry it stops at."""
        stops = {} if self._task.waits else {p.log: p.failure.version for p in pieces if p.failure is not None}
        mark = self.reader.mark
        for entry in entries:
            if entry.log in stops and entry.first + entry.events > stops[entry.log]:
                break
            mark = Mark(entry.seq, entry.stamp)
        return mark

    async def _bring_up(self, logs: Sequence[LogId], *, replaying: bool) -> list[Piece]:
        """The last piece of each conversation; those before it are written already."""
        if not logs:
            return []
        kept = await self._views.load(self._task.view, self._number, logs)
        todo, last = list(zip(logs, kept, strict=True)), list[Piece]()
        while todo:
            limit = asyncio.Semaphore(_SIDE_BY_SIDE)
            pieces = await asyncio.gather(*(self._piece(limit, *one) for one in todo))
            last += [piece for piece in pieces if not piece.more]
            partial = [piece for piece in pieces if piece.more]
            if partial:
                self._goes_on()
                await self._commit(partial, None, replaying=replaying)
            todo = [(piece.log, piece.writing.kept) for piece in partial if piece.writing is not None]
        return last

    async def _piece(self, limit: asyncio.Semaphore, log: LogId, kept: Any) -> Piece:
        async with limit:
            return await bring_up(self._store, self._task.projection, log, kept, collect=self._task.after is not None)

    async def _retry(self) -> None:
        """Try again where an event could not be applied."""
        self.asked = False
        if self._waiting:
            replaying = not self._task.is_live()
            pieces = await self._bring_up([LogId.of_path(path) for path in self._waiting], replaying=replaying)
            await self._commit(pieces, None, replaying=replaying)

    async def _commit(
        self,
        pieces: Sequence[Piece],
        mark: Mark | None,
        *,
        replaying: bool,
        scanned: Scan | None = None,
    ) -> None:
        """Write the pieces, the mark and what failed, in one step. Raises ``ProjectionStopped``."""
        step = Advance(None, self.reader.mark if mark is None else mark)
        failures = [(piece.log, piece.failure) for piece in pieces if piece.failure is not None]
        for piece in pieces:
            if piece.lost:
                _log.error("view %s: partition %d: %s was folded anew: its log lost its end", *self._named(), piece.log)
            path = piece.log.path
            if piece.failure is None and not piece.more:
                if path in self._parked:
                    step.parked[self._parked.pop(path)] = None
                if self._waiting.pop(path, None) is not None:
                    step.waiting[path] = None
        for log, failure in failures:
            self._note(step, log, failure)
        writings = [piece.writing for piece in pieces if piece.writing is not None]
        view, stop = self._task.view, bool(failures) and not self._task.waits

        async def write(hold: Hold, advance: Advance, lease_ms: int) -> Counts:
            text = None if scanned is None or stop else str(scanned)
            return await self._views.commit(view, hold, advance, writings, lease_ms, scanned=text)

        await self.reader.advance(step, write)
        applied = sum(piece.applied for piece in pieces)
        self._tell("committed", len(writings), applied, replaying=replaying)
        if self._task.after is not None and applied:
            events = [(piece.log, event) for piece in pieces for event in piece.events]
            await self._task.after(Applied(view, self._number, events, replaying))
        if failures:
            self._tell("failed", len(failures))
            if stop:
                raise self._stopped(*failures[0])

    def _note(self, step: Advance, log: LogId, failure: CannotApply) -> None:
        """The event is parked, so that people see it; and its conversation waits, where it does not stop all."""
        name, waits, now = parked_field(log, failure.version), self._task.waits, self.reader.now_ms()
        before = self._parked.get(log.path)
        if before is not None and before != name:
            step.parked[before] = None
        self._parked[log.path] = name
        step.done.add(name)
        step.parked[name] = Parked(
            *log, failure.version, failure.stamp, 1, str(failure)[:MOST_ERROR], failure.failure.trace, now, waits
        ).encode()
        if waits:
            one = Waiting(failure.version, failure.version, failure.stamp, due_ms=NEVER)
            self._waiting[log.path] = step.waiting[log.path] = one
            _log.error("view %s: partition %d: %s waits: %s", *self._named(), log, failure)

    def _stopped(self, log: LogId, failure: CannotApply) -> ProjectionStopped:
        return ProjectionStopped(
            f"projection {self._task.projection.name!r} cannot apply conversation {log.conversation!r} of "
            f"{log.tenant!r}, {failure}; it stands before that event and nothing was skipped: mend it and run it "
            "again, or let it set such conversations waiting"
        )

    def _named(self) -> tuple[str, int]:
        return f"{self._task.view.projection}.{self._task.view.generation}", self._number

    def _tell(self, step: str, conversations: int = 0, events: int = 0, *, replaying: bool = False) -> None:
        self._task.told(Told(step, self._task.view, self._number, conversations, events, replaying))
