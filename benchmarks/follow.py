"""Following: how late an event arrives, what that costs the server, and how fast a follower catches up.

    python -m benchmarks.follow [--url URL] [--most 10000]

As many conversations as followers; one writer appends one event of 1 KB to a random one and waits
for its follower. The bare contender is one XREAD BLOCK per follower, each on a connection of its own
by the same client, decoding with orjson. Catching up is measured against XRANGE in pages of 500 and
orjson.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import orjson
import redis.asyncio
from rich.console import Console
from rich.table import Table

from benchmarks.append import body
from benchmarks.measure import Ratio, measured_server, parser, ratio, report
from eventlog import Conversation, Draft, EventLog, Kind
from eventlog.identity import new_stamp
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.wire import Wire, pack

ROUNDS, EACH = 5, 200
FOLLOWERS = (1, 100, 1_000, 10_000)
BARE = 100
"""Followers up to which the bare contender is measured, too: it holds a connection for each."""
EVENTS, PAGE = 100_000, 500


class Cost(NamedTuple):
    """What one kind of following costs with so many followers."""

    name: str
    p50: float
    """Microseconds from before the append to the event at its follower."""
    p99: float
    connections: int
    cpu: float
    """Microseconds of the server's CPU time for each event, its append included."""


class Following(ABC):
    """Followers of conversations, one each, that tell when an event arrived."""

    def __init__(self, chats: Sequence[Conversation]) -> None:
        self.chats = chats
        self.arrived: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._ready = 0
        self._tasks: list[asyncio.Task[None]] = []

    @abstractmethod
    async def follow(self, chat: Conversation) -> None:
        """Follow one conversation until it is cancelled; call ``ready``, then ``arrive``."""

    def ready(self) -> None:
        self._ready += 1

    def arrive(self) -> None:
        if not self.arrived.done():
            self.arrived.set_result(time.perf_counter())

    async def __aenter__(self) -> Following:
        self._tasks = [asyncio.create_task(self.follow(chat)) for chat in self.chats]
        while self._ready < len(self.chats):
            await asyncio.sleep(0.05)
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


async def tail(following: Following, client: redis.asyncio.Redis, rng: random.Random) -> tuple[list[float], Cost]:
    """One round: the delays in microseconds, and what it cost."""
    drafts = [Draft("message-added", dict(body()))]
    delays = []
    before = await cpu(client)
    for _ in range(EACH):
        following.arrived = asyncio.get_running_loop().create_future()
        start = time.perf_counter()
        await rng.choice(following.chats).append(*drafts)
        delays.append((await following.arrived - start) * 1e6)
    used = await cpu(client) - before
    connections = len(await client.client_list()) - 1
    delays.sort()
    name = f"{type(following).__name__.lower()}, {len(following.chats):,}"
    return delays, Cost(
        name, statistics.median(delays), delays[int(len(delays) * 0.99)], connections, used * 1e6 / EACH
    )


async def cpu(client: redis.asyncio.Redis) -> float:
    """Seconds of CPU time that the server has used."""
    info: dict[str, Any] = await client.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


async def tails(url: str, most: int) -> tuple[dict[str, list[float]], list[Cost]]:
    """The medians of each contender and number of followers, round by round, and the cost over all rounds."""
    namespace = f"bench-{new_stamp():x}"
    rng = random.Random(1)  # noqa: S311  not a secret
    medians: dict[str, list[float]] = {}
    costs: dict[str, list[Cost]] = {}
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(EventLog.open(url, namespace=namespace))
        client = await stack.enter_async_context(redis.asyncio.from_url(url))
        tenant, keys = log.tenant("bench"), Keys(namespace, log.store.partitions)
        chats = [tenant.conversation(f"c{number}") for number in range(most)]
        for start in range(0, most, 500):
            await asyncio.gather(*(chat.append(Draft("x-first", {})) for chat in chats[start : start + 500]))
        for _ in range(ROUNDS):
            for count in (count for count in FOLLOWERS if count <= most):
                contenders: list[Following] = [Ours(chats[:count])]
                if count <= BARE:
                    contenders.append(Bare(chats[:count], url, keys))
                for contender in contenders:
                    async with contender:
                        _, cost = await tail(contender, client, rng)
                    medians.setdefault(cost.name, []).append(cost.p50)
                    costs.setdefault(cost.name, []).append(cost)
    return medians, [_middle(found) for found in costs.values()]


def _middle(costs: Sequence[Cost]) -> Cost:
    p50, p99, connections, used = (statistics.median(column) for column in list(zip(*costs, strict=True))[1:])
    return Cost(costs[0].name, p50, p99, int(connections), used)


async def catch_up(url: str) -> dict[str, list[float]]:
    """Events a second, from the first of a long log to its end."""
    namespace = f"bench-{new_stamp():x}"
    rates: dict[str, list[float]] = {"follow": [], "XRANGE + orjson": []}
    async with EventLog.open(url, namespace=namespace) as log:
        chat = log.tenant("bench").conversation("long")
        for _ in range(EVENTS // PAGE):
            await chat.append(*(Draft("message-added", dict(body())) for _ in range(PAGE)))
        key = Keys(namespace, log.store.partitions).of_log(chat.log).log
        wire = Wire(url)
        for _ in range(3):
            start = time.perf_counter()
            async for item in chat.follow():
                if item.kind is Kind.CAUGHT_UP:
                    break
            rates["follow"].append(EVENTS / (time.perf_counter() - start))
            start = time.perf_counter()
            await _raw(wire, key)
            rates["XRANGE + orjson"].append(EVENTS / (time.perf_counter() - start))
        await wire.close()
    return rates


async def _raw(wire: Wire, key: str) -> None:
    first = "-"
    while page := await wire.execute(pack("XRANGE", key, first, "+", "COUNT", PAGE)):
        for _, fields in page:
            orjson.loads(fields[1])
        first = "(" + page[-1][0].decode()


def rows(medians: dict[str, list[float]], rates: dict[str, list[float]]) -> list[Ratio]:
    """All ratios."""
    targets = {1: 1.3, 1_000: 2.0, 10_000: 2.0}
    found = [
        ratio("tail p50, µs", medians, f"ours, {count:,}", "bare, 1", at_most=targets.get(count))
        for count in FOLLOWERS
        if f"ours, {count:,}" in medians
    ]
    if f"ours, {BARE:,}" in medians:
        found.append(ratio("tail p50, µs", medians, f"ours, {BARE:,}", f"bare, {BARE:,}"))
    return [*found, ratio("catch-up, events/s", rates, "follow", "XRANGE + orjson", at_least=0.5)]


def print_costs(costs: Sequence[Cost]) -> None:
    """What following costs."""
    table = Table(title="tail: followers of as many conversations")
    for column in ("contender, followers", "p50, µs", "p99, µs", "connections", "server CPU, µs an event"):
        table.add_column(column)
    for cost in costs:
        table.add_row(cost.name, f"{cost.p50:,.0f}", f"{cost.p99:,.0f}", str(cost.connections), f"{cost.cpu:,.0f}")
    Console(width=160).print(table)


async def main() -> None:
    options = parser(__doc__)
    options.add_argument("--most", type=int, default=FOLLOWERS[-1], help="followers at most")
    arguments = options.parse_args()
    async with measured_server(arguments.url) as (url, server):
        medians, costs = await tails(url, arguments.most)
        rates = await catch_up(url)
        print_costs(costs)
        report(rows(medians, rates), "follow", server)


if __name__ == "__main__":
    asyncio.run(main())
