"""Logs on a Redis-compatible server, 7.0 or newer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from eventlog.errors import (
    LayoutMismatch,
    LogClosed,
    OutcomeUnknown,
    ServerUnavailable,
    Unreadable,
)
from eventlog.identity import LogId, new_stamp
from eventlog.store import refusals
from eventlog.store.port import (
    LAYOUT,
    Append,
    Appended,
    Entry,
    FeedBase,
    FeedEntry,
    Head,
    Limits,
)
from eventlog.store.redis import replies
from eventlog.store.redis.arguments import append_arguments
from eventlog.store.redis.cluster import Cluster, is_clustered
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.polling import poll_feeds
from eventlog.store.redis.script import Script
from eventlog.store.redis.stretches import stretches
from eventlog.store.redis.wire import PASSING, ConnectionLost, NotReplicated, Packed, ReplyError, Send, Way, Wire, pack

_APPEND = Script.load("append.lua")
_RENEW = Script.load("renew.lua")
_DELETE = Script.load("delete.lua")
_TRIM_FEED = Script.load("trim_feed.lua")
_TRIMMED_AT_ONCE = 10_000
"""Feed entries that one step removes, at most: the server does nothing else meanwhile."""
_MOST_PARTITIONS = 16_384
_SILENCE = 5.0
"""Seconds after which a server that says nothing counts as gone."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0


