"""Following: how late an event arrives, what that costs the server, and how fast a follower catches up.

As many conversations as followers; one writer appends one event of 1 KB to a random one and waits
for its follower. The bare contender is one XREAD BLOCK per follower, each on a connection of its own
by the same client, decoding with orjson, on conversations of a log of its own. Catching up is measured against XRANGE
in pages of 500 and orjson.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson
import redis.asyncio

from benchmarks.bench import Bench
from benchmarks.measure import seconds
from benchmarks.ratio import Ratio, ratio
from benchmarks.workload import body
from eventlog import Conversation, Draft, EventLog, Kind
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.store import RedisStore
from eventlog.store.redis.wire import Wire, pack

FOLLOWERS = (1, 100, 1_000, 10_000)
TARGETS = {1: 1.3, 1_000: 2.0, 10_000: 2.0}
BARE = 100
"""Followers up to which the bare contender is measured as often, too: it holds a connection for each."""
EVENTS, PAGE = 100_000, 500


class Cost(NamedTuple):
    """What one kind of following cost in one round."""

    p50: float
    """Microseconds from before the append to the event at its follower."""
    p99: float
    cpu: float
    """Microseconds of the server's CPU time for each event, its append included."""


class Following(ABC):
    """Followers of conversations, one each, that tell when an event arrived."""

    def __init__(self, chats: Sequence[Conversation]) -> None:
        self.chats = chats
        self._arrived: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._ready = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._drafts = [Draft("message-added", dict(body()))]
        self._random = random.Random(1)  # noqa: S311  not a secret

    @abstractmethod
    async def follow(self, chat: Conversation) -> None:
        """Follow one conversation until it is cancelled; call ``ready``, then ``arrive``."""

    def ready(self) -> None:
        self._ready += 1

    def arrive(self) -> None:
        if not self._arrived.done():
            self._arrived.set_result(time.perf_counter())

    async def event(self) -> float:
        """Append an event to one of the conversations; microseconds until it was at its follower."""
        self._arrived = asyncio.get_running_loop().create_future()
        start = time.perf_counter()
        await self._random.choice(self.chats).append(*self._drafts)
        return (await self._arrived - start) * 1e6

    async def __aenter__(self) -> Following:
        self._tasks = [asyncio.create_task(self.follow(chat)) for chat in self.chats]
        while self._ready < len(self.chats):
            await asyncio.sleep(0.05)
            for task in self._tasks:
                if task.done():
                    task.result()
        await asyncio.sleep(0.5)  # all wait by now
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Ours(Following):
    """Followers of the product."""

    async def follow(self, chat: Conversation) -> None:
        async with chat.follow("now") as follower:
            async for item in follower:
                if item.kind is Kind.CAUGHT_UP:
                    self.ready()
                elif item.kind is Kind.EVENT:
                    self.arrive()


class Bare(Following):
    """One XREAD BLOCK each."""

    def __init__(self, chats: Sequence[Conversation], url: str, keys: Keys) -> None:
        super().__init__(chats)
        self._url = url
        self._keys = keys

    async def follow(self, chat: Conversation) -> None:
        wire = Wire(self._url)
        key, last = self._keys.of_log(chat.log).log, (await chat.head()).last.entry_id
        self.ready()
        try:
            while True:
                reply = await wire.execute(pack("XREAD", "BLOCK", 2000, "STREAMS", key, last))
                for identity, fields in reply[0][1] if reply else ():
                    last = identity.decode()
                    orjson.loads(fields[1])
                    self.arrive()
        finally:
            await wire.close()


async def conversations(log: EventLog, count: int) -> list[Conversation]:
    """So many conversations of one small event each."""
    chats = [log.tenant("bench").conversation(f"c{number}") for number in range(count)]
    for start in range(0, count, 500):
        await asyncio.gather(*(chat.append(Draft("x-first", {})) for chat in chats[start : start + 500]))
    return chats


async def delays(followings: Sequence[Following], each: int) -> list[list[float]]:
    """Microseconds of so many events at each, in turn."""
    found: list[list[float]] = [[] for _ in followings]
    for _ in range(each):
        for following, column in zip(followings, found, strict=True):
            column.append(await following.event())
    return found


async def cpu_an_event(following: Following, client: redis.asyncio.Redis, each: int) -> float:
    """Microseconds of the server's CPU time."""
    before = await _cpu(client)
    for _ in range(each):
        await following.event()
    return (await _cpu(client) - before) * 1e6 / each


