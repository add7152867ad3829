"""Proves that a view is what its logs give: recomputes every conversation and compares it byte for byte.

Works beside a projector and writers: what the view has not come to yet is counted, not a difference;
what looks different while it is being written is looked at again.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from typing import Any

from eventlog.errors import Gap
from eventlog.identity import LogId
from eventlog.reading import pages
from eventlog.store.views import Contents, Found, ViewId
from projections.difference import Difference, Line, difference, lines_of
from projections.live import Live
from projections.marks import has_passed, mark_of
from projections.projection import Projection

_PAGE = 500
_LOOKS = 5
"""How often something is looked at before it is called a difference."""


class Verifying:
    """Verifies one generation of a view, and counts what it has compared. ``sample`` is the part that is compared."""

    def __init__(
        self,
        live: Live,
        projection: Projection[Any],
        view: ViewId,
        *,
        sample: float = 1.0,
        told: Callable[[Verifying], None] = lambda _: None,
    ) -> None:
        self.conversations = 0
        self.events = 0
        self.behind = 0
        """Conversations of which the log holds more than the view has come to."""
        self.waiting = 0
        """Conversations that wait because an event cannot be applied."""
        self._live = live
        self._projection = projection
        self._view = view
        self._sample = sample
        self._told = told

    async def differences(self) -> AsyncIterator[Difference]:
        """The first difference of each conversation, then those of the indexes and totals, partition by partition."""
        for partition in range(self._live.store.partitions):
            waiting = await self._live.readers.waiting(self._view.group, partition)
            self.waiting += len(waiting)
            async for log in self._conversations(partition):
                if self._sample >= 1 or random.random() < self._sample:  # noqa: S311  which ones does not matter
                    found = await self._conversation(partition, log, waits=log.path in waiting)
                    self.conversations += 1
                    self._told(self)
                    if found is not None:
                        yield found
            if self._sample >= 1:
                async for found in self._indexes(partition):
                    yield found
                async for found in self._totals(partition):
                    yield found

    async def _conversations(self, partition: int) -> AsyncIterator[LogId]:
        """All that have a log, or of which something is kept."""
        after, seen = 0, set[LogId]()
        while page := await self._live.store.conversations_after(partition, after, _PAGE):
            for _, log in page:
                seen.add(log)
                yield log
            after = page[-1][0]
        async for log, _ in self._live.views.kept(self._view, partition):
            if log not in seen:
                seen.add(log)
                yield log

    async def _conversation(self, partition: int, log: LogId, *, waits: bool) -> Difference | None:
        found = None
        for _ in range(_LOOKS):
            found, behind = await self._look(partition, log)
            if found is None:
                self.behind += behind
                return None
            if waits and found.where == "how far it is":
                return None
        return found

    async def _look(self, partition: int, log: LogId) -> tuple[Difference | None, bool]:
        """A difference, and whether the view has yet to come to the log's end."""
        live = self._live
        head = await live.store.head(log)
        end = (await live.store.feed_ends())[partition]
        mark = await mark_of(live.readers, self._view, partition)
        contents = await live.views.contents(self._view, log)
        # The head was read first: a mark at the feed's end, as it was after that, has passed all of it.
        passed = await has_passed(live.store, partition, mark, end)
        last = 0 if head.deleted else head.last.version
        applied = contents.kept.cursor if contents is not None else log.cursor(0, 0)
        if applied.version < last and passed:
            told = f"version {applied.version}" if contents is not None else "nothing"
            return Difference(log, applied.version + 1, "how far it is", told, f"version {last}"), False
        if contents is None:
            return None, last > 0
        if last == 0 and passed:
            return Difference(log, applied.version, "how far it is", f"version {applied.version}", "no log"), False
        if last == 0:
            return None, True
        events = []
        try:
            async for page in pages(live.store, log, until=applied.version):
                events += page
        except Gap as gap:
            return Difference(log, applied.version, "how far it is", f"version {applied.version}", str(gap)), False
        if not events or (events[-1].version, events[-1].stamp) != (applied.version, applied.stamp):
            wanted = f"version {events[-1].version} and another event there" if events else "no event"
            return Difference(log, applied.version, "the event applied last", str(applied), wanted), False
        self.events += len(events)
        return difference(self._projection, log, contents, events), applied.version < last

    async def _indexes(self, partition: int) -> AsyncIterator[Difference]:
        """Lines that no entry gives, and entries that have no line."""
        wanted: dict[LogId, set[Line]] = {}
        async for log, _ in self._live.views.kept(self._view, partition):
            wanted[log] = lines_of(log, await self._live.views.contents(self._view, log))
        there: dict[LogId, set[Line]] = defaultdict(set)
        for tenant, index in await self._live.views.indexes(self._view, partition):
            async for line in self._lines(partition, tenant, index):
                there[line.log].add(Line(tenant, index, line.sort, line.key))
        suspects = {log for log in {*wanted, *there} if wanted.get(log, set()) != there.get(log, set())}
        for log in sorted(suspects):
            found = await self._index_difference(partition, log)
            if found is not None:
                yield found

    async def _index_difference(self, partition: int, log: LogId) -> Difference | None:
        """Look at one conversation's lines again, until they agree or it is sure that they do not."""
        contents: Contents | None = None
        wanted: set[Line] = set()
        there: set[Line] = set()
        for _ in range(_LOOKS):
            contents = await self._live.views.contents(self._view, log)
            wanted, there = lines_of(log, contents), set()
            for tenant, index in await self._live.views.indexes(self._view, partition):
                async for line in self._lines(partition, tenant, index):
                    if line.log == log:
                        there.add(Line(tenant, index, line.sort, line.key))
            if wanted == there and await self._live.views.contents(self._view, log) == contents:
                return None
        odd = min(wanted ^ there, default=Line(log.tenant, "", "", ""))
        sorted_by = f"sorted by {odd.sort!r}"
        found = ("not there", sorted_by) if odd in wanted else (sorted_by, "none")
        version = contents.kept.cursor.version if contents is not None else 0
        whose = "" if odd.tenant == log.tenant else f" of {odd.tenant!r}"
        where = f"the line of entry {odd.key!r} in index {odd.index!r}{whose}"
        return Difference(log, version, where, *found)

    async def _lines(self, partition: int, tenant: str, index: str) -> AsyncIterator[Found]:
        after = None
        while page := await self._live.views.index(self._view, partition, tenant, index, count=_PAGE, after=after):
            for line in page:
                yield line
            after = page[-1].member

    async def _totals(self, partition: int) -> AsyncIterator[Difference]:
        """Totals that are not the sum of the conversations' sums."""
        for look in range(_LOOKS):
            tenants = set(await self._live.views.tenants(self._view, partition))
            before = {tenant: await self._live.views.totals(self._view, partition, tenant) for tenant in tenants}
            sums: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
            async for log in self._once(partition):
                contents = await self._live.views.contents(self._view, log)
                for name, amount in (contents.sums if contents else {}).items():
                    sums[log.tenant][name] += amount
            wanted = {t: {name: n for name, n in found.items() if n} for t, found in sums.items()}
            wanted = {tenant: found for tenant, found in wanted.items() if found}
            kept = {tenant: found for tenant, found in before.items() if found}
            if wanted == kept:
                return
            if look == _LOOKS - 1:
                tenant = min(t for t in {*wanted, *kept} if wanted.get(t) != kept.get(t))
                name = min(
                    n
                    for n in {*wanted.get(tenant, {}), *kept.get(tenant, {})}
                    if wanted.get(tenant, {}).get(n, 0) != kept.get(tenant, {}).get(n, 0)
                )
                values = [str(found.get(tenant, {}).get(name, 0)) for found in (kept, wanted)]
                yield Difference(LogId(tenant, ""), 0, f"total {name!r}", values[0], values[1])

    async def _once(self, partition: int) -> AsyncIterator[LogId]:
        seen: set[LogId] = set()
        async for log, _ in self._live.views.kept(self._view, partition):
            if log not in seen:
                seen.add(log)
                yield log
