"""Following one conversation: what is in its log after a cursor, then what is appended."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from eventlog.codec import decode
from eventlog.errors import FollowerTooSlow, Unreadable
from eventlog.events import Event
from eventlog.hub import Hub, LogPlace, read_on
from eventlog.identity import Cursor, LogId
from eventlog.reading import PAGE, pages_back
from eventlog.store.port import Entry, LogStore
from eventlog.subscription import POLL, Followed, Kind, Subscription
from eventlog.tail import Mark

RUN_ENDS = ("run-committed", "run-aborted")
_PAGE_BYTES = 4 * 1024 * 1024
"""A page larger than this makes the next ones smaller."""
_new = tuple.__new__  # events are followed by the thousand


class LogSubscription(Subscription[Cursor]):
    """See ``Conversation.follow``."""

    def __init__(
        self,
        hub: Hub,
        store: LogStore,
        log: LogId,
        after: Cursor | str | Literal["start", "now"] = "start",
        *,
        types: Collection[str] | None = None,
        run: str | None = None,
        ends_with_run: str | None = None,
        heartbeat: float | None = None,
        poll: float = POLL,
        max_behind: int | None = 10_000,
    ) -> None:
        super().__init__(hub, heartbeat=heartbeat, poll=poll)
        self._store = store
        self._log = log
        self._tag = log.tag
        self._types = None if types is None else frozenset(types)
        self._run = run
        self._last_run = ends_with_run
        self._max_behind = max_behind
        self._last: Mark | None = None
        """The last entry that was looked at."""
        if after == "start":
            self._last = Mark(0, 0)
        elif after != "now":
            cursor = log.check_cursor(after)
            self._last = Mark(cursor.version, cursor.stamp)
        self._may_be_over = ends_with_run is not None and after != "start"
        self._caught_up = False
        self._seen = -1
        """The news up to which everything was looked at."""
        self._waited = False
        self._excused = 0
        """Up to this version a follower that was waiting could not have been."""
        self._page = PAGE

    async def __anext__(self) -> Followed[Cursor]:
        items = self._items
        if not items:
            await self._fill()
        item = items.popleft()
        if type(item) is not Entry:
            found: Followed[Cursor] = item
            return found
        # An event is decoded when it is taken: a page of them at once would keep the collector of garbage busy.
        version, stamp, document = item
        try:
            event = decode(version, stamp, document)
        except Unreadable:
            await self.aclose()
            raise
        return self._item(event)

    def _item(self, event: Event) -> Followed[Cursor]:
        cursor = _new(Cursor, (event.version, event.stamp, self._tag))
        return _new(Followed, (Kind.EVENT, cursor, event, self._log.conversation))

    def _join(self) -> LogPlace:
        return self._hub.join_log(self._log)

    def _cursor(self) -> Cursor | None:
        return None if self._last is None else self._log.cursor(*self._last)

    async def _step(self) -> None:
        place = self._place
        assert isinstance(place, LogPlace)
        if self._last is None:
            last = (await self._store.head(self._log)).last
            self._last = Mark(last.version, last.stamp)
        if self._may_be_over:
            if await self._is_run_over(self._last.version):
                self._say_caught_up()
                self._end()
                return
            self._may_be_over = False
        self._check_pace(place)
        if await self._look(place, self._last):
            return
        place.offer(self._last, self._seen)
        if not self._caught_up:
            self._say_caught_up()
            return
        await self._wait(place, self._seen)
        self._waited = True

    async def _look(self, place: LogPlace, last: Mark) -> bool:
        """Take what there is to take, from the tail or from the server; whether that was anything."""
        news, is_due = place.news, self._due
        entries = [] if is_due or place.tail is None else place.tail.after(*last)
        if not entries and (is_due or (news != self._seen and not place.is_newest(last))):
            count = self._page
            entries = await read_on(self._store, self._log, last, count)
            if len(entries) == count:
                await self._note_backlog(place)
                self._adapt(entries)
                self._look_at = 0.0
            else:
                self._page = PAGE
                self._looked()
        elif entries:
            self._looked()
        self._seen = news
        if self._waited:
            self._waited, self._excused = False, place.newest
        if entries:
            place.newest = max(place.newest, entries[-1].version)
            self._take(entries)
        return bool(entries)

    def _take(self, entries: Sequence[Entry]) -> None:
        types, run, last_run = self._types, self._run, self._last_run
        if types is None and run is None and last_run is None:
            self._last = Mark(*entries[-1][:2])
            self._give(entries)
            return
        items: list[Followed[Cursor]] = []
        version = stamp = 0
        for version, stamp, document in entries:
            event = decode(version, stamp, document)
            if (types is None or event.type in types) and (run is None or event.run == run):
                items.append(self._item(event))
            if event.run is not None and event.run == last_run and event.type in RUN_ENDS:
                self._end()
                break
        self._last = Mark(version, stamp)
        if not items or items[-1].cursor.version != version:
            items.append(Followed(Kind.SKIPPED, Cursor(version, stamp, self._tag)))
        self._give(items)

    def _say_caught_up(self) -> None:
        assert self._last is not None
        self._caught_up = True
        self._give([Followed(Kind.CAUGHT_UP, self._log.cursor(*self._last))])

    def _adapt(self, entries: Sequence[Entry]) -> None:
        size = sum(len(entry.document) for entry in entries)
        self._page = max(1, self._page // 2) if size > _PAGE_BYTES else min(PAGE, self._page * 2)

    async def _note_backlog(self, place: LogPlace) -> None:
        """There is more than a page: find out how much."""
        if self._caught_up and self._max_behind is not None:
            place.newest = max(place.newest, (await self._store.head(self._log)).last.version)

    def _check_pace(self, place: LogPlace) -> None:
        """Raise when more was appended than may be, while this follower's consumer was busy."""
        if not self._caught_up or self._waited or self._max_behind is None or self._last is None:
            return
        behind = place.newest - max(self._last.version, self._excused)
        if behind > self._max_behind:
            cursor = self._log.cursor(*self._last)
            raise FollowerTooSlow(
                f"this follower of conversation {self._log.conversation!r} fell {behind:,} events behind; at most "
                f"{self._max_behind:,}: follow again after {cursor}, or give a larger max_behind",
                cursor,
            )

    async def _is_run_over(self, version: int) -> bool:
        """Whether the run that this ends with had ended at ``version``."""
        head = await self._store.head(self._log)
        if any(run.run == self._last_run for run in head.runs):
            return False
        if version <= head.base.version:
            return False
        after = head.base if head.base.version else None
        async for page in pages_back(self._store, self._log, after=after, until=version):
            for event in page:
                if event.run == self._last_run:
                    return event.type in RUN_ENDS
        return False