class RedisStore:
    """A ``LogStore`` on a server or a cluster. Make one with ``connect``; it holds two connections to each server."""

    def __init__(self, url: str, keys: Keys, limits: Limits, deadline: float, replicas: int) -> None:
        self.companions: dict[str, object] = {}
        self._keys = keys
        self._limits = limits
        self._deadline = deadline
        self._replicas = replicas
        self._url = url
        self._timeout = min(_SILENCE, deadline)
        self._appends: Way = Wire(url, timeout=self._timeout, replicas=replicas)
        self._others: Way = Wire(url, timeout=self._timeout)
        self._waits: Wire | None = None
        """For commands that block; made when one is needed. There is none to a cluster."""

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        namespace: str = "eventlog",
        partitions: int | None = None,
        limits: Limits | None = None,
        deadline: float = 30.0,
        replicas: int = 0,
    ) -> RedisStore:
        """Connect, and lay the namespace out or check that it is laid out as asked.

        ``partitions`` is fixed by whoever lays the namespace out (16 unless chosen); None takes
        what is there. ``deadline`` in seconds bounds each operation, retries included. An append is
        acknowledged once ``replicas`` replicas hold it, else it is ``OutcomeUnknown``. Raises
        ``LayoutMismatch``, ``ServerUnavailable`` or ``ServerUnfit``.
        """
        if partitions is not None and not 1 <= partitions <= _MOST_PARTITIONS:
            raise LayoutMismatch(f"{partitions} partitions: choose 1 to 16,384")
        store = cls(url, Keys(namespace, partitions or 16), limits or Limits(), deadline, replicas)
        try:
            await store._recognise()
            await store._lay_out(partitions)
        except BaseException:
            await store.close()
            raise
        return store

    @property
    def partitions(self) -> int:
        return self._keys.partitions

    async def append(self, request: Append) -> Appended:
        over = self._limits.exceeded_by(request.encoded.documents)
        stop = asyncio.get_running_loop().time() + self._deadline
        pause, sent, reason = _FIRST_PAUSE, False, ""
        while True:
            # A fresh stamp for every transmission: the same bytes sent twice could not be told apart.
            stamp = new_stamp()
            try:
                reply = await _APPEND.run(
                    self._appends,
                    *append_arguments(
                        self._keys, request, stamp, over, retry=sent or request.retry, replicated=bool(self._replicas)
                    ),
                )
            except ConnectionLost as error:
                sent, reason = sent or error.sent, str(error)
            except LogClosed:
                if not sent:
                    raise
                break
            except NotReplicated as error:
                self._outcome(request, stamp, error.reply, over)  # a refusal stands, whoever holds what was written
                raise OutcomeUnknown(
                    f"operation {request.operation_id!r} is on the primary, but {error}: append it again with the "
                    "same operation id to have it confirmed",
                    request.operation_id,
                ) from None
            except ServerUnavailable as error:
                reason = str(error)
            else:
                if not isinstance(reply, ReplyError):
                    return self._outcome(request, stamp, reply, over)
                reason = str(reply)
                if not reason.startswith(PASSING):
                    if sent:
                        break  # an earlier transmission may have been written
                    raise replies.server_error(reason)
            if asyncio.get_running_loop().time() + pause > stop:
                break
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        if sent:
            raise OutcomeUnknown(
                f"operation {request.operation_id!r} was sent and its reply is lost "
                f"({reason}): append it again with the same operation id to learn its outcome",
                request.operation_id,
            )
        raise ServerUnavailable(f"nothing was appended within {self._deadline:g} s: {reason}")

    async def renew(self, log: LogId, run: str, fence: str, lease_ms: int) -> None:
        head = self._keys.of_log(log).head
        code, *details = await self._ask(lambda: _RENEW.run(self._others, 1, head, run, fence, lease_ms))
        if code == b"CLOSED":
            raise refusals.gone(log) if (await self.head(log)).deleted else refusals.closed(log, run)
        if code == b"FENCED":
            raise refusals.fenced(log, run, details[0].decode(), int(details[1]))

    async def read(self, log: LogId, first: int, last: int | None, count: int, *, reverse: bool = False) -> list[Entry]:
        if count < 1:
            return []
        start, end = str(first), "+" if last is None else str(last)
        key = self._keys.of_log(log).log
        if reverse:
            reply = await self._send(pack("XREVRANGE", key, end, start, "COUNT", count))
        else:
            reply = await self._send(pack("XRANGE", key, start, end, "COUNT", count))
        return [replies.entry(item) for item in reply]

    async def pick(self, log: LogId, versions: Sequence[int]) -> list[Entry]:
        key = self._keys.of_log(log).log
        commands = [pack("XRANGE", key, str(first), str(last)) for first, last in stretches(versions)]
        found = await asyncio.gather(*map(self._send, commands))
        return replies.picked(found, versions)

    async def head(self, log: LogId) -> Head:
        reply = await self._send(pack("HGETALL", self._keys.of_log(log).head))
        fields = dict(zip(reply[::2], reply[1::2], strict=True))
        try:
            base = replies.cursor(log, fields.get(b"base", b"0-0"))
            runs = [replies.open_run(name, value) for name, value in fields.items() if name.startswith(b"run:")]
            return Head(
                replies.cursor(log, fields[b"last"]) if b"last" in fields else base,
                base,
                int(fields.get(b"updated", 0)),
                fields.get(b"state") == b"deleted",
                tuple(sorted(runs, key=lambda run: run.first)),
                fields.get(b"why", b"").decode(),
                int(fields.get(b"deleted", 0)),
            )
        except ValueError as error:
            raise Unreadable(f"the head of {log} does not hold what it should: {error}; restore it") from error

    async def now_ms(self) -> int:
        seconds, microseconds = await self._send(pack("TIME"))
        return int(seconds) * 1000 + int(microseconds) // 1000

    async def conversations(self, partition: int, offset: int, count: int) -> list[LogId]:
        if count < 1:
            return []
        key = self._keys.conversations(partition)
        reply = await self._send(pack("ZRANGE", key, offset, offset + count - 1))
        return [replies.listed(path) for path in reply]

    async def conversations_after(self, partition: int, after: int, count: int) -> list[tuple[int, LogId]]:
        if count < 1:
            return []
        key = self._keys.conversations(partition)
        reply = await self._send(pack("ZRANGE", key, f"({after}", "+inf", "BYSCORE", "LIMIT", 0, count, "WITHSCORES"))
        if len(reply) == 2 * count:  # a feed that lost its end gives numbers again: those of the last one come together
            last = reply[-1]
            others = await self._send(pack("ZRANGE", key, last, last, "BYSCORE", "WITHSCORES"))
            reply = [part for pair in zip(reply[::2], reply[1::2], strict=True) if pair[1] != last for part in pair]
            reply += others
        try:
            return [(int(seq), replies.listed(path)) for path, seq in zip(reply[::2], reply[1::2], strict=True)]
        except ValueError as error:
            raise Unreadable(f"{key} does not hold what it should: {error}; `eventlog verify` names it") from error

    async def delete(
        self, log: LogId, *, force: bool = False, idle_since_ms: int | None = None, why: str = "deleted"
    ) -> bool:
        keys, idle = self._keys.of_log(log), "" if idle_since_ms is None else idle_since_ms
        options = (why, "1" if force else "", idle, "1" if self._replicas else "")
        try:
            code, *details = await self._ask(
                lambda: _DELETE.run(self._appends, len(keys), *keys, log.path, new_stamp(), *options)
            )
        except NotReplicated as error:
            reply: Any = error.reply
            code, *details = reply
            if code == b"DELETED":
                raise OutcomeUnknown(
                    f"{refusals.name(log)} is deleted on the primary, but {error}: delete it again to have it "
                    "confirmed",
                    "",
                ) from None
        if code == b"BUSY":
            run, holder, since, lease, now = details
            raise refusals.in_use(log, run.decode(), holder.decode(), int(since), int(lease), int(now))
        if code == b"UNREADABLE":
            raise Unreadable(
                f"a key of {refusals.name(log)} does not hold what it should, and nothing was written: "
                "`eventlog verify` names it"
            )
        return bool(code == b"DELETED")

    async def feed_ends(self) -> list[int]:
        return list(await asyncio.gather(*map(self._feed_end, range(self.partitions))))

    async def _feed_end(self, partition: int) -> int:
        newest = await self._send(pack("XREVRANGE", self._keys.feed(partition), "+", "-", "COUNT", 1))
        return replies.feed_entry(partition, newest[0]).seq if newest else 0

    async def read_feed(self, partition: int, first: int, count: int) -> list[FeedEntry]:
        if count < 1:
            return []
        reply = await self._send(pack("XRANGE", self._keys.feed(partition), f"0-{max(first, 1)}", "+", "COUNT", count))
        return [replies.feed_entry(partition, item) for item in reply]

    async def feed_base(self, partition: int) -> FeedBase:
        key = self._keys.feed_base(partition)
        found = await self._send(pack("HMGET", key, "seq", "stamp", "announced"))
        try:
            return FeedBase(*(int(number or 0) for number in found))
        except ValueError as error:
            raise Unreadable(f"{key} does not hold what it should: {error}; `eventlog verify` names it") from error

    async def announce_trim(self, partition: int, below: int) -> None:
        await self._trim(partition, below, 0)

    async def trim_feed(self, partition: int, below: int) -> int:
        total = 0
        while removed := await self._trim(partition, below, _TRIMMED_AT_ONCE):
            total += removed
            if removed < _TRIMMED_AT_ONCE:
                break
        return total

    async def _trim(self, partition: int, below: int, most: int) -> int:
        feed, base = self._keys.feed(partition), self._keys.feed_base(partition)
        removed = await self._ask(lambda: _TRIM_FEED.run(self._others, 2, feed, base, below, most))
        if removed == b"UNREADABLE":
            raise Unreadable(
                f"{feed} or {base} does not hold what it should, and nothing was trimmed: `eventlog verify` names it"
            )
        return int(removed)

    async def wait_feeds(self, after: Sequence[int], seconds: float, count: int) -> list[FeedEntry]:
        """As in the port. Waits at most half as long as a silent server is borne with."""
        seconds = min(seconds, self._timeout / 2)
        if isinstance(self._others, Cluster):
            return await poll_feeds(self._others, self._keys, dict(enumerate(after)), seconds, count)
        if self._waits is None:
            self._waits = Wire(self._url, timeout=self._timeout)
        milliseconds = max(1, int(seconds * 1000))
        feeds = [self._keys.feed(partition) for partition in range(self.partitions)]
        positions = [f"0-{seq}" for seq in after]
        command = pack("XREAD", "COUNT", count, "BLOCK", milliseconds, "STREAMS", *feeds, *positions)
        waits = self._waits
        reply = await self._ask(lambda: waits.execute(command))
        partitions = {feed.encode(): partition for partition, feed in enumerate(feeds)}
        return [replies.feed_entry(partitions[feed], item) for feed, items in reply or () for item in items]

    async def close(self) -> None:
        if self._waits is not None:
            await self._waits.close()
        await self._appends.close()
        await self._others.close()

    async def _recognise(self) -> None:
        """Take the ways to the nodes where the server is one of a cluster."""
        if await is_clustered(self._ask, self._others):
            await self._others.close()
            home = self._keys.feed(0)  # beside it the groups are kept, whose members' leases are compared with TIME
            others = Cluster(self._url, home, timeout=self._timeout)
            self._others = others
            self._appends = Cluster(self._url, home, timeout=self._timeout, replicas=self._replicas, beside=others)

    async def _lay_out(self, partitions: int | None) -> None:
        there = await self._laid_out(self._send)
        if partitions is not None and there != partitions:
            raise LayoutMismatch(
                f"namespace {self._keys.namespace!r} has {there} partitions, not {partitions}: "
                "leave partitions out, or use another namespace"
            )
        self._keys = Keys(self._keys.namespace, there)
        self._appends.greet = self._check_layout

    async def _check_layout(self, send: Send) -> None:
        """A server that was started on other data must not be written to by the layout of before."""

        async def ask(packed: Packed) -> Any:
            reply = await send(packed)
            if not isinstance(reply, ReplyError):
                return reply
            if str(reply).startswith(PASSING):
                raise ServerUnavailable(f"the server is not ready: {reply}")
            raise replies.server_error(str(reply))

        there = await self._laid_out(ask)
        if there != self.partitions:
            raise LayoutMismatch(
                f"namespace {self._keys.namespace!r} has {there} partitions now, not {self.partitions} as before: "
                "the server has other data; open the log anew"
            )

    async def _laid_out(self, send: Send) -> int:
        """The number of partitions, laid out now where nobody has."""
        meta = self._keys.meta
        layout, there = await send(pack("HMGET", meta, "layout", "partitions"))
        if layout is None or there is None:  # whoever may only read can open what is laid out
            await send(pack("HSETNX", meta, "partitions", self._keys.partitions))
            await send(pack("HSETNX", meta, "layout", LAYOUT))
            layout, there = await send(pack("HMGET", meta, "layout", "partitions"))
        if layout != str(LAYOUT).encode():
            raise LayoutMismatch(
                f"namespace {self._keys.namespace!r} has layout {layout!r}, this version reads {LAYOUT}: "
                "use the version that wrote it, or another namespace"
            )
        if not there.isdigit() or not 1 <= int(there) <= _MOST_PARTITIONS:
            raise LayoutMismatch(f"{meta} names {there!r} partitions: restore it, or use another namespace")
        return int(there)

    def _outcome(self, request: Append, stamp: int, reply: Any, over: str | None) -> Appended:
        code, *details = reply
        if code == b"OK":
            first, before = details
            cursor = request.log.cursor(first + len(request.encoded.documents) - 1, stamp)
            return Appended(cursor, first, request.operation_id, False, replies.cursor(request.log, before))
        if code == b"DUPLICATE":
            first, count, first_stamp = (int(detail) for detail in details)
            cursor = request.log.cursor(first + count - 1, first_stamp)
            return Appended(cursor, first, request.operation_id, True)
        if code == b"FOUND":
            return refusals.retried(request, details[0], [replies.entry(item) for item in details[1]])
        raise replies.refusal(request, code, details, over)

    async def _send(self, packed: Packed) -> Any:
        return await self._ask(lambda: self._others.execute(packed))

    async def _ask(self, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send what may be sent twice without harm, until it is answered or the deadline."""
        stop = asyncio.get_running_loop().time() + self._deadline
        pause = _FIRST_PAUSE
        while True:
            try:
                reply = await send()
            except (ConnectionLost, ServerUnavailable) as error:
                reason = str(error)
            else:
                if not isinstance(reply, ReplyError):
                    return reply
                reason = str(reply)
                if not reason.startswith(PASSING):
                    raise replies.server_error(reason)
            if asyncio.get_running_loop().time() + pause > stop:
                raise ServerUnavailable(f"no answer within {self._deadline:g} s: {reason}")
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
