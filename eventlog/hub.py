"""What all followers of a process share: one wait for news, and one reading of what is new.

The hub waits on the feeds, over one connection, and wakes whoever follows a conversation that grew,
or its tenant. For each followed conversation it keeps a tail of the newest entries: it reads once
what is new, from the tail's last entry on, and the followers take it from there. All of that only
hurries things up. A follower that finds no tail, or has not looked for a while, reads the log itself.

Documents are kept as they are stored and each follower decodes its own: nobody's change of an event
reaches another.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable

from eventlog.errors import EventLogError, LogClosed, ServerUnavailable
from eventlog.identity import LogId
from eventlog.reading import pages
from eventlog.store.port import Entry, FeedEntry, FeedStore, LogStore
from eventlog.tail import MOST_ENTRIES, Mark, Tail

MOST_TAIL_BYTES = 64 * 1024 * 1024
"""Of all tails together; those that grew longest ago give way."""
_SILENCE = 2.0
"""Seconds of one wait for news. Then the ends of the feeds are compared: a server that lost some says nothing."""
_ENTRIES = 1_000
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_HOPELESS_PAUSE = 30.0
"""Seconds between attempts where the server answers and does not let us wait; followers poll."""


async def read_on(store: LogStore, log: LogId, last: Mark, count: int) -> list[Entry]:
    """At most ``count`` entries after ``last``, by one read that begins at ``last`` itself.

    So nothing comes between the check that it is still there and the reading. Raises ``LogLost`` or
    ``Truncated`` where something is missing.
    """
    found = await store.read(log, last.version or 1, None, count + 1 if last.version else count)
    anchored = not last.version or (bool(found) and found[0][:2] == last)
    entries = found[1:] if last.version and anchored else found
    dense = (
        (entries[0].version, entries[-1].version) == (last.version + 1, last.version + len(entries))
        if entries
        else last.version > 0
    )
    if anchored and dense:
        return entries
    # Something is missing, or was trimmed up to ``last``, or was never there: ``pages`` tells which, and raises.
    async for _ in pages(store, log, after=log.cursor(*last)):
        break
    return entries if dense or not entries else await read_on(store, log, last, count)


class Place:
    """Something that is followed, and who waits for news of it."""

    def __init__(self) -> None:
        self.followers = 0
        self.news = 0
        """Counts what was heard: news since it was last looked at is news to look at."""
        self._waiting: set[asyncio.Future[bool]] = set()

    def wake(self) -> None:
        """Let everybody look."""
        self.news += 1
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(True)

    async def wait(self, seen: int, seconds: float) -> bool:
        """Wait for news beyond ``seen``; whether there was any within ``seconds``."""
        if self.news != seen:
            return True
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(max(seconds, 0), _expire, waiting)
        self._waiting.add(waiting)
        try:
            return await waiting
        finally:
            self._waiting.discard(waiting)
            timer.cancel()


def _expire(waiting: asyncio.Future[bool]) -> None:
    if not waiting.done():
        waiting.set_result(False)


class LogPlace(Place):
    """A followed conversation."""

    def __init__(self, log: LogId) -> None:
        super().__init__()
        self.log = log
        self.newest = 0
        """The newest version that was heard of."""
        self.tail: Tail | None = None

        self._told = 0
        """The news of which the tail holds everything."""

    def offer(self, last: Mark, seen: int) -> None:
        """Begin a tail where a follower found the end, when it had heard the news up to ``seen``."""
        if self.tail is None:
            self.tail, self._told = Tail(last), seen

    def tell(self) -> None:
        """Wake everybody; what they are woken for is in the tail, if there is one."""
        self.wake()
        self._told = self.news

    def is_newest(self, last: Mark) -> bool:
        """Whether nothing was heard of beyond this entry."""
        return self.tail is not None and self._told == self.news and self.tail.last == last


class TenantPlace(Place):
    """A followed tenant."""

    def __init__(self, tenant: str) -> None:
        super().__init__()
        self.tenant = tenant
        self.all_grew = 0
        """The news at which every partition had to be looked at."""
        self._grew: dict[int, int] = {}

    def grow(self, partitions: Iterable[int]) -> None:
        """The tenant has something new in these."""
        for partition in partitions:
            self._grew[partition] = self.news + 1
        self.wake()

    def grown(self, seen: int) -> list[int]:
        """The partitions that grew beyond what was ``seen``."""
        return [partition for partition, news in self._grew.items() if news > seen]


class Hub:
    """One for each log that is open. It runs while somebody follows, and belongs to one event loop."""

    def __init__(self, store: LogStore, *, hints: bool = True) -> None:
        self.hints = hints
        """Whether followers are woken; without it they look every ``poll`` seconds."""
        self._store = store
        self._logs: dict[LogId, LogPlace] = {}
        self._tenants: dict[str, TenantPlace] = {}
        self._tails: dict[LogId, Tail] = {}
        """Those that hold entries, the one that grew last at the end."""
        self._tail_bytes = 0
        self._running: asyncio.Task[None] | None = None

    @property
    def feeds(self) -> FeedStore:
        """The feeds of the store."""
        return self._store  # type: ignore[return-value]  # every store has them

    @property
    def is_followed(self) -> bool:
        """Whether anybody follows anything."""
        return bool(self._logs or self._tenants)

    def join_log(self, log: LogId) -> LogPlace:
        """Follow a conversation, until ``leave``."""
        place = self._logs.get(log)
        if place is None:
            place = self._logs[log] = LogPlace(log)
        self._join(place)
        return place

    def join_tenant(self, tenant: str) -> TenantPlace:
        """Follow a tenant, until ``leave``."""
        place = self._tenants.get(tenant)
        if place is None:
            place = self._tenants[tenant] = TenantPlace(tenant)
        self._join(place)
        return place

    def leave(self, place: Place) -> None:
        """Follow no longer."""
        place.followers -= 1
        if place.followers:
            return
        if isinstance(place, LogPlace):
            self._logs.pop(place.log, None)
            self._drop(place)
        elif isinstance(place, TenantPlace):
            self._tenants.pop(place.tenant, None)

    async def close(self) -> None:
        """Wake everybody once more, to find the log closed, and then nobody."""
        self.hints = False
        self._wake_all()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    def _join(self, place: Place) -> None:
        place.followers += 1
        if self.hints and (self._running is None or self._running.done()):
            self._running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        """Hear and tell while there is anybody to tell; a wait under way when the last one leaves is not cut short."""
        ends: list[int] | None = None
        pause = _FIRST_PAUSE
        while self.is_followed:
            try:
                if ends is None:
                    ends = await self.feeds.feed_ends()
                    self._wake_all()
                entries = await self.feeds.wait_feeds(ends, _SILENCE, _ENTRIES)
                is_whole = True
                for entry in entries:
                    is_whole = is_whole and entry.seq <= ends[entry.partition] + 1
                    ends[entry.partition] = max(ends[entry.partition], entry.seq)
                if not is_whole:  # something between was trimmed or lost: each follower finds out for itself
                    self._wake_all()
                elif entries:
                    await self._spread(entries)
                elif any(now < heard for now, heard in zip(await self.feeds.feed_ends(), ends, strict=True)):
                    ends = None
                pause = _FIRST_PAUSE
            except LogClosed:
                return
            except EventLogError as error:
                # Whatever it is, followers meet it when they read; here it is only waited for.
                ends = None
                await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  not a secret
                pause = min(pause * 2, _LONGEST_PAUSE if isinstance(error, ServerUnavailable) else _HOPELESS_PAUSE)

    def _wake_all(self) -> None:
        for log in list(self._logs.values()):
            self._drop(log)
            log.newest = 0
            log.wake()
        for tenant in self._tenants.values():
            tenant.all_grew = tenant.news + 1
            tenant.wake()

    async def _spread(self, entries: list[FeedEntry]) -> None:
        grown: dict[LogId, FeedEntry] = {}
        partitions: dict[str, set[int]] = {}
        for entry in entries:
            if entry.log in self._logs:
                grown[entry.log] = entry
            if entry.log.tenant in self._tenants:
                partitions.setdefault(entry.log.tenant, set()).add(entry.partition)
        for tenant, numbers in partitions.items():
            self._tenants[tenant].grow(numbers)
        if len(grown) == 1:
            [entry] = grown.values()
            await self._refresh(self._logs[entry.log], entry)
        elif grown:
            await asyncio.gather(*(self._refresh(self._logs[log], entry) for log, entry in grown.items()))

    async def _refresh(self, place: LogPlace, entry: FeedEntry) -> None:
        """Read what is new up to this append, and wake who follows."""
        if entry.is_deletion:
            self._drop(place)
            place.wake()
            return
        tail, last = place.tail, entry.first + entry.events - 1
        place.newest = max(place.newest, last)
        if tail is not None and last <= tail.last.version and tail.holds(last, entry.stamp):
            return
        try:
            if tail is None or not tail.last.version < last <= tail.last.version + MOST_ENTRIES:
                self._drop(place)
                tail = place.tail = await self._tail_before(entry)
            while tail is not None and tail.last.version < last:
                # An append may be larger than a tail; whoever is woken must find all of it, there or in the log.
                found = await read_on(self._store, place.log, tail.last, MOST_ENTRIES)
                if not found:
                    break
                self._extend(place, tail, found)
        except EventLogError:
            self._drop(place)
        place.tell()

    async def _tail_before(self, entry: FeedEntry) -> Tail | None:
        """An empty tail right before this append; None where what stood there was trimmed."""
        if entry.first == 1:
            return Tail(Mark(0, 0))
        found = await self._store.read(entry.log, entry.first - 1, entry.first - 1, 1)
        return Tail(Mark(*found[0][:2])) if found else None

    def _extend(self, place: LogPlace, tail: Tail, entries: list[Entry]) -> None:
        if self._logs.get(place.log) is not place:
            tail.extend(entries)
            return
        place.newest = max(place.newest, entries[-1].version)
        self._forget(place.log)
        tail.extend(entries)
        self._tails[place.log] = tail
        self._tail_bytes += tail.size
        while self._tail_bytes > MOST_TAIL_BYTES:
            oldest = next(iter(self._tails))
            self._forget(oldest).clear()

    def _drop(self, place: LogPlace) -> None:
        if place.log in self._tails:
            self._forget(place.log)
        place.tail = None

    def _forget(self, log: LogId) -> Tail:
        """Take a tail out of the count."""
        tail = self._tails.pop(log, None) or Tail(Mark(0, 0))
        self._tail_bytes -= tail.size
        return tail