async def _cpu(client: redis.asyncio.Redis) -> float:
    """Seconds of CPU time that the server has used."""
    info: dict[str, Any] = await client.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


async def measure(bench: Bench) -> list[Ratio]:
    """All rows."""
    counts = sorted({bench.size.of(count, min(count, 10)) for count in FOLLOWERS})
    rows: list[Ratio] = []
    connections: dict[str, list[float]] = {}
    async with bench.client() as client, bench.log() as other:
        assert isinstance(other.store, RedisStore)
        keys, bare_chats = other.store._keys, await conversations(other, min(BARE, counts[-1]))
        for count in counts:
            before = len(await client.client_list())
            async with bench.log() as log, Ours(await conversations(log, count)) as ours:
                connections[_ours(count)] = [len(await client.client_list()) - before]
                async with Bare(bare_chats[:1], bench.url, keys) as bare:
                    both = {_ours(count): ours, _bare(1): bare}
                    found = await tails(both, client, bench.size.rounds, bench.size.of(200, 20))
                rows += _rows(found, _ours(count), _bare(1), at_most=TARGETS.get(count))
                if 1 < count <= BARE:
                    async with Bare(bare_chats[:count], bench.url, keys) as bare:
                        both = {_ours(count): ours, _bare(count): bare}
                        found = await tails(both, client, bench.size.rounds, bench.size.of(100, 20))
                    rows += _rows(found, _ours(count), _bare(count))
    rows += [
        ratio("live tail, connections", connections, _ours(count), _ours(counts[0]), at_most=1) for count in counts[1:]
    ]
    rates = await catch_up(bench)
    return [*rows, ratio(f"catch up, {bench.size.of(EVENTS, PAGE):,} events, events/s", rates, *rates, at_least=0.5)]


def _ours(count: int) -> str:
    return f"follow, {count:,}"


def _bare(count: int) -> str:
    return f"XREAD BLOCK each, {count:,}"


def _rows(costs: dict[str, list[Cost]], ours: str, bare: str, *, at_most: float | None = None) -> list[Ratio]:
    def found(field: str) -> dict[str, list[float]]:
        return {name: [getattr(cost, field) for cost in column] for name, column in costs.items()}

    return [
        ratio("live tail, p50 µs", found("p50"), ours, bare, at_most=at_most),
        ratio("live tail, p99 µs", found("p99"), ours, bare),
        ratio("live tail, server CPU µs an event", found("cpu"), ours, bare),
    ]


async def tails(
    followings: dict[str, Following], client: redis.asyncio.Redis, rounds: int, each: int
) -> dict[str, list[Cost]]:
    """What each costs in each round: delays interleaved event by event, CPU time in turn."""
    costs: dict[str, list[Cost]] = {name: [] for name in followings}
    await delays(list(followings.values()), 10)  # warm
    for _ in range(rounds):
        columns = await delays(list(followings.values()), each)
        for (name, following), column in zip(followings.items(), columns, strict=True):
            column.sort()
            p99 = column[min(len(column) - 1, int(len(column) * 0.99))]
            costs[name].append(Cost(statistics.median(column), p99, await cpu_an_event(following, client, each)))
    return costs


async def catch_up(bench: Bench) -> dict[str, list[float]]:
    """Events a second, from the first of a long log to its end."""
    events = bench.size.of(EVENTS, PAGE)
    rates: dict[str, list[float]] = {"follow": [], "XRANGE + orjson": []}
    wire = Wire(bench.url)
    async with bench.log() as log:
        assert isinstance(log.store, RedisStore)
        chat = log.tenant("bench").conversation("long")
        for _ in range(events // PAGE):
            await chat.append(*(Draft("message-added", dict(body())) for _ in range(PAGE)))
        key = log.store._keys.of_log(chat.log).log

        async def follow() -> None:
            async for item in chat.follow():
                if item.kind is Kind.CAUGHT_UP:
                    break

        async def raw() -> None:
            first = "-"
            while page := await wire.execute(pack("XRANGE", key, first, "+", "COUNT", PAGE)):
                for _, fields in page:
                    orjson.loads(fields[1])
                first = "(" + page[-1][0].decode()

        try:
            for _ in range(bench.size.rounds):
                rates["follow"].append(events / await seconds(follow))
                rates["XRANGE + orjson"].append(events / await seconds(raw))
        finally:
            await wire.close()
    return rates
