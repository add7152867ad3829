"""Which generation of each view is read now."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

from eventlog.errors import InvalidInput, ViewMissing
from eventlog.identity import Cursor, LogId, partition_of
from eventlog.reader import Store
from eventlog.store.beside import readers_beside, views_beside
from eventlog.store.port import LogStore
from eventlog.store.readers import ReaderStore
from eventlog.store.views import ViewId, ViewStore
from projections.projection import Projection
from projections.registry import Record

_FRESH = 1.0
"""Seconds for which a record that was read is taken for the present one."""


class Live:
    """The views of one store, and which generations are live; looked at again every second."""

    def __init__(self, store: Store, readers: Callable[[], ReaderStore], views: ViewStore) -> None:
        self.store = store
        self.open_readers = readers
        self.readers = readers()
        self.views = views
        self._records: dict[str, tuple[float, Record]] = {}

    @classmethod
    def of(cls, store: LogStore) -> Live:
        """The one of this store. Raises ``InvalidInput`` for a store that has no views."""
        whole, readers = readers_beside(store)
        live = store.companions.get(cls.__name__)
        if not isinstance(live, cls):
            live = store.companions[cls.__name__] = cls(whole, readers, views_beside(store))
        return live

    async def record(self, name: str) -> Record:
        """What is recorded of a projection, at most a second old."""
        now = asyncio.get_running_loop().time()
        known = self._records.get(name)
        if known is None or now - known[0] > _FRESH:
            known = self._records[name] = now, Record.unpack(await self.views.record(name))
        return known[1]

    async def find(self, projection: Projection[Any]) -> ViewId | None:
        """The generation to read; None when none of this version is kept."""
        found = (await self.record(projection.name)).read_by(projection.version)
        return None if found is None else ViewId(projection.name, found.number)

    async def view(self, projection: Projection[Any]) -> ViewId:
        """The generation to read. Raises ``ViewMissing``."""
        found = await self.find(projection)
        if found is None:
            raise ViewMissing(
                f"no view {projection.name!r} of version {projection.version} is kept, or not yet whole: "
                "`eventlog projections run` builds it and keeps it up to date"
            )
        return found

    def known(self, name: str) -> Record | None:
        """The record as it was last read, however long ago; None when it never was."""
        found = self._records.get(name)
        return None if found is None else found[1]

    def forget(self, name: str) -> None:
        """Look at this projection's record anew next time."""
        if name in self._records:
            self._records[name] = -math.inf, self._records[name][1]

    async def change(self, name: str, change: Callable[[Record], Record | None]) -> Record:
        """Change the record by compare-and-set, tried again while others change it; return it as it then is.

        ``change`` returns None to remove the record, or what it was given to leave it.
        """
        while True:
            stored = await self.views.record(name)
            before = Record.unpack(stored)
            after = change(before)
            if after == before:
                return before
            if await self.views.replace(name, stored, None if after is None else after.pack()):
                self.forget(name)
                return after or Record()

    async def wait_until(
        self, projection: Projection[Any], log: LogId, cursor: Cursor | str, *, seconds: float = 30.0
    ) -> None:
        """Wait until the live view has applied this event of the conversation: to read one's own writes.

        Raises ``ViewMissing``, ``CursorInvalid``, or ``TimeoutError`` after ``seconds``.
        """
        wanted = log.check_cursor(cursor)
        if seconds <= 0:
            raise InvalidInput(f"seconds={seconds:g}: give more than 0")
        pause = 0.002
        try:
            async with asyncio.timeout(seconds):
                while True:
                    view = await self.view(projection)
                    partition = partition_of(log.path, self.store.partitions)
                    (kept,) = await self.views.load(view, partition, [log])
                    if kept is not None and kept.cursor.version >= wanted.version:
                        return
                    await asyncio.sleep(pause)
                    pause = min(pause * 1.5, 0.1)
        except TimeoutError:
            raise TimeoutError(
                f"view {projection.name!r} has not applied version {wanted.version} of conversation "
                f"{log.conversation!r} within {seconds:g} s: does `eventlog projections run` run? See "
                "`eventlog projections lag`"
            ) from None
