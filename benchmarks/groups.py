"""A consumer group of one member against bare XREADGROUP + XACK, batches of 100, small events.

Both go through as many events once a round, in turn; ours are spread evenly over conversations. In one
partition that is the worst case: each window holds one event of each conversation, so each is a read of
its own. The bare contender reads one stream through
redis-py and acknowledges each batch; it keeps no order per conversation beside others, parks
nothing, and notices no loss.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import orjson
import redis.asyncio

from benchmarks.bench import Bench
from benchmarks.measure import seconds
from benchmarks.ratio import Ratio, ratio
from eventlog import Draft, EventLog, LogId
from eventlog.codec import encode
from eventlog.delivery import Delivery
from eventlog.identity import new_id
from eventlog.store.port import Append

EVENTS = 20_000
BATCH = 100
CONVERSATIONS = 100
TARGET = 0.3


def document() -> bytes:
    """A small event as it is stored."""
    [encoded] = encode([Draft("note", {"text": "something small happened"})], "bench", "2026-01-01T00:00:00Z").documents
    return encoded


class Bare:
    """One stream with a consumer group, through redis-py."""

    def __init__(self, url: str, key: str, events: int) -> None:
        self._client: Any = redis.asyncio.Redis.from_url(url)
        self._key = key
        self._events = events

    async def fill(self) -> None:
        """Write the events."""
        body = document()
        for start in range(0, self._events, 1_000):
            pipeline = self._client.pipeline(transaction=False)
            for _ in range(min(1_000, self._events - start)):
                pipeline.xadd(self._key, {"e": body})
            await pipeline.execute()

    async def as_it_comes(self) -> None:
        """Read and acknowledge, look at nothing."""
        await self._read(lambda _: None)

    async def decoded(self) -> None:
        """Read, load the JSON, acknowledge."""
        await self._read(orjson.loads)

    async def _read(self, look: Callable[[bytes], object]) -> None:
        group = new_id()
        await self._client.xgroup_create(self._key, group, id="0")
        seen = 0
        while seen < self._events:
            [[_, entries]] = await self._client.xreadgroup(group, "one", {self._key: ">"}, count=BATCH)
            for _, fields in entries:
                look(fields[b"e"])
            await self._client.xack(self._key, group, *(identity for identity, _ in entries))
            seen += len(entries)

    async def close(self) -> None:
        await self._client.aclose()


class Group:
    """Our group over all partitions."""

    def __init__(self, log: EventLog, events: int) -> None:
        self._log = log
        self._events = events

    async def fill(self) -> None:
        """Write the events, one an append, spread over conversations."""
        encoded = encode([Draft("note", {"text": "something small happened"})], "bench", "2026-01-01T00:00:00Z")
        logs = [LogId("bench", f"c{number}") for number in range(CONVERSATIONS)]
        for start in range(0, self._events, 200):
            requests = [
                Append(log, new_id(), encoded, log.cursor(0, 0))
                for log in (logs[number % CONVERSATIONS] for number in range(start, min(start + 200, self._events)))
            ]
            await asyncio.gather(*map(self._log.store.append, requests))

    async def consume(self) -> None:
        """One member handles every event and has its marks written."""
        group, seen, handled = self._log.group(new_id()), 0, asyncio.Event()

        async def handle(delivery: Delivery) -> None:
            nonlocal seen
            seen += 1
            if seen == self._events:
                handled.set()

        member = asyncio.create_task(group.consume(handle, batch=BATCH))
        await handled.wait()
        member.cancel()
        await asyncio.wait([member])
        assert (await group.status()).lag == 0
        await group.remove()


async def measure(bench: Bench) -> list[Ratio]:
    """All rows, in events a second."""
    events = bench.size.of(EVENTS, 4 * BATCH)
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(bench.log())
        narrow = await stack.enter_async_context(bench.log(partitions=1))
        bare = Bare(bench.url, bench.name(), events)
        stack.push_async_callback(bare.close)
        ours, ours_narrow = Group(log, events), Group(narrow, events)
        for one in (bare, ours, ours_narrow):
            await one.fill()
        contenders: dict[str, Callable[[], Awaitable[None]]] = {
            "group of 1 member, 16 partitions": ours.consume,
            "group of 1 member, 1 partition": ours_narrow.consume,
            "bare XREADGROUP + XACK": bare.as_it_comes,
            "bare XREADGROUP + XACK + orjson": bare.decoded,
        }
        rates: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(bench.size.rounds):
            for name, go_through in contenders.items():
                rates[name].append(events / await seconds(go_through))
    wide, one_partition, raw, decoded = contenders
    work = f"consume {events:,} events of {CONVERSATIONS} conversations, events/s"
    return [
        ratio(work, rates, wide, raw, at_least=TARGET),
        ratio(work, rates, one_partition, raw, at_least=TARGET),
        ratio(work, rates, wide, decoded),
        ratio(work, rates, one_partition, decoded),
    ]
