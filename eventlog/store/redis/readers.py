"""Readers on a Redis-compatible server, beside a ``RedisStore``.

    {<ns>:<p>}:reader:<group>           hash: mark, window, fence, holder, lease, since,
                                        generation, commit (the id of the last one)
    {<ns>:<p>}:reader:<group>:waiting   hash: conversation path -> what waits
    {<ns>:<p>}:reader:<group>:parked    hash: <version>@<path> -> the parked event as JSON
    {<ns>:<p>}:reader:<group>:asked     hash: <version>@<path> -> replay or drop
    {<ns>:0}:group:<group>              hash: settings, paused, member:<id> -> since|lease|name
    {<ns>:0}:groups                     set: the names of all groups

Names are percent-encoded like ids.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import orjson

from eventlog.errors import FeedLost, GroupGone, ReaderFenced, Unreadable, ViewMissing
from eventlog.identity import new_id
from eventlog.store.readers import Advance, Ask, Counts, Hold, Mark, Member, Place, Roll, Settings, Waiting
from eventlog.store.redis.cluster import Cluster
from eventlog.store.redis.polling import poll_feeds
from eventlog.store.redis.script import Script
from eventlog.store.redis.store import RedisStore
from eventlog.store.redis.wire import Wire, pack

_ACQUIRE = Script.load("reader_acquire.lua")
_ADVANCE = Script.load("reader_advance.lua")
_RENEW = Script.load("reader_renew.lua")
_RELEASE = Script.load("reader_release.lua")
_ASK = Script.load("reader_ask.lua")
_CREATE = Script.load("reader_create.lua")
_JOIN = Script.load("reader_join.lua")
_PAUSE = Script.load("reader_pause.lua")
_PAGE = 100


class _ReaderKeys(NamedTuple):
    reader: str
    waiting: str
    parked: str
    asked: str
    feed: str


class RedisReaders:
    """A ``ReaderStore`` on the store's server and in its namespace. It shares the store's connection.

    ``wait`` uses one more, made when it is first called; on a cluster none.
    """

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._keys = store._keys
        self._waits: Wire | None = None
        self._recent: dict[tuple[str, int], _ReaderKeys] = {}

    async def create(self, group: str, settings: Settings) -> Settings:
        document = orjson.dumps({"tenant": settings.tenant, "start": [str(mark) for mark in settings.start]})
        return _settings(
            await self._run(_CREATE, (self._group(group), self._groups()), quote(group, safe=""), document)
        )

    async def settings(self, group: str) -> Settings:
        found = await self._store._send(pack("HGET", self._group(group), "settings"))
        if found is None:
            raise _gone(group)
        return _settings(found)

    async def groups(self) -> list[str]:
        return sorted(unquote(name.decode()) for name in await self._store._send(pack("SMEMBERS", self._groups())))

    async def join(self, group: str, member: str, name: str, lease_ms: int) -> Roll:
        code, *stored = await self._run(_JOIN, (self._group(group),), member, name, lease_ms)
        if code == b"GONE":
            raise _gone(group)
        return _roll(stored, 0)

    async def roll(self, group: str) -> Roll:
        stored = await self._store._send(pack("HGETALL", self._group(group)))
        if b"settings" not in stored[::2]:
            raise _gone(group)
        return _roll(stored, await self._store.now_ms())

    async def leave(self, group: str, member: str) -> None:
        await self._store._send(pack("HDEL", self._group(group), f"member:{member}"))

    async def pause(self, group: str, paused: bool) -> None:
        if not await self._run(_PAUSE, (self._group(group),), int(paused)):
            raise _gone(group)

    async def remove(self, group: str) -> None:
        await self._store._send(pack("DEL", self._group(group)))
        for partition in range(self._keys.partitions):
            keys = self._of(group, partition)
            await self._store._send(pack("DEL", *keys[:4]))
        await self._store._send(pack("SREM", self._groups(), quote(group, safe="")))

    async def acquire(self, hold: Hold, holder: str, lease_ms: int) -> Place | None:
        reader = self._of(hold.group, hold.partition).reader
        code, *found = await self._run(_ACQUIRE, (reader,), hold.fence, holder, lease_ms)
        if code == b"BUSY":
            return None
        mark, window, generation, lease, since = found
        return Place(_mark(reader, mark), holder, int(lease), int(since), int(generation), int(window))

    async def renew(self, hold: Hold, lease_ms: int, mark: Mark | None) -> Counts:
        keys = self._of(hold.group, hold.partition)
        left = "" if mark is None else str(mark)
        return _counts(hold, await self._run(_RENEW, keys[:4], hold.fence, lease_ms, left))

    async def advance(self, hold: Hold, step: Advance, lease_ms: int) -> Counts:
        return await self._step(hold, step, lease_ms, "", "", (), (0,))

    async def last_commit(self, hold: Hold) -> str:
        """The id of the last commit of this reader; empty when there was none."""
        found = await self._store._send(pack("HGET", self._of(hold.group, hold.partition).reader, "commit"))
        return (found or b"").decode()

    async def commit(
        self,
        hold: Hold,
        step: Advance,
        lease_ms: int,
        last: str,
        keys: tuple[str, ...],
        writes: Iterable[str | bytes | int],
    ) -> Counts:
        """Take a step that also writes, as reader_advance.lua says; once, however often it is sent.

        ``last`` is what ``last_commit`` gave, the first of ``keys`` what must be there, the last an empty one that
        stays so. Raises as ``advance``, and ``ViewMissing`` or ``Unreadable``.
        """
        return await self._step(hold, step, lease_ms, new_id(), last, keys, writes)

    async def _step(
        self,
        hold: Hold,
        step: Advance,
        lease_ms: int,
        commit: str,
        last: str,
        more_keys: tuple[str, ...],
        more: Iterable[str | bytes | int],
    ) -> Counts:
        waiting = [(path, one.pack()) for path, one in step.waiting.items() if one is not None]
        parked = [(name, document) for name, document in step.parked.items() if document is not None]
        lists: list[list[str | bytes]] = [
            list(chain.from_iterable(waiting)),
            [path for path, one in step.waiting.items() if one is None],
            list(chain.from_iterable(parked)),
            [name for name, document in step.parked.items() if document is None],
            list(step.done),
        ]
        keys = (*self._of(hold.group, hold.partition), *more_keys)
        before, mark = ("" if one is None else str(one) for one in (step.before, step.mark))
        arguments = (*chain.from_iterable((len(items), *items) for items in lists), *more)
        reply = await self._run(
            _ADVANCE, keys, hold.fence, lease_ms, before, mark, step.window, commit, last, *arguments
        )
        return _counts(hold, reply)

    async def release(self, hold: Hold) -> None:
        code, *details = await self._run(_RELEASE, (self._of(hold.group, hold.partition).reader,), hold.fence)
        if code == b"FENCED":
            raise _fenced(hold, details[0])

    async def place(self, group: str, partition: int) -> Place:
        reader = self._of(group, partition).reader
        names = ("mark", "holder", "lease", "since", "generation", "window")
        mark, holder, *numbers = await self._store._send(pack("HMGET", reader, *names))
        return Place(_mark(reader, mark or b""), (holder or b"").decode(), *(int(number or 0) for number in numbers))

    async def counts(self, group: str, partition: int) -> Counts:
        keys = self._of(group, partition)
        return Counts(*[await self._store._send(pack("HLEN", key)) for key in (keys.waiting, keys.parked, keys.asked)])

    async def waiting(self, group: str, partition: int) -> dict[str, Waiting]:
        key = self._of(group, partition).waiting
        stored = await self._store._send(pack("HGETALL", key))
        try:
            return {
                path.decode(): Waiting.parse(one.decode()) for path, one in zip(stored[::2], stored[1::2], strict=True)
            }
        except (ValueError, TypeError) as error:
            raise Unreadable(f"{key} does not hold what it should: {error}") from error

    async def parked(self, group: str, partition: int) -> AsyncIterator[tuple[str, bytes]]:
        key, cursor = self._of(group, partition).parked, b"0"
        while True:
            cursor, items = await self._store._send(pack("HSCAN", key, cursor, "COUNT", _PAGE))
            for name, document in zip(items[::2], items[1::2], strict=True):
                yield name.decode(), document
            if cursor == b"0":
                return

    async def parked_one(self, group: str, partition: int, field: str) -> bytes | None:
        found: bytes | None = await self._store._send(pack("HGET", self._of(group, partition).parked, field))
        return found

    async def asked(self, group: str, partition: int) -> dict[str, Ask]:
        stored = await self._store._send(pack("HGETALL", self._of(group, partition).asked))
        return {name.decode(): Ask(what.decode()) for name, what in zip(stored[::2], stored[1::2], strict=True)}

    async def ask(self, group: str, partition: int, field: str, ask: Ask) -> bool:
        keys = self._of(group, partition)
        return bool(await self._run(_ASK, (keys.parked, keys.asked), field, ask.value))

    async def wait(self, after: Mapping[int, int], seconds: float) -> dict[int, int]:
        store, seconds = self._store, min(seconds, self._store._timeout / 2)
        if isinstance(store._others, Cluster):
            return {one.partition: one.seq for one in await poll_feeds(store._others, self._keys, after, seconds, 1)}
        if self._waits is None:
            self._waits = Wire(self._store._url, timeout=self._store._timeout)
        waits = self._waits
        milliseconds = max(1, int(seconds * 1000))
        feeds = {self._keys.feed(partition): partition for partition in after}
        positions = [f"0-{after[partition]}" for partition in feeds.values()]
        command = pack("XREAD", "COUNT", 1, "BLOCK", milliseconds, "STREAMS", *feeds, *positions)
        reply = await self._store._ask(lambda: waits.execute(command))
        return {feeds[feed.decode()]: int(items[0][0].partition(b"-")[2]) for feed, items in reply or ()}

    async def close(self) -> None:
        if self._waits is not None:
            await self._waits.close()
            self._waits = None

    def _of(self, group: str, partition: int) -> _ReaderKeys:
        keys = self._recent.get((group, partition))
        if keys is None:
            feed = self._keys.feed(partition)
            reader = f"{feed.removesuffix('feed')}reader:{quote(group, safe='')}"
            keys = _ReaderKeys(reader, f"{reader}:waiting", f"{reader}:parked", f"{reader}:asked", feed)
            self._recent[group, partition] = keys
        return keys

    def _group(self, group: str) -> str:
        return f"{{{self._keys.namespace}:0}}:group:{quote(group, safe='')}"

    def _groups(self) -> str:
        return f"{{{self._keys.namespace}:0}}:groups"

    async def _run(self, script: Script, keys: tuple[str, ...], *arguments: str | bytes | int) -> Any:
        return await self._store._ask(lambda: script.run(self._store._others, len(keys), *keys, *arguments))


def _settings(document: bytes) -> Settings:
    try:
        found = orjson.loads(document)
        return Settings(found["tenant"], tuple(Mark.parse(mark) for mark in found["start"]))
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"a group's settings do not hold what they should: {document!r:.80}") from error


def _roll(stored: list[bytes], now_ms: int) -> Roll:
    members, paused = [], False
    for name, value in zip(stored[::2], stored[1::2], strict=True):
        if name == b"paused":
            paused = value == b"1"
        elif name.startswith(b"member:"):
            since, lease, label = value.decode().split("|", 2)
            members.append(Member(name[7:].decode(), int(since), int(lease), label))
    living = [member for member in members if member.lease_ms > now_ms]
    return Roll(tuple(sorted(living, key=lambda one: (one.since_ms, one.id))), paused)


def _counts(hold: Hold, reply: list[Any]) -> Counts:
    code, *details = reply
    if code == b"FENCED":
        raise _fenced(hold, details[0])
    if code == b"MOVED":
        raise ReaderFenced(
            f"the mark of partition {hold.partition} of group {hold.group!r} is at {details[0].decode() or 'nothing'}, "
            "not where its holder left it"
        )
    if code == b"LATE":
        raise ReaderFenced(
            f"another commit of partition {hold.partition} of group {hold.group!r} came before this one: "
            "load again what is kept"
        )
    if code == b"GONE":
        raise ViewMissing(
            f"what group {hold.group!r} writes to is not there in partition {hold.partition}: it was dropped"
        )
    if code == b"SUM":
        raise Unreadable(
            f"sum {details[0]!r:.80} in partition {hold.partition} of group {hold.group!r} is no number below "
            "2**62, or would be none: nothing was written; rebuild the view, or count in a larger unit"
        )
    if code == b"LOST":
        raise FeedLost(f"the feed of partition {hold.partition} does not hold the entry that the mark is to name")
    return Counts(*details)


def _mark(reader: str, stored: bytes) -> Mark | None:
    try:
        return Mark.parse(stored.decode()) if stored else None
    except ValueError as error:
        raise Unreadable(f"the mark in {reader} does not hold what it should: {stored!r:.80}") from error


def _fenced(hold: Hold, holder: bytes) -> ReaderFenced:
    whose = holder.decode() or "nobody"
    return ReaderFenced(f"partition {hold.partition} of group {hold.group!r} is held by {whose!r} now")


def _gone(group: str) -> GroupGone:
    return GroupGone(f"there is no group {group!r}: create it by consuming, or see `eventlog groups`")
