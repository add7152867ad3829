r"""Views on a Redis-compatible server, beside a ``RedisStore``.

    {<ns>:<p>}:view:<projection>:<generation>:about            hash: created, scanned. While it is there, the view is
    {<ns>:<p>}:view:<projection>:<generation>:kept             hash: conversation path -> <version>-<stamp>|<state>
    {<ns>:<p>}:view:<projection>:<generation>:rows:<path>      list
    {<ns>:<p>}:view:<projection>:<generation>:entries:<path>   hash: key -> by which texts it is sorted in which
                                                               indexes, as JSON; a NUL; the document
    {<ns>:<p>}:view:<projection>:<generation>:index:<tenant>/<index>  sorted set, all scores 0: <sort>\0<path>\0<key>
    {<ns>:<p>}:view:<projection>:<generation>:sums:<path>      hash of the conversation's sums
    {<ns>:<p>}:view:<projection>:<generation>:totals:<tenant>  hash of the sums over the tenant's conversations; no 0
    {<ns>:<p>}:view:<projection>:<generation>:indexes          set: <tenant>/<index> of each index that has lines
    {<ns>:<p>}:view:<projection>:<generation>:totalled         set: the tenants that have totals
    {<ns>:0}:views                                             hash: projection -> <attempt>|<record>

Names, and the keys in lines, are percent-encoded like ids. Whoever reads needs no more than the right to read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any
from urllib.parse import unquote

from eventlog.errors import Unreadable
from eventlog.identity import Cursor, LogId, new_fence, partition_of
from eventlog.store.readers import Advance, Counts, Hold
from eventlog.store.redis import replies
from eventlog.store.redis.readers import RedisReaders
from eventlog.store.redis.script import Script
from eventlog.store.redis.store import RedisStore
from eventlog.store.redis.view_keys import (
    ViewKeys,
    encoded,
    found,
    index_name,
    index_of,
    unpack_filed,
    unpack_kept,
    view_keys,
)
from eventlog.store.redis.view_writes import Writes, is_fresh, lines
from eventlog.store.redis.wire import Packed, ReplyError, pack
from eventlog.store.view_checks import check_text, check_writings
from eventlog.store.views import PAGE, Contents, Filed, Found, Kept, Snapshot, ViewId, Writing

_READ = Script.load("view_read.lua")
_CONTENTS = Script.load("view_contents.lua")
_FORGET = Script.load("view_forget.lua")
_REPLACE = Script.load("view_replace.lua")
_SAMPLE = 1_000
"""Of how many conversations the size is measured, when there are more."""


class RedisViews:
    """A ``ViewStore`` on the store's server and in its namespace. It shares the store's connection."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._readers = RedisReaders(store)
        self._keys = store._keys
        self._views = f"{{{store._keys.namespace}:0}}:views"

    async def names(self) -> list[str]:
        return sorted(unquote(name.decode()) for name in await self._store._send(pack("HKEYS", self._views)))

    async def record(self, projection: str) -> bytes | None:
        stored = await self._store._send(pack("HGET", self._views, encoded(projection, "projection")))
        return None if stored is None else bytes(stored.partition(b"|")[2])

    async def replace(self, projection: str, before: bytes | None, after: bytes | None) -> bool:
        records = (b"" if record is None else b"+" + record for record in (before, after))
        return bool(await self._run(_REPLACE, (self._views,), encoded(projection, "projection"), new_fence(), *records))

    async def create(self, view: ViewId) -> None:
        now = await self._store.now_ms()
        await self._together(pack("HSETNX", keys.about, "created", now) for keys in self._parts(view))

    async def progress(self, view: ViewId, partition: int) -> str | None:
        stored = await self._store._send(pack("HGET", self._of(view, partition).about, "scanned"))
        return None if stored is None else stored.decode()

    async def load(self, view: ViewId, partition: int, logs: Sequence[LogId]) -> list[Kept | None]:
        if not logs:
            return []
        stored = await self._store._send(pack("HMGET", self._of(view, partition).kept, *[log.path for log in logs]))
        return [None if one is None else unpack_kept(log, one) for log, one in zip(logs, stored, strict=True)]

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
        """As in the port. Two round trips: what will change is read before, to know which lines of indexes go.

        The holder is the only one who writes to its partition, save for ``forget``, which only removes.
        """
        check_writings(writings, hold.partition, self._keys.partitions)
        keys = self._of(view, hold.partition)
        filed, last = await asyncio.gather(
            asyncio.gather(*(self._filed(keys, writing) for writing in writings)), self._readers.last_commit(hold)
        )
        writes = Writes(keys)
        for writing, before in zip(writings, filed, strict=True):
            writes.write(writing, before)
        if scanned is not None:
            writes.scanned(check_text(scanned, "progress"))
        arguments = writes.arguments()
        return await self._readers.commit(hold, step, lease_ms, last, (*writes.keys, keys.trial), arguments)

    async def read(self, view: ViewId, log: LogId, last: int | None = None) -> Snapshot:
        keys, path = self._of_log(view, log), log.path
        # From index 1 to 0 is an empty range.
        newest = (0, -1) if last is None else (-last, -1) if last > 0 else (1, 0)
        present, kept, rows, total, behind = await self._look(
            _READ, (keys.about, keys.kept, keys.rows(path), self._keys.of_log(log).log), path, *newest, PAGE + 1
        )
        return Snapshot(
            bool(present),
            unpack_kept(log, kept) if kept else None,
            rows,
            total,
            [replies.entry(item) for item in behind],
        )

    async def contents(self, view: ViewId, log: LogId) -> Contents | None:
        keys, path = self._of_log(view, log), log.path
        each = (keys.about, keys.kept, keys.rows(path), keys.entries(path), keys.sums(path))
        stored = await self._look(_CONTENTS, each, path)
        if not stored:
            return None
        kept, rows, entries, sums = stored
        filed = {key.decode(): unpack_filed(packed) for key, packed in _pairs(entries)}
        return Contents(unpack_kept(log, kept), rows, filed, _sums(keys.sums(path), sums))

    async def kept(self, view: ViewId, partition: int) -> AsyncIterator[tuple[LogId, Cursor]]:
        key, cursor = self._of(view, partition).kept, b"0"
        while True:
            cursor, items = await self._store._send(pack("HSCAN", key, cursor, "COUNT", PAGE))
            for path, packed in _pairs(items):
                log = replies.listed(path)
                yield log, unpack_kept(log, packed).cursor
            if cursor == b"0":
                return

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
        if count < 1:
            return []
        keys = self._of(view, partition)
        place = None if after is None else f"({check_text(after, 'place')}"
        limits = (place or "+", "-", "BYLEX", "REV") if reverse else (place or "-", "+", "BYLEX")
        name = keys.lines(index_name(tenant, index))
        members = await self._store._send(pack("ZRANGE", name, *limits, "LIMIT", 0, count))
        return await self._with_documents(keys, index, [found(member) for member in members])

    async def indexes(self, view: ViewId, partition: int) -> list[tuple[str, str]]:
        return sorted(map(index_of, await self._store._send(pack("SMEMBERS", self._of(view, partition).indexes))))

    async def totals(self, view: ViewId, partition: int, tenant: str) -> dict[str, int]:
        key = self._of(view, partition).totals(encoded(tenant, "tenant"))
        return {
            name: total for name, total in _sums(key, await self._store._send(pack("HGETALL", key))).items() if total
        }

    async def tenants(self, view: ViewId, partition: int) -> list[str]:
        stored = await self._store._send(pack("SMEMBERS", self._of(view, partition).totalled))
        return sorted(unquote(tenant.decode()) for tenant in stored)

    async def forget(self, view: ViewId, log: LogId) -> None:
        keys, path = self._of_log(view, log), log.path
        tenant = path.partition("/")[0]
        totals = keys.totals(tenant)
        each = (keys.kept, keys.rows(path), keys.entries(path), keys.sums(path), totals, keys.totalled, keys.indexes)
        while True:
            stored = await self._store._send(pack("HGETALL", keys.entries(path)))
            there = lines(path, log.tenant, {key.decode(): unpack_filed(packed) for key, packed in _pairs(stored)})
            members: list[str | int] = []
            for name, its_lines in there.items():
                members += [1 + len(its_lines), name, *its_lines]
            names = (keys.lines(name) for name in there)
            code, *details = await self._run(_FORGET, (*each, *names), path, tenant, len(stored), *stored, *members)
            if code == b"SUM":
                raise Unreadable(
                    f"{totals} or {keys.sums(path)} holds no sum under {details[0]!r:.80}: rebuild the view"
                )
            if code == b"OK":
                return

    async def drop(self, view: ViewId) -> None:
        """As in the port. A view that is half dropped is not there; dropping it again removes what is left."""
        parts = self._parts(view)
        await self._together(pack("DEL", keys.about) for keys in parts)
        for partition, keys in enumerate(parts):
            async for log, _ in self.kept(view, partition):
                await self.forget(view, log)
            shared = await self._shared(keys)
            await self._store._send(pack("DEL", *shared))

    async def size(self, view: ViewId) -> int:
        parts = self._parts(view)
        counts = await self._together(pack("HLEN", keys.kept) for keys in parts)
        size, all_kept = 0.0, sum(counts)
        for partition, (keys, count) in enumerate(zip(parts, counts, strict=True)):
            size += sum(await self._memory(await self._shared(keys)))
            share = count if all_kept <= _SAMPLE else -(-count * _SAMPLE // all_kept)
            paths = [log.path async for log, _ in _first(self.kept(view, partition), share)]
            own = [key for path in paths for key in (keys.rows(path), keys.entries(path), keys.sums(path))]
            if paths:
                size += sum(await self._memory(own)) * count / len(paths)
        return int(size)

    async def _filed(self, keys: ViewKeys, writing: Writing) -> dict[str, Filed]:
        """What is filed of the keys that change; of all when what was there before goes."""
        key = keys.entries(writing.log.path)
        if is_fresh(writing):
            return {
                name.decode(): unpack_filed(one) for name, one in _pairs(await self._store._send(pack("HGETALL", key)))
            }
        if not writing.entries:
            return {}
        stored = await self._store._send(pack("HMGET", key, *writing.entries))
        return {name: unpack_filed(one) for name, one in zip(writing.entries, stored, strict=True) if one is not None}

    async def _with_documents(self, keys: ViewKeys, index: str, places: list[Found]) -> list[Found]:
        """Those that are not filed where the index says were moved or removed meanwhile; they get no document."""
        fields: dict[str, list[str]] = {}
        for place in places:
            fields.setdefault(place.log.path, []).append(place.key)
        stored = await self._together(pack("HMGET", keys.entries(path), *names) for path, names in fields.items())
        filed = {
            (path, name): unpack_filed(packed)
            for (path, names), packed_ones in zip(fields.items(), stored, strict=True)
            for name, packed in zip(names, packed_ones, strict=True)
            if packed is not None
        }
        return [
            place._replace(document=one.document)
            if (one := filed.get((place.log.path, place.key))) is not None and one.under.get(index) == place.sort
            else place
            for place in places
        ]

    async def _shared(self, keys: ViewKeys) -> list[str]:
        """The keys that are of no one conversation."""
        names, tenants = await self._together(pack("SMEMBERS", key) for key in (keys.indexes, keys.totalled))
        indexes = [keys.lines(name.decode()) for name in names]
        return [*indexes, *(keys.totals(tenant.decode()) for tenant in tenants), *keys[1:]]

    async def _memory(self, keys: Iterable[str]) -> list[int]:
        return [size or 0 for size in await self._together(pack("MEMORY", "USAGE", key) for key in keys)]

    def _of(self, view: ViewId, partition: int) -> ViewKeys:
        return view_keys(self._keys.namespace, view, partition)

    def _of_log(self, view: ViewId, log: LogId) -> ViewKeys:
        return self._of(view, partition_of(log.path, self._keys.partitions))

    def _parts(self, view: ViewId) -> list[ViewKeys]:
        return [self._of(view, partition) for partition in range(self._keys.partitions)]

    async def _together(self, commands: Iterable[Packed]) -> list[Any]:
        """The replies of commands that go out in one write."""
        return await asyncio.gather(*map(self._store._send, commands))

    async def _run(self, script: Script, keys: tuple[str, ...], *arguments: str | bytes | int) -> Any:
        return await self._store._ask(lambda: script.run(self._store._others, len(keys), *keys, *arguments))

    async def _look(self, script: Script, keys: tuple[str, ...], *arguments: str | bytes | int) -> Any:
        """Run a script that only reads, as a user may who may only read."""

        async def send() -> Any:
            wire, rest = self._store._others, (len(keys), *keys, *arguments)
            reply = await wire.execute(pack("EVALSHA_RO", script.sha, *rest))
            if isinstance(reply, ReplyError) and str(reply).startswith("NOSCRIPT"):
                reply = await wire.execute(pack("EVAL_RO", script.text, *rest))
            return reply

        return await self._store._ask(send)


async def _first(items: AsyncIterator[Any], count: int) -> AsyncIterator[Any]:
    if count < 1:
        return
    async for item in items:
        yield item
        count -= 1
        if not count:
            return


def _pairs(reply: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
    return zip(reply[::2], reply[1::2], strict=True)


def _sums(key: str, reply: list[bytes]) -> dict[str, int]:
    try:
        return {name.decode(): int(total) for name, total in _pairs(reply)}
    except ValueError as error:
        raise Unreadable(f"{key} does not hold what it should: {error}; rebuild the view") from error
