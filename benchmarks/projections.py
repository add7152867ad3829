"""Views: loading from them, keeping them up to date, rebuilding them, and what they take.

    python -m benchmarks.projections [--url URL] [--events 100000]

Raw reading is XRANGE in pages of 500 with orjson, 8 conversations side by side: what any rebuild has
to do at least.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import orjson
import redis.asyncio

from benchmarks.history import record
from benchmarks.measure import Contender, Ratio, latency, measured_server, parser, ratio, report
from eventlog import Conversation, Draft, EventLog
from eventlog.identity import new_stamp
from projections import history
from projections.live import Live
from projections.projection import Projection
from projections.projector import Projector
from projections.views.directory import DIRECTORY
from projections.views.history import HISTORY
from projections.views.open_calls import OPEN_CALLS
from projections.views.runs import RUNS
from projections.views.usage import USAGE

VIEWS: tuple[Projection[Any], ...] = (HISTORY, DIRECTORY, RUNS, OPEN_CALLS, USAGE)
ROUNDS = 5
_LARGE, _SMALL = 100_000, 100
_EACH = 100
"""Conversations of the rebuilds."""


class Bench:
    """One log with a bare client beside it."""

    def __init__(self, log: EventLog, client: redis.asyncio.Redis) -> None:
        self.log = log
        self.client = client
        self.live = Live.of(log.store)
        self.rows: list[Ratio] = []

    async def loading(self) -> None:
        """1,000 messages with the view and by the fold, against a bare list of the same; and the newest 50."""
        chat = self.log.tenant("loading").conversation("1000")
        await record(chat)
        await Projector(self.log, [HISTORY]).catch_up()
        last = (await chat.head()).last.version
        messages = (await history.load(chat)).messages
        await self.client.rpush("bare", *(orjson.dumps(message.as_json()) for message in messages))

        async def bare() -> object:
            return [orjson.loads(document) for document in await self.client.lrange("bare", 0, -1)]

        async def newest() -> object:
            return [orjson.loads(document) for document in await self.client.lrange("bare", -50, -1)]

        with_view = Contender("history.load with the view", lambda: history.load(chat))
        by_fold = Contender("history.load by the fold", lambda: history.load(chat, at=last))
        theirs = Contender("bare LRANGE + orjson", bare)
        name = f"load {len(messages):,} messages, µs"
        times = await latency([with_view, by_fold, theirs], rounds=7, each=15)
        self.rows.append(ratio(name, times, with_view.name, theirs.name, at_most=2))
        self.rows.append(ratio(name, times, by_fold.name, theirs.name, at_most=4))
        some = Contender("history.load(last=50)", lambda: history.load(chat, last=50))
        tail = Contender("bare LRANGE -50 + orjson", newest)
        times = await latency([some, tail], rounds=7, each=50)
        self.rows.append(ratio("load the newest 50, µs", times, some.name, tail.name))

    async def newest(self) -> None:
        """``last=50`` of a long conversation against that of a short one, with the view."""
        chats = [self.log.tenant("newest").conversation(str(size)) for size in (_SMALL, _LARGE)]
        for chat, size in zip(chats, (_SMALL, _LARGE), strict=True):
            await fill(chat, size)
        await Projector(self.log, [HISTORY]).catch_up()
        small, large = (Contender(f"of {chat.id} events", _load_last(chat)) for chat in chats)
        times = await latency([large, small], rounds=7, each=50)
        self.rows.append(ratio("history.load(last=50) with the view, µs", times, large.name, small.name, at_most=1.3))

    async def rates(self, events: int) -> None:
        """Events a second of following and rebuilding, against reading the same logs raw."""
        chats = [self.log.tenant("rates").conversation(str(index)) for index in range(_EACH)]
        projector = Projector(self.log, [HISTORY])
        await projector.catch_up()
        for chat in chats:
            for _ in range(max(1, events // _EACH // 2_500)):
                await record(chat)
        logs = [chat for chat in chats if (await chat.head()).last.version]
        total = sum([(await chat.head()).last.version for chat in logs])
        seconds = await _seconds(projector.catch_up)
        raw, rebuilt = list[float](), list[float]()
        for _ in range(ROUNDS):
            raw.append(total / await _seconds(lambda: self._raw(logs)))
            rebuilt.append(total / await _seconds(lambda: projector.rebuild(HISTORY.name)))
        found = {"raw": raw, "rebuild": rebuilt, "apply": [total / seconds] * ROUNDS}
        name = f"{total:,} events, events/s"
        self.rows.append(ratio(f"rebuild history of {name}", found, "rebuild", "raw", at_least=0.5))
        self.rows.append(ratio(f"apply to history {name}", found, "apply", "raw"))

    async def _raw(self, chats: list[Conversation]) -> None:
        limit = asyncio.Semaphore(8)

        async def one(chat: Conversation) -> None:
            key, start = self.log.store._keys.of_log(chat.log).log, "-"  # type: ignore[attr-defined]
            async with limit:
                while page := await self.client.xrange(key, start, "+", 500):
                    for _, fields in page:
                        orjson.loads(fields[b"e"])
                    start = f"({page[-1][0].decode()}"

        await asyncio.gather(*(one(chat) for chat in chats))

    async def memory(self) -> None:
        """Bytes of the log and of each view, of 50 conversations of 10 turns at 1 KB a message."""
        tenant = self.log.tenant("memory")
        own = 0
        chats = [tenant.conversation(str(index)) for index in range(50)]
        for chat in chats:
            await record(chat, 10, 1_000)
            own += sum(len(entry.document) for entry in await self.log.store.read(chat.log, 1, None, 1_000))
        await Projector(self.log, VIEWS).catch_up()
        taken = 0
        for chat in chats:
            taken += await self.client.memory_usage(self.log.store._keys.of_log(chat.log).log)  # type: ignore[attr-defined]
        self._memory("log", taken, own, at_most=1.10)
        for projection in VIEWS:
            at_most = 0.1 if projection is HISTORY else None
            size = await self.live.views.size(await self.live.view(projection))
            self._memory(f"view {projection.name}", size, own, at_most=at_most)

    def _memory(self, name: str, taken: float, own: float, *, at_most: float | None) -> None:
        row = ratio(f"memory: {name}, bytes", {name: [taken], "events": [own]}, name, "events", at_most=at_most)
        self.rows.append(row._replace(against="the events' own bytes"))


async def fill(chat: Conversation, events: int) -> None:
    """Events of about 1 KB, a run of 20 messages at a time: posted, in one append each."""
    for first in range(0, events, 20):
        await chat.append(
            *(
                Draft(
                    "message-added",
                    {
                        "message_id": secrets.token_hex(8),
                        "role": ("user", "assistant")[index % 2],
                        "parts": [{"type": "text", "content": secrets.token_hex(400)}],
                    },
                )
                for index in range(first, min(first + 20, events))
            )
        )


def _load_last(chat: Conversation) -> Callable[[], Awaitable[object]]:
    return lambda: history.load(chat, last=50)


async def _seconds(work: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


async def measure(url: str, events: int) -> list[Ratio]:
    """All rows."""
    rows: list[Ratio] = []
    async with AsyncExitStack() as stack:
        client = redis.asyncio.Redis.from_url(url)
        stack.push_async_callback(client.aclose)
        for work in ("memory", "loading", "newest", "rates"):
            async with EventLog.open(url, namespace=f"bench-{new_stamp():x}") as log:
                bench = Bench(log, client)
                await (bench.rates(events) if work == "rates" else getattr(bench, work)())
                rows += bench.rows
            await client.delete("bare")
    return rows


async def main() -> None:
    options = parser(__doc__)
    options.add_argument("--events", type=int, default=100_000, help="events that are rebuilt")
    arguments = options.parse_args()
    async with measured_server(arguments.url) as (url, server):
        report(await measure(url, arguments.events), "projections", server)


if __name__ == "__main__":
    asyncio.run(main())
