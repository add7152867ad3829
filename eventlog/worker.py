"""One held partition at work: fetch, hand over, move the mark.

The loop of ``run`` alone writes: the mark, the window handed over, what waits and what is parked go
in one fenced step. Lanes hand events over, and wake the loop.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from eventlog.backlog import Backlog, path_of
from eventlog.codec import decode
from eventlog.errors import ConversationDeleted
from eventlog.identity import LogId
from eventlog.joining import join
from eventlog.lanes import Lanes, say_let_go
from eventlog.parking import Failure, Parked, parse_field
from eventlog.reader import Reader, Store, missing, read_checked
from eventlog.store.port import FeedEntry
from eventlog.store.readers import NEVER, Ask, Mark, ReaderStore, Waiting
from eventlog.window import Cell, Window
from eventlog.work import Work

_log = logging.getLogger("eventlog.groups")

MOST_HELD = 1_000
"""While so many conversations of a partition are to be delivered again, nothing more is fetched."""
LONGEST_WINDOW = 10
"""Batches that are fetched beyond the mark, at most, while one slow handler keeps it from moving."""
COMMIT_AFTER = 0.1
"""Seconds after which a mark that may move is moved, though more is in hand."""


class Worker:
    """The consumption of one partition, from taking it over to giving it up."""

    def __init__(self, store: Store, readers: ReaderStore, reader: Reader, work: Work) -> None:
        self.reader = reader
        self.asked = True
        """Something may have been asked of parked events."""
        self.window = Window(reader.mark)
        self._store = store
        self._readers = readers
        self._work = work
        self._backlog = Backlog()
        self._lanes = Lanes(store, reader, work, self._backlog, self.window, self._written, self._changed)
        self._wake = asyncio.Event()
        self._caught_up = False
        self._recorded = reader.left
        """The window as it is stored."""
        self._uncommitted_since: float | None = None
        self._deletions: dict[LogId, Cell] = {}
        """Conversations whose deletion was fetched: the mark passes it when what is left of them was let go."""
        self._named: list[asyncio.Future[None]] = []
        """Who waits until what it is about to hand over is written."""
        self._lost: Exception | None = None

    @property
    def stopping(self) -> bool:
        """Whether the place is being given up."""
        return self._lanes.stopping

    @property
    def position(self) -> int:
        """The number of the last entry fetched."""
        return self.window.end.seq

    def more(self) -> None:
        """There is, or may be, more in the feed; or the group goes on."""
        self._caught_up = False
        self._wake.set()

    def stop(self, *, cancel: bool = False) -> None:
        """Hand nothing more over; when the handlers have returned (or were cancelled), write and give up."""
        self._lanes.stop(cancel=cancel)
        self._wake.set()

    def lose(self, error: Exception) -> None:
        """The place is another's, or about to be: end the handlers and write nothing more."""
        self._lost = self._lost or error
        self._lanes.fence()
        self.stop(cancel=True)

    async def run(self) -> None:
        """Work until it is stopped. Raises ``ReaderFenced`` when it lost the place, and whatever else goes wrong."""
        try:
            await self._take_over()
            while not self.stopping or self._lanes.tasks:
                self._wake.clear()
                self._check()
                await self._pass()
                await self._sleep()
            self._check()
            await self._let_go()
            self._lanes.set_rest_waiting()
            await self._commit()
            await self.reader.release()
        except Exception as error:
            self.lose(error)
            raise
        finally:
            self._work.passed[self.reader.hold.partition] = self.reader.mark
            if tasks := self._lanes.tasks:
                self.stop(cancel=True)
                await asyncio.wait(tasks)

    def _changed(self) -> None:
        self._wake.set()

    def _check(self) -> None:
        error = self._lost or self._lanes.error
        if error is not None:
            raise error

    async def _take_over(self) -> None:
        """Find what a former holder left: what it had named, and a window that it did not finish."""
        backlog, work = self._backlog, self._work
        passed = work.passed.get(self.reader.hold.partition)
        if passed is not None and passed.seq > self.reader.mark.seq:
            await self.reader.fetch(passed, 1)  # the server lost the mark; what it named may be lost, too
        backlog.waiting.update(await self._readers.waiting(work.group, self.reader.hold.partition))
        now = self.reader.now_ms()
        for key, waiting in backlog.left_busy():
            log = LogId.of_path(path_of(key))
            failure = Failure(f"its handler's process ended before it returned, delivery {waiting.given}")
            _log.warning("group %r: version %d of %s: %s", work.group, waiting.version, log, failure.error)
            if waiting.given >= work.max_deliveries:
                stamp = waiting.stamp if waiting.version == waiting.through else 0
                parked = Parked(*log, waiting.version, stamp, waiting.given, failure.error, "", now, work.waits)
                backlog.park_waiting(key, parked)
            else:
                backlog.rest(key, now + work.pause_ms(waiting.given))
        if self.reader.is_new and (await self._store.feed_base(self.reader.hold.partition)).announced:
            await self._join()
        unfinished = self.reader.left - self.window.mark.seq
        entries = await self.reader.fetch(self.window.mark, unfinished) if unfinished > 0 else []
        if len(entries) < unfinished:
            raise self.reader.lost(Mark(self.reader.left, 0))
        for entry in entries:
            mark, concerns = Mark(entry.seq, entry.stamp), work.concerns(entry.log)
            if concerns and entry.is_deletion:
                self._deletions[entry.log] = self.window.add(mark, 1)
                continue
            self.window.add(mark, 0)
            if concerns:
                backlog.doubt(entry.log.path, entry.first, entry.first + entry.events - 1, entry.stamp)
        await self._commit()

    async def _join(self) -> None:
        """Stand at the end of a feed whose beginning is not to be relied on; what it had named waits.

        The next commit writes both in one step. What waits is read from the logs.
        """
        mark, passed = await join(self._store, self.reader, self._work.concerns)
        for log, last in passed.items():
            self._backlog.set(log.path, Waiting(1, last.version, last.stamp))
        self.window.mark = self.window.end = mark
        told = "group %r: partition %d: the feed's beginning was trimmed: %d conversations are read from their logs"
        _log.info(told, self._work.group, self.reader.hold.partition, len(passed))

    async def _let_go(self) -> None:
        """Let go of what is left of deleted conversations of which nothing is in hand."""
        done = [log for log in self._deletions if not self._lanes.works_on(log)]
        if not done:
            return
        hold, parked = self.reader.hold, dict[str, list[str]]()
        if (await self._readers.counts(hold.group, hold.partition)).parked:
            async for name, _ in self._readers.parked(hold.group, hold.partition):
                parked.setdefault(name.partition("@")[2], []).append(name)
        for log in done:
            events = self._lanes.drop(log) + self._backlog.let_go(log.path)
            names = set(parked.get(log.path, ()))
            for name in names:
                self._backlog.unpark(name)
            self.window.settle(self._deletions.pop(log))
            say_let_go(hold.group, log, events, len(names))

    async def _pass(self) -> None:
        if not self.stopping:
            if self._deletions:
                await self._let_go()
            if self.asked:
                await self._do_asked()
            if not self._work.paused and self.reader.held:
                if self._wants_more():
                    await self._fetch()
                self._lanes.start()
        now = asyncio.get_running_loop().time()
        if self._uncommitted_since is None and (self._backlog or self.window.advance() != self.reader.mark):
            self._uncommitted_since = now
        since = self._uncommitted_since
        overdue = since is not None and (self.window.left == 0 or now - since >= COMMIT_AFTER)
        if self._named or overdue:
            await self._commit()

    def _wants_more(self) -> bool:
        if self._caught_up or self.window.left > self._work.batch // 2:
            return False
        if self.window.end.seq - self.window.mark.seq >= LONGEST_WINDOW * self._work.batch:
            return False
        waiting = self._backlog.waiting
        return len(waiting) < MOST_HELD or sum(one.due_ms != NEVER for one in waiting.values()) < MOST_HELD

    async def _sleep(self) -> None:
        """Until something changes, is due, or the slow poll."""
        if self._wake.is_set():
            await asyncio.sleep(0)
            return
        seconds, now = self._work.poll, self.reader.now_ms()
        due = self._backlog.next_due(now)
        if due is not None:
            seconds = min(seconds, (due - now) / 1000 + 0.001)
        if self._uncommitted_since is not None:
            seconds = min(seconds, COMMIT_AFTER)
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            self._caught_up = False

    async def _commit(self) -> None:
        """Write all that changed, in one step."""
        named, self._named = self._named, []
        mark = self.window.advance()
        handed = self.window.end.seq if self.window.end != mark else 0
        if mark != self.reader.mark or handed != self._recorded or self._backlog:
            step = replace(self._backlog.changes(), mark=mark, window=handed)
            counts = await self.reader.advance(step)
            self._backlog.written(step)
            self._recorded = handed
            self.asked = self.asked or counts.asked > 0
        self._uncommitted_since = None
        for future in named:
            if not future.done():
                future.set_result(None)

    async def _fetch(self) -> None:
        entries = await self.reader.fetch(self.window.end, self._work.batch)
        self._caught_up = len(entries) < self._work.batch
        total, fetched = 0, dict[str, list[tuple[FeedEntry, Cell]]]()
        for entry in entries:
            if total and total + entry.events > self._work.batch:
                self._caught_up = False
                break
            mark, path = Mark(entry.seq, entry.stamp), entry.log.path
            if not self._work.concerns(entry.log):
                self.window.add(mark, 0)
            elif entry.is_deletion:
                self._deletions[entry.log] = self.window.add(mark, 1)
                say_let_go(self._work.group, entry.log, self._lanes.drop(entry.log), 0)
            elif path in self._backlog.waiting:
                self.window.add(mark, 0)
                self._backlog.extend(path, entry.first + entry.events - 1, entry.stamp)
            else:
                total += entry.events
                fetched.setdefault(path, []).append((entry, self.window.add(mark, entry.events)))
        if entries:
            await asyncio.gather(self._commit(), *(self._load(items) for items in fetched.values()))

    async def _load(self, items: list[tuple[FeedEntry, Cell]]) -> None:
        """Put the events of these entries of one conversation into its lane; of a deleted one there are none."""
        try:
            await self._load_all(items)
        except ConversationDeleted:
            for entry, cell in items:
                self.window.settle(cell, entry.events)
            say_let_go(self._work.group, items[0][0].log, sum(entry.events for entry, _ in items), 0)

    async def _load_all(self, items: list[tuple[FeedEntry, Cell]]) -> None:
        first, last = items[0][0], items[-1][0]
        entries = iter(await read_checked(self._store, first.log, first.first, last.first + last.events - 1))
        loaded = []
        for entry, cell in items:
            for _ in range(entry.events):
                stored = next(entries)
                if stored.stamp != entry.stamp:
                    raise await missing(self._store, entry.log, stored.version)
                loaded.append((decode(*stored), cell))
        self._lanes.put(first.log, loaded)

    async def _written(self) -> None:
        """Wait until the loop has written what is about to be handed over."""
        future = asyncio.get_running_loop().create_future()
        self._named.append(future)
        self._wake.set()
        await future

    async def _do_asked(self) -> None:
        """Replay and drop what was asked for; what is in hand is left for the next time."""
        self.asked = False
        partition, group = self.reader.hold.partition, self._work.group
        for name, ask in (await self._readers.asked(group, partition)).items():
            log, version = parse_field(name)
            document = await self._readers.parked_one(group, partition, name)
            if self._lanes.works_on(log):
                self.asked = True
            elif document is None:
                self._backlog.forget(name)
            elif ask is Ask.DROP:
                self._backlog.drop(log, version)
            else:
                self._backlog.replay(Parked.decode(document))
        await self._commit()
