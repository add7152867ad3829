"""The reference: readers in this process's memory, beside a ``MemoryStore``."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from weakref import WeakKeyDictionary, ref

from eventlog.errors import FeedLost, GroupGone, ReaderFenced
from eventlog.store.memory import MemoryStore
from eventlog.store.readers import Advance, Ask, Counts, Hold, Mark, Member, Place, Roll, Settings, Waiting

V = TypeVar("V")
_OF: WeakKeyDictionary[MemoryStore, MemoryReaders] = WeakKeyDictionary()


@dataclass(slots=True)
class _Group:
    settings: Settings
    members: dict[str, Member] = field(default_factory=dict)
    paused: bool = False


@dataclass(slots=True)
class _Reader:
    place: Place = field(default_factory=Place)
    fence: str | None = None
    waiting: dict[str, Waiting] = field(default_factory=dict)
    parked: dict[str, bytes] = field(default_factory=dict)
    asked: dict[str, Ask] = field(default_factory=dict)

    def counts(self) -> Counts:
        return Counts(len(self.waiting), len(self.parked), len(self.asked))


def _server_ms() -> int:
    return time.time_ns() // 1_000_000


class MemoryReaders:
    """A ``ReaderStore`` in memory. ``clock`` gives milliseconds since 1970."""

    def __init__(self, store: MemoryStore, *, clock: Callable[[], int] = _server_ms) -> None:
        self._store = ref(store)
        self._clock = clock
        self._groups: dict[str, _Group] = {}
        self._readers: dict[tuple[str, int], _Reader] = {}

    @classmethod
    def of(cls, store: MemoryStore) -> MemoryReaders:
        """The one and only readers of this store."""
        if store not in _OF:
            _OF[store] = cls(store)
        return _OF[store]

    async def create(self, group: str, settings: Settings) -> Settings:
        return self._groups.setdefault(group, _Group(settings)).settings

    async def settings(self, group: str) -> Settings:
        return self._group(group).settings

    async def groups(self) -> list[str]:
        return sorted(self._groups)

    async def join(self, group: str, member: str, name: str, lease_ms: int) -> Roll:
        members, now = self._group(group).members, self._clock()
        since = members[member].since_ms if member in members else now
        members[member] = Member(member, since, now + lease_ms, name)
        for expired in [one.id for one in members.values() if one.lease_ms <= now]:
            del members[expired]
        return await self.roll(group)

    async def roll(self, group: str) -> Roll:
        found, now = self._group(group), self._clock()
        living = [one for one in found.members.values() if one.lease_ms > now]
        return Roll(tuple(sorted(living, key=lambda one: (one.since_ms, one.id))), found.paused)

    async def leave(self, group: str, member: str) -> None:
        if group in self._groups:
            self._groups[group].members.pop(member, None)

    async def pause(self, group: str, paused: bool) -> None:
        self._group(group).paused = paused

    async def remove(self, group: str) -> None:
        self._groups.pop(group, None)
        for key in [key for key in self._readers if key[0] == group]:
            del self._readers[key]

    async def acquire(self, hold: Hold, holder: str, lease_ms: int) -> Place | None:
        reader, now = self._readers.setdefault((hold.group, hold.partition), _Reader()), self._clock()
        if reader.fence == hold.fence:
            return reader.place
        if reader.fence is not None and reader.place.lease_ms > now:
            return None
        reader.fence = hold.fence
        reader.place = reader.place._replace(
            holder=holder, lease_ms=now + lease_ms, since_ms=now, generation=reader.place.generation + 1
        )
        return reader.place

    async def renew(self, hold: Hold, lease_ms: int, mark: Mark | None) -> Counts:
        reader = self._held(hold)
        if reader.place.mark != mark:
            raise ReaderFenced(f"the mark of {hold} is at {reader.place.mark}, not where its holder left it")
        reader.place = reader.place._replace(lease_ms=self._clock() + lease_ms)
        return reader.counts()

    async def advance(self, hold: Hold, step: Advance, lease_ms: int) -> Counts:
        reader = self._held(hold)
        if reader.place.mark not in (step.before, step.mark):
            raise ReaderFenced(f"the mark of {hold} is at {reader.place.mark}, not where its holder left it")
        if step.mark is not None and step.mark.seq > 0 and step.mark != reader.place.mark:
            self._check_target(hold.partition, step.mark)
        reader.place = reader.place._replace(mark=step.mark, window=step.window, lease_ms=self._clock() + lease_ms)
        _merge(reader.waiting, step.waiting)
        _merge(reader.parked, step.parked)
        for name in {*step.done, *(name for name, document in step.parked.items() if document is None)}:
            reader.asked.pop(name, None)
        return reader.counts()

    async def release(self, hold: Hold) -> None:
        reader = self._held(hold)
        reader.fence = None
        reader.place = reader.place._replace(holder="", lease_ms=0, since_ms=0, window=0)

    async def place(self, group: str, partition: int) -> Place:
        return self._readers.get((group, partition), _Reader()).place

    async def counts(self, group: str, partition: int) -> Counts:
        return self._readers.get((group, partition), _Reader()).counts()

    async def waiting(self, group: str, partition: int) -> dict[str, Waiting]:
        return dict(self._readers.get((group, partition), _Reader()).waiting)

    async def parked(self, group: str, partition: int) -> AsyncIterator[tuple[str, bytes]]:
        for item in list(self._readers.get((group, partition), _Reader()).parked.items()):
            yield item

    async def parked_one(self, group: str, partition: int, field: str) -> bytes | None:
        return self._readers.get((group, partition), _Reader()).parked.get(field)

    async def asked(self, group: str, partition: int) -> dict[str, Ask]:
        return dict(self._readers.get((group, partition), _Reader()).asked)

    async def ask(self, group: str, partition: int, field: str, ask: Ask) -> bool:
        reader = self._readers.get((group, partition), _Reader())
        if field not in reader.parked:
            return False
        reader.asked[field] = ask
        return True

    async def wait(self, after: Mapping[int, int], seconds: float) -> dict[int, int]:
        store = self._logs()
        ends = await store.feed_ends()
        positions = [after.get(partition, end) for partition, end in enumerate(ends)]
        found = await store.wait_feeds(positions, seconds, 1)
        return {entry.partition: entry.seq for entry in found if entry.partition in after}

    async def close(self) -> None:
        """Nothing is held open."""

    def _logs(self) -> MemoryStore:
        store = self._store()
        assert store is not None, "whoever uses the readers of a store keeps the store"
        return store

    def _group(self, group: str) -> _Group:
        if group not in self._groups:
            raise GroupGone(f"there is no group {group!r}: create it by consuming, or see `eventlog groups`")
        return self._groups[group]

    def _held(self, hold: Hold) -> _Reader:
        reader = self._readers.get((hold.group, hold.partition), _Reader())
        if reader.fence != hold.fence:
            raise ReaderFenced(
                f"partition {hold.partition} of group {hold.group!r} is held by {reader.place.holder or 'nobody'!r} now"
            )
        return reader

    def _check_target(self, partition: int, mark: Mark) -> None:
        feed = self._logs().feeds[partition]
        if mark.seq > len(feed) or feed[mark.seq - 1].stamp != mark.stamp:
            raise FeedLost(f"entry {mark} of the feed of partition {partition} is gone")


def _merge(kept: dict[str, V], changes: Mapping[str, V | None]) -> None:
    for name, value in changes.items():
        if value is None:
            kept.pop(name, None)
        else:
            kept[name] = value
