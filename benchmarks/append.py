"""Appending 4 events of 1 KB: the store alone, whole, as the history grows, and against sessions of peers.

The bare contenders write the same four documents by XADD, pipelined: over the same shared connection as
ours, or through redis-py's pool. The peers add four messages of the same text to a session of 1,000.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AsyncExitStack

import orjson
import redis.asyncio

from benchmarks.bench import Bench
from benchmarks.measure import Contender, latency, throughput
from benchmarks.peers import PROVIDER, SESSION, as_framework, as_items, history_provider, redis_session
from benchmarks.ratio import Ratio, ratio
from benchmarks.workload import body
from eventlog import Conversation, Draft, EventLog, LogId, user
from eventlog.codec import encode
from eventlog.identity import new_id
from eventlog.store.port import Append
from eventlog.store.redis.store import RedisStore
from eventlog.store.redis.wire import Wire, pack

WORK = "append 4 × 1 KB"
LENGTHS = (10, 1_000, 100_000)


class Bare:
    """The same four documents by XADD, without any guarantee."""

    def __init__(self, url: str, key: str) -> None:
        self._wire = Wire(url)
        self._pool = redis.asyncio.BlockingConnectionPool.from_url(url, max_connections=64, timeout=60)
        self._client = redis.asyncio.Redis.from_pool(self._pool)
        self._key = key
        self._bodies = [body() for _ in range(4)]
        self._documents = [self._document(data) for data in self._bodies]

    @staticmethod
    def _document(data: dict[str, object]) -> bytes:
        return orjson.dumps({"id": "x", "type": "message-added", "at": "2026-01-01T00:00:00Z", "data": data})

    async def shared(self) -> None:
        """Documents at hand, over the shared connection."""
        await self._send(self._documents)

    async def shared_json(self) -> None:
        """The same, encoded with orjson."""
        await self._send([self._document(data) for data in self._bodies])

    async def pooled_json(self) -> None:
        """Encoded with orjson, a pipeline of redis-py's pool."""
        pipeline = self._client.pipeline(transaction=False)
        for data in self._bodies:
            pipeline.xadd(self._key, {"e": self._document(data)})
        await pipeline.execute()

    async def _send(self, documents: list[bytes]) -> None:
        await asyncio.gather(
            *(self._wire.execute(pack("XADD", self._key + ":shared", "*", "e", document)) for document in documents)
        )

    async def close(self) -> None:
        await self._client.aclose()
        await self._wire.close()


class StoreAlone:
    """Bytes in: the store's own part of an append, to a conversation of its own."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._log = LogId("bench", new_id())
        self._cursor = self._log.cursor(0, 0)
        self._encoded = encode(
            [Draft("message-added", dict(body())) for _ in range(4)], "bench", "2026-01-01T00:00:00Z"
        )

    async def append(self) -> None:
        outcome = await self._store.append(Append(self._log, new_id(), self._encoded, self._cursor))
        self._cursor = max(self._cursor, outcome.cursor)


class Whole:
    """Validated, encoded, digested, appended."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._drafts = [Draft("message-added", dict(body())) for _ in range(4)]

    async def append(self) -> None:
        await self._conversation.append(*self._drafts)

    async def fill(self, events: int) -> None:
        """Append about this many events."""
        rest = events // 4
        while rest > 0:
            batch = min(rest, 64)
            await asyncio.gather(*(self.append() for _ in range(batch)))
            rest -= batch


async def measure(bench: Bench) -> list[Ratio]:
    """All rows."""
    async with bench.log() as log:
        return [*await against_bare(bench, log), *await against_itself(bench, log), *await against_peers(bench, log)]


async def against_bare(bench: Bench, log: EventLog) -> list[Ratio]:
    """Latency one after the other, and throughput of 64 tasks."""
    assert isinstance(log.store, RedisStore)
    bare = Bare(bench.url, f"{{{bench.name()}}}:bare")
    try:
        store = Contender("store alone", StoreAlone(log.store).append)
        whole = Contender("whole", Whole(log.tenant("bench").conversation("whole")).append)
        shared = Contender("bare XADD, shared connection", bare.shared)
        shared_json = Contender("bare XADD + orjson, shared connection", bare.shared_json)
        pooled = Contender("bare XADD + orjson, redis-py's pool", bare.pooled_json)
        contenders = [store, whole, shared, shared_json, pooled]
        times = await latency(contenders, rounds=bench.size.rounds, each=bench.size.of(300, 20))
        rates = await throughput(contenders, rounds=bench.size.rounds, tasks=64, each=bench.size.of(100, 2))
    finally:
        await bare.close()
    alone, at_once = f"{WORK}, µs", f"{WORK}, 64 at once, appends/s"
    return [
        ratio(alone, times, store.name, shared.name, at_most=1.15),
        ratio(at_once, rates, store.name, shared.name, at_least=1.0),
        ratio(alone, times, whole.name, pooled.name, at_most=1.3),
        ratio(at_once, rates, whole.name, pooled.name, at_least=1.0),
        ratio(alone, times, whole.name, shared_json.name),
        ratio(at_once, rates, whole.name, shared_json.name),
    ]


async def against_itself(bench: Bench, log: EventLog) -> list[Ratio]:
    """Appending to histories of different length; the short one is made anew each time."""
    lengths = [bench.size.of(length, 10 * step) for step, length in enumerate(LENGTHS, 1)]
    names = [f"at {length:,} events" for length in lengths]
    tenant = log.tenant("bench")
    writers = [Whole(tenant.conversation(f"grown-{length}")) for length in lengths[1:]]
    for writer, length in zip(writers, lengths[1:], strict=True):
        await writer.fill(length)
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(bench.size.rounds * bench.size.of(10)):
        short = Whole(tenant.conversation(new_id()))
        await short.fill(lengths[0])
        contenders = [Contender(name, writer.append) for name, writer in zip(names, (short, *writers), strict=True)]
        for name, medians in (await latency(contenders, rounds=1, each=20)).items():
            found[name] += medians
    return [ratio(f"{WORK}, µs", found, name, names[0], at_most=1.1) for name in names[1:]]


async def against_peers(bench: Bench, log: EventLog) -> list[Ratio]:
    """Four messages into sessions that hold 1,000."""
    length = bench.size.of(1_000, 20)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(bench.client())
        decoding = await stack.enter_async_context(bench.client(decode_responses=True))
        ours = Whole(log.tenant("bench").conversation("beside-peers"))
        session = redis_session(client, bench.name())
        provider = history_provider(decoding, bench.name())
        messages = [user(secrets.token_hex(450)) for _ in range(length)]
        four = [user(secrets.token_hex(450)) for _ in range(4)]
        items, framework = as_items(four), as_framework(four)
        await ours.fill(length)
        await session.add_items(as_items(messages))
        await provider.save_messages("bench", as_framework(messages))
        [key] = await client.keys(f"*{provider.application_id}*")

        async def to_session() -> None:
            await session.add_items(items)

        async def to_provider() -> None:
            await provider.save_messages("bench", framework)

        async def cut() -> None:
            """Its time grows with what it holds."""
            await client.ltrim(key, 0, length - 1)

        contenders = [
            Contender("whole", ours.append),
            Contender(SESSION, to_session),
            Contender(PROVIDER, to_provider, cut),
        ]
        times = await latency(contenders, rounds=bench.size.rounds, each=bench.size.of(40, 5))
    name = f"{WORK} at {length:,} messages, times as fast (µs)"
    return [
        ratio(name, times, "whole", SESSION, at_least=2, times_as_fast=True),
        ratio(name, times, "whole", PROVIDER, at_least=40, times_as_fast=True),
    ]
