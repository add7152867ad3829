"""What must be true of views: compared with folds of events that are read as they lie on the server."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from redis.asyncio import Redis, from_url

from eventlog import EventLog
from eventlog.codec import decode
from eventlog.events import Event
from eventlog.identity import LogId, partition_of
from eventlog.store.redis.keys import Keys
from eventlog.store.views import Contents, ViewId, Writing
from projections import history, maintained
from projections.folding import fold
from projections.live import Live
from projections.projection import Projection, canonical
from projections.registry import Record
from projections.verifying import Verifying


class Raw:
    """The server behind a log, read with no code of the product but the names of its keys."""

    def __init__(self, log: EventLog, url: str) -> None:
        self.log = log
        self.live = Live.of(log.store)
        store: Any = log.store
        self.keys: Keys = store._keys
        self.client: Redis = from_url(url)

    async def events(self, log: LogId) -> list[Event]:
        """All of a log."""
        found = []
        for entry, fields in await self.client.xrange(self.keys.of_log(log).log):
            match = re.fullmatch(rb"(\d+)-(\d+)", entry)
            assert match is not None
            found.append(decode(int(match[1]), int(match[2]), fields[b"e"]))
        return found

    async def view_dump(self, view: ViewId) -> dict[bytes, bytes]:
        """All that is stored of a view, and its marks."""
        pattern = f"{{{self.keys.namespace}:*}}:view:{view.projection}:{view.generation}:*"
        found = {key: await self.client.dump(key) async for key in self.client.scan_iter(pattern)}
        for partition in range(self.keys.partitions):
            place = await self.live.readers.place(view.group, partition)
            found[b"mark %d" % partition] = repr((place.mark, place.generation)).encode()
        return found

    async def snapshot(self, logs: Iterable[LogId], *, feeds: bool) -> dict[str, bytes | None]:
        """The keys of these conversations as they are now, and of their partitions when ``feeds``."""
        keys: set[str] = set()
        for log in logs:
            keys.update(self.keys.of_log(log) if feeds else self.keys.of_log(log)[:4])
        return {key: await self.client.dump(key) for key in sorted(keys)}

    async def keys_of(self, view: ViewId) -> dict[str, bytes | None]:
        """The keys of a view and of its readers as they are now."""
        found: dict[str, bytes | None] = {}
        for part in (f"view:{view.projection}:{view.generation}:*", f"reader:{quote(view.group, safe='')}*"):
            async for key in self.client.scan_iter(f"{{{self.keys.namespace}:*}}:{part}"):
                found[key.decode()] = await self.client.dump(key)
        return found

    async def restore(self, snapshot: dict[str, bytes | None]) -> None:
        """The server lost what was written since."""
        async with self.client.pipeline(transaction=True) as together:
            for key, dump in snapshot.items():
                together.delete(key)
                if dump is not None:
                    together.restore(key, 0, dump)
            await together.execute()

    async def cut_feed(self, partition: int, entries: int) -> None:
        """The server loses the feed's last entries."""
        key = self.keys.feed(partition)
        there = await self.client.xrange(key)
        async with self.client.pipeline(transaction=True) as together:
            together.delete(key)
            for entry, fields in there[: max(len(there) - entries, 0)]:
                together.xadd(key, fields, entry)
            await together.execute()

    async def prefixes(self, projection: Projection[Any], view: ViewId, logs: Iterable[LogId]) -> None:
        """What is kept of each conversation is the fold of a beginning of its log: nothing twice, nothing left out."""
        for log in logs:
            contents = await self.live.views.contents(view, log)  # first: logs only grow
            if contents is not None:
                events = await self.events(log)
                if not events and (await self.log.store.head(log)).deleted:
                    continue  # the view has yet to hear of it
                version, stamp = contents.kept.cursor[:2]
                assert version <= len(events), f"{view} is ahead of {log}: {version} of {len(events)}"
                assert events[version - 1].stamp == stamp, f"{view} applied another event {version} of {log}"
                assert_equal(log, contents, fold(projection, log, events[:version]))

    async def equal(self, projection: Projection[Any], view: ViewId, logs: Sequence[LogId]) -> None:
        """The view, its indexes and its totals are what the whole logs give."""
        wanted: dict[LogId, Writing] = {}
        for log in logs:
            contents, events = await self.live.views.contents(view, log), await self.events(log)
            if not events:
                assert contents is None, f"{view} keeps {log}, of which there is no log"
                continue
            assert contents is not None, f"{view} keeps nothing of {log}"
            assert contents.kept.cursor[:2] == (events[-1].version, events[-1].stamp)
            wanted[log] = fold(projection, log, events)
            assert_equal(log, contents, wanted[log])
        for partition in range(self.keys.partitions):
            here = {
                log: one for log, one in wanted.items() if partition_of(log.path, self.keys.partitions) == partition
            }
            await self._indexes_equal(view, partition, here)
            await self._totals_equal(view, partition, here)

    async def _indexes_equal(self, view: ViewId, partition: int, wanted: dict[LogId, Writing]) -> None:
        lines = defaultdict(set)
        for log, writing in wanted.items():
            for key, filed in writing.entries.items():
                assert filed is not None
                for index, sort in filed.under.items():
                    lines[log.tenant, index].add((sort, log, key, filed.document))
        assert await self.live.views.indexes(view, partition) == sorted(lines)
        for (tenant, index), there in lines.items():
            found = await self.live.views.index(view, partition, tenant, index, count=10_000)
            assert sorted((one.sort, one.log, one.key, one.document) for one in found) == sorted(there)
            assert [one.member.encode() for one in found] == sorted(one.member.encode() for one in found)

    async def _totals_equal(self, view: ViewId, partition: int, wanted: dict[LogId, Writing]) -> None:
        totals: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for log, writing in wanted.items():
            for name, amount in writing.sums.items():
                totals[log.tenant][name] += amount
        given = {tenant: without_zeros(sums) for tenant, sums in totals.items()}
        given = {tenant: sums for tenant, sums in given.items() if sums}
        assert await self.live.views.tenants(view, partition) == sorted(given)
        for tenant, sums in given.items():
            assert await self.live.views.totals(view, partition, tenant) == sums

    async def loads(self, logs: Iterable[LogId], *, kept: bool = False) -> None:
        """``history.load`` gives what the whole log gives; ``kept``: by the view, unless it says that it cannot."""
        for log in logs:
            chat = self.log.tenant(log.tenant).conversation(log.conversation)
            events = await self.events(log)
            if events:
                wanted = history.build(events, chat).as_json()
                assert canonical((await history.load(chat)).as_json()) == canonical(wanted)
                found = await maintained.load(chat, None)
                if found is not None:
                    assert canonical(found.as_json()) == canonical(wanted)
                last = await history.load(chat, last=3)
                assert canonical(last.as_json()) == canonical(history.build(events, chat, last=3).as_json())

    async def all_equal(self, projections: Iterable[Projection[Any]], logs: Sequence[LogId]) -> None:
        """Every live view equals its logs, by the product's own verification and by ours."""
        for projection in projections:
            self.live.forget(projection.name)
            view = await self.live.view(projection)
            await self.equal(projection, view, logs)
            verifying = Verifying(self.live, projection, view)
            assert [str(one) async for one in verifying.differences()] == []
            assert (verifying.behind, verifying.waiting) == (0, 0)
        await self.loads(logs)

    async def all_prefixes(self, projections: Iterable[Projection[Any]], logs: Sequence[LogId]) -> None:
        """Every generation of every view is a beginning of its logs, and no mark is ahead of its feed."""
        for projection in projections:
            record = Record.unpack(await self.live.views.record(projection.name))
            for one in record.kept_by(projection.version):
                view = ViewId(projection.name, one.number)
                await self.prefixes(projection, view, logs)
                for partition in range(self.keys.partitions):
                    mark = (await self.live.readers.place(view.group, partition)).mark
                    if mark is not None and mark.seq:
                        [entry] = await self.log.store.read_feed(partition, mark.seq, 1) or [None]  # type: ignore[attr-defined]
                        assert entry is not None, f"{view} is at entry {mark.seq}, which is not in the feed"
                        assert (entry.seq, entry.stamp) == mark


def assert_equal(log: LogId, contents: Contents, wanted: Writing) -> None:
    """Byte for byte."""
    assert wanted.kept is not None
    assert contents.rows == wanted.rows, log
    assert contents.entries == wanted.entries, log
    assert without_zeros(contents.sums) == without_zeros(wanted.sums), log
    assert contents.kept == wanted.kept, log


def without_zeros(sums: dict[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in sums.items() if amount}
