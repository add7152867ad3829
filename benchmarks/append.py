"""Appending 4 events of 1 KB: the store alone, whole, and as the history grows.

    python -m benchmarks.append [--url URL]

The bare contenders write the same four documents by XADD, pipelined: over the same shared
connection as ours, or through redis-py's pool.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AsyncExitStack

import orjson
import redis.asyncio

from benchmarks.measure import Contender, Ratio, latency, measured_server, parser, ratio, report, throughput
from eventlog import Conversation, Draft, EventLog, LogId
from eventlog.codec import encode
from eventlog.identity import new_id, new_stamp
from eventlog.store.port import Append
from eventlog.store.redis.store import RedisStore
from eventlog.store.redis.wire import Wire, pack

ROUNDS = 7
LENGTHS = (10, 1_000, 100_000)


def body() -> dict[str, object]:
    """The data of one event of about 1 KB."""
    return {"message_id": "m", "role": "user", "parts": [{"type": "text", "content": secrets.token_hex(450)}]}


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


async def measure(url: str) -> list[Ratio]:
    """All rows."""
    namespace = f"bench-{new_stamp():x}"
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(EventLog.open(url, namespace=namespace))
        assert isinstance(log.store, RedisStore)
        bare = Bare(url, f"{{{namespace}}}:bare")
        stack.push_async_callback(bare.close)
        store = Contender("store alone", StoreAlone(log.store).append)
        whole = Contender("whole", Whole(log.tenant("bench").conversation("whole")).append)
        shared = Contender("bare XADD, shared connection", bare.shared)
        shared_json = Contender("bare XADD + orjson, shared connection", bare.shared_json)
        pooled = Contender("bare XADD + orjson, redis-py pool", bare.pooled_json)
        contenders = [store, whole, shared, shared_json, pooled]
        times = await latency(contenders, rounds=ROUNDS, each=300)
        rates = await throughput(contenders, rounds=ROUNDS, tasks=64, each=20)
        grown = await growth(log)
    return [
        ratio("latency, µs", times, store.name, shared.name, at_most=1.15),
        ratio("throughput, /s", rates, store.name, shared.name, at_least=1.0),
        ratio("latency, µs", times, whole.name, pooled.name, at_most=1.3),
        ratio("throughput, /s", rates, whole.name, pooled.name, at_least=1.0),
        ratio("latency, µs", times, whole.name, shared_json.name),
        ratio("throughput, /s", rates, whole.name, shared_json.name),
        *(
            ratio("latency, µs", grown, f"at {length:,} events", f"at {LENGTHS[0]:,} events", at_most=1.1)
            for length in LENGTHS[1:]
        ),
    ]


async def growth(log: EventLog) -> dict[str, list[float]]:
    """Latency of an append to histories of different length; the short one is made anew in each round."""
    long = [Whole(log.tenant("bench").conversation(f"grown-{length}")) for length in LENGTHS[1:]]
    for writer, length in zip(long, LENGTHS[1:], strict=True):
        await writer.fill(length)
    found: dict[str, list[float]] = {}
    for _ in range(ROUNDS * 10):
        short = Whole(log.tenant("bench").conversation(new_id()))
        await short.fill(LENGTHS[0])
        contenders = [
            Contender(f"at {length:,} events", writer.append)
            for length, writer in zip(LENGTHS, (short, *long), strict=True)
        ]
        for name, medians in (await latency(contenders, rounds=1, each=20)).items():
            found.setdefault(name, []).extend(medians)
    return found


async def main() -> None:
    async with measured_server(parser(__doc__).parse_args().url) as (url, server):
        report(await measure(url), "append", server)


if __name__ == "__main__":
    asyncio.run(main())
