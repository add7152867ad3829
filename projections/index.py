"""Pages over an index, merged over the partitions, and how far the view behind it has come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from eventlog.codec import decode
from eventlog.errors import GroupGone, Unreadable, ViewMissing
from eventlog.reader import Store
from eventlog.store.readers import Mark, ReaderStore
from eventlog.store.views import Found, ViewId, ViewStore
from projections.page import AsOf, Index, Page, check_page, cut
from projections.views.fields import milliseconds

T = TypeVar("T")

Fetch = Callable[[int, str | None, bool], Awaitable[list[Found]]]
"""(count, after, reverse) -> at most ``count`` lines behind the place ``after``, as ``ViewStore.index``."""


async def page(
    store: Store,
    readers: ReaderStore,
    views: ViewStore,
    view: ViewId,
    tenant: str,
    index: str,
    read: Callable[[Found], T | None],
    *,
    limit: int = 50,
    after: str | None = None,
    before: str | None = None,
    reverse: bool = False,
) -> Page[T]:
    """A page of a tenant's index in one generation of a view: by what its lines are sorted, or in ``reverse``.

    ``read`` makes an item of a line, or None of one that is to be passed over; the page is filled
    up with others, so a rare item may take a walk along the whole index. At most ``limit`` lines
    are fetched of a partition at a time. ``after`` and ``before`` are cursors that a page gave.
    Raises ``CursorInvalid``, ``InvalidInput`` for other arguments, ``ViewMissing`` when the view
    was dropped.
    """

    def lines_of(partition: int) -> Fetch:
        def fetch(count: int, place: str | None, backward: bool) -> Awaitable[list[Found]]:
            return views.index(view, partition, tenant, index, count=count, after=place, reverse=backward)

        return fetch

    which = Index(view.projection, tenant, index)
    start = check(which, limit, after, before)
    as_of = await how_far(store, readers, view)
    sources = [lines_of(partition) for partition in range(store.partitions)]
    found = await walk(sources, read, limit, start, reverse=reverse != (before is not None))
    return cut(found, which, limit, as_of, after=after is not None, before=before is not None)


def check(which: Index, limit: int, after: str | None, before: str | None) -> str | None:
    """The place from which a page begins; None: the list's end. Raises as ``page`` does."""
    check_page(limit, after, before)
    cursor = before if after is None else after
    return None if cursor is None else which.place(cursor)


async def walk(
    sources: Sequence[Fetch], read: Callable[[Found], T | None], limit: int, start: str | None, *, reverse: bool
) -> list[tuple[str, T]]:
    """The first ``limit`` + 1 items behind ``start`` of all sources, merged by their places, which they come with."""
    pick = max if reverse else min
    walks = await asyncio.gather(*(_Walk(fetch, limit, reverse).begin(start) for fetch in sources))
    found: list[tuple[str, T]] = []
    while len(found) <= limit and (heads := {one.head.member: one for one in walks if one.head is not None}):
        member = pick(heads)
        line = heads[member].head
        item = None if line is None or line.document is None else read(line)
        if item is not None:
            found.append((member, item))
        if len(found) <= limit:
            await heads[member].step()
    return found


async def how_far(store: Store, readers: ReaderStore, view: ViewId) -> AsOf:
    """How far the view has come. What is read of it afterwards has come as far at least."""
    now_ms = await store.now_ms()
    ends = await store.feed_ends()
    marks = await _marks(store, readers, view)
    lags = [max(end - mark.seq, 0) for end, mark in zip(ends, marks, strict=True)]
    if not any(lags):
        return AsOf(0, now_ms)
    behind = [(partition, mark) for partition, mark in enumerate(marks) if lags[partition]]
    times = await asyncio.gather(*(_time_behind(store, partition, mark) for partition, mark in behind))
    known = [time for time in times if time is not None]
    return AsOf(sum(lags), min(known) if len(known) == len(times) else None)


async def _marks(store: Store, readers: ReaderStore, view: ViewId) -> list[Mark]:
    places = await asyncio.gather(*(readers.place(view.group, partition) for partition in range(store.partitions)))
    marks = [place.mark for place in places]
    if None not in marks:
        return [mark for mark in marks if mark is not None]
    try:
        settings = await readers.settings(view.group)
    except GroupGone as error:
        raise ViewMissing(
            f"generation {view.generation} of view {view.projection!r} was dropped: ask again, to read the live one"
        ) from error
    return [settings.mark(partition) if mark is None else mark for partition, mark in enumerate(marks)]


async def _time_behind(store: Store, partition: int, mark: Mark) -> int | None:
    """The time of the first event behind the mark, in milliseconds since 1970; None when it is gone or tells none."""
    for entry in await store.read_feed(partition, mark.seq + 1, 1):
        for stored in await store.read(entry.log, entry.first, entry.first, 1):
            try:
                return milliseconds(decode(*stored).at)
            except Unreadable:
                return None
    return None


class _Walk:
    """The lines of one source in order, fetched as they are needed."""

    def __init__(self, fetch: Fetch, count: int, reverse: bool) -> None:
        self.head: Found | None = None
        """The next line; None when there is none left."""
        self._fetch = fetch
        self._count = count
        self._reverse = reverse
        self._fetched: list[Found] = []
        """What follows the head, the nearest last."""
        self._whole = False
        """Whether nothing follows what was fetched."""

    async def begin(self, start: str | None) -> _Walk:
        """Find the first line behind the place."""
        await self._more(start)
        return self

    async def step(self) -> None:
        """Go on to the line behind the head."""
        if self.head is not None and not self._fetched and not self._whole:
            await self._more(self.head.member)
        else:
            self.head = self._fetched.pop() if self._fetched else None

    async def _more(self, place: str | None) -> None:
        lines = await self._fetch(self._count, place, self._reverse)
        self._whole = len(lines) < self._count
        self._fetched = lines[::-1]
        self.head = self._fetched.pop() if self._fetched else None
