"""The reference: views in this process's memory, beside a ``MemoryStore``.

Indexes and totals are made when they are asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote
from weakref import WeakKeyDictionary, ref

from eventlog.errors import ReaderFenced, ViewMissing
from eventlog.identity import Cursor, LogId, partition_of
from eventlog.store.memory import MemoryStore
from eventlog.store.memory_readers import MemoryReaders
from eventlog.store.readers import Advance, Counts, Hold
from eventlog.store.view_checks import check_text, check_writings
from eventlog.store.views import PAGE, Contents, Filed, Found, Kept, Snapshot, ViewId, Writing

_OF: WeakKeyDictionary[MemoryStore, MemoryViews] = WeakKeyDictionary()


@dataclass(slots=True)
class _Part:
    """A view's part in one partition."""

    scanned: str | None = None
    contents: dict[LogId, Contents] = field(default_factory=dict)


class MemoryViews:
    """A ``ViewStore`` in memory. Its readers are those of ``MemoryReaders.of`` the same store."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = ref(store)
        self._readers = MemoryReaders.of(store)
        self._records: dict[str, bytes] = {}
        self._views: dict[ViewId, list[_Part]] = {}

    @classmethod
    def of(cls, store: MemoryStore) -> MemoryViews:
        """The one and only views of this store."""
        if store not in _OF:
            _OF[store] = cls(store)
        return _OF[store]

    async def names(self) -> list[str]:
        return sorted(self._records)

    async def record(self, projection: str) -> bytes | None:
        return self._records.get(projection)

    async def replace(self, projection: str, before: bytes | None, after: bytes | None) -> bool:
        stored = self._records.get(projection)
        if after is None and stored is None:
            return True
        if stored != before:
            return False
        if after is None:
            del self._records[projection]
        else:
            self._records[projection] = after
        return True

    async def create(self, view: ViewId) -> None:
        self._views.setdefault(view, [_Part() for _ in range(self._logs().partitions)])

    async def progress(self, view: ViewId, partition: int) -> str | None:
        return self._part(view, partition).scanned

    async def load(self, view: ViewId, partition: int, logs: Sequence[LogId]) -> list[Kept | None]:
        found = [self._part(view, partition).contents.get(log) for log in logs]
        return [contents and contents.kept for contents in found]

    async def commit(
        self,
        view: ViewId,
        hold: Hold,
        step: Advance,
        writings: Sequence[Writing],
        lease_ms: int,
        *,
        scanned: str | None = None,
    ) -> Counts:
        check_writings(writings, hold.partition, self._logs().partitions)
        at = self._readers._held(hold).place.mark
        if at != step.before:
            raise ReaderFenced(f"the mark of {hold} is at {at}, not where its holder left it")
        if view not in self._views:
            raise ViewMissing(
                f"generation {view.generation} of projection {view.projection!r} is not there to write to"
            )
        counts = await self._readers.advance(hold, step, lease_ms)
        part = self._views[view][hold.partition]
        for writing in writings:
            _write(part.contents, writing)
        part.scanned = part.scanned if scanned is None else scanned
        return counts

    async def read(self, view: ViewId, log: LogId, last: int | None = None) -> Snapshot:
        contents = await self.contents(view, log)
        kept, rows = (contents.kept, contents.rows) if contents else (None, [])
        behind = await self._logs().read(log, kept.cursor.version if kept else 1, None, PAGE + 1)
        newest = rows if last is None else rows[max(len(rows) - last, 0) :]
        return Snapshot(view in self._views, kept, list(newest), len(rows), behind)

    async def contents(self, view: ViewId, log: LogId) -> Contents | None:
        found = self._part(view, partition_of(log.path, self._logs().partitions)).contents.get(log)
        return found and Contents(found.kept, list(found.rows), dict(found.entries), dict(found.sums))

    async def kept(self, view: ViewId, partition: int) -> AsyncIterator[tuple[LogId, Cursor]]:
        for log, contents in list(self._part(view, partition).contents.items()):
            yield log, contents.kept.cursor

    async def index(
        self,
        view: ViewId,
        partition: int,
        tenant: str,
        index: str,
        *,
        count: int,
        after: str | None = None,
        reverse: bool = False,
    ) -> list[Found]:
        place = None if after is None else check_text(after, "place")
        lines = [line for line in self._lines(view, partition) if line[:2] == (tenant, index)]
        found = sorted((found for _, _, found in lines), reverse=reverse)
        if place is not None:
            found = [line for line in found if (line.member < place if reverse else line.member > place)]
        return found[: max(count, 0)]

    async def indexes(self, view: ViewId, partition: int) -> list[tuple[str, str]]:
        return sorted({(tenant, index) for tenant, index, _ in self._lines(view, partition)})

    async def totals(self, view: ViewId, partition: int, tenant: str) -> dict[str, int]:
        totals: Counter[str] = Counter()
        for log, contents in self._part(view, partition).contents.items():
            if log.tenant == tenant:
                totals.update(contents.sums)
        return {name: total for name, total in totals.items() if total}

    async def tenants(self, view: ViewId, partition: int) -> list[str]:
        tenants = {log.tenant for log in self._part(view, partition).contents}
        return sorted([tenant for tenant in tenants if await self.totals(view, partition, tenant)])

    async def forget(self, view: ViewId, log: LogId) -> None:
        self._part(view, partition_of(log.path, self._logs().partitions)).contents.pop(log, None)

    async def drop(self, view: ViewId) -> None:
        self._views.pop(view, None)

    async def size(self, view: ViewId) -> int:
        kept = [contents for part in self._views.get(view, ()) for contents in part.contents.values()]
        documents = [filed.document for contents in kept for filed in contents.entries.values()]
        return sum(map(len, [row for contents in kept for row in (contents.kept.state, *contents.rows)] + documents))

    def _part(self, view: ViewId, partition: int) -> _Part:
        return self._views[view][partition] if view in self._views else _Part()

    def _lines(self, view: ViewId, partition: int) -> list[tuple[str, str, Found]]:
        """The (tenant, index, line) of every line."""
        return [
            (log.tenant, index, Found(f"{sort}\0{log.path}\0{quote(key, safe='')}", log, key, filed.document))
            for log, contents in self._part(view, partition).contents.items()
            for key, filed in contents.entries.items()
            for index, sort in filed.under.items()
        ]

    def _logs(self) -> MemoryStore:
        store = self._store()
        assert store is not None, "whoever uses the views of a store keeps the store"
        return store


def _write(kept: dict[LogId, Contents], writing: Writing) -> None:
    before = kept.pop(writing.log, None)
    if writing.kept is None:
        return
    rows: list[bytes] = []
    entries: dict[str, Filed] = {}
    sums: Counter[str] = Counter()
    if before is not None and not writing.fresh:
        rows, entries = before.rows, before.entries
        sums.update(before.sums)
    rows.extend(writing.rows)
    for key, filed in writing.entries.items():
        if filed is None:
            entries.pop(key, None)
        else:
            entries[key] = Filed(filed.document, dict(filed.under))
    sums.update(writing.sums)
    kept[writing.log] = Contents(writing.kept, rows, entries, dict(sums))
