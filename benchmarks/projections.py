"""Views: keeping them up to date, rebuilding them, and what they take.

Raw reading is XRANGE in pages of 500 with orjson, 8 conversations side by side: what any rebuild has
to do at least.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import orjson

from benchmarks.bench import Bench
from benchmarks.measure import seconds
from benchmarks.ratio import Ratio, ratio
from benchmarks.workload import post, record_all
from eventlog import Conversation, EventLog
from eventlog.store.redis.store import RedisStore
from projections.live import Live
from projections.projection import Projection
from projections.projector import Projector
from projections.views.directory import DIRECTORY
from projections.views.history import HISTORY
from projections.views.open_calls import OPEN_CALLS
from projections.views.runs import RUNS
from projections.views.usage import USAGE

VIEWS: tuple[Projection[Any], ...] = (HISTORY, DIRECTORY, RUNS, OPEN_CALLS, USAGE)
CHATS, TURNS = 14, 250
"""Conversations that are applied in one round, and turns of each: 2,500 events."""


async def measure(bench: Bench) -> list[Ratio]:
    """All rows."""
    return [*await rates(bench), *await memory(bench, posted=True), *await memory(bench, posted=False)]


async def rates(bench: Bench) -> list[Ratio]:
    """Events a second of applying and rebuilding, against reading the same logs raw."""
    found: dict[str, list[float]] = {"apply": [], "raw, the same": [], "rebuild": [], "raw": []}
    async with bench.client() as client, bench.log() as log:
        projector = Projector(log, [HISTORY])
        await projector.catch_up()
        chats: list[Conversation] = []
        new_events = 0
        for step in range(bench.size.rounds):
            new = [log.tenant("bench").conversation(f"{step}-{index}") for index in range(CHATS)]
            await record_all(new, bench.size.of(TURNS, 5))
            new_events = await _events(new)
            found["apply"].append(new_events / await seconds(projector.catch_up))
            found["raw, the same"].append(new_events / await seconds(partial(_raw, log, client, new)))
            chats += new
        events = await _events(chats)
        for _ in range(bench.size.rounds):
            found["rebuild"].append(events / await seconds(lambda: projector.rebuild(HISTORY.name)))
            found["raw"].append(events / await seconds(lambda: _raw(log, client, chats)))
    return [
        ratio(f"rebuild history of {events:,} events, events/s", found, "rebuild", "raw", at_least=0.5)._replace(
            against="XRANGE + orjson of the same logs"
        ),
        ratio(f"apply to history {new_events:,} events, events/s", found, "apply", "raw, the same")._replace(
            against="XRANGE + orjson of the same logs"
        ),
    ]


async def _events(chats: Sequence[Conversation]) -> int:
    return sum([(await chat.head()).last.version for chat in chats])


async def _raw(log: EventLog, client: Any, chats: Sequence[Conversation]) -> None:
    limit = asyncio.Semaphore(8)

    async def one(chat: Conversation) -> None:
        key, start = _key(log, chat), "-"
        async with limit:
            while page := await client.xrange(key, start, "+", 500):
                for _, fields in page:
                    orjson.loads(fields[b"e"])
                start = f"({page[-1][0].decode()}"

    await asyncio.gather(*(one(chat) for chat in chats))


def _key(log: EventLog, chat: Conversation) -> str:
    assert isinstance(log.store, RedisStore)
    return log.store._keys.of_log(chat.log).log


async def memory(bench: Bench, *, posted: bool) -> list[Ratio]:
    """Bytes of the logs and of each view against the events' own.

    Of 50 conversations: either of 120 messages of 1 KB, one an event; or of 10 turns with tools, 100
    events of which 40 carry 1 KB.
    """
    async with bench.client() as client, bench.log() as log:
        chats = [log.tenant("bench").conversation(str(index)) for index in range(bench.size.of(50, 5))]
        if posted:
            await asyncio.gather(*(post(chat, 120) for chat in chats))
        else:
            await record_all(chats, 10, 1_000)
        own = taken = 0
        for chat in chats:
            own += sum(len(entry.document) for entry in await log.store.read(chat.log, 1, None, 1_000))
            taken += await client.memory_usage(_key(log, chat), samples=0)
        views = (HISTORY,) if posted else VIEWS
        await Projector(log, views).catch_up()
        live = Live.of(log.store)
        sizes = {f"view {view.name}": await live.views.size(await live.view(view)) for view in views}
    work = "memory of 120 messages of 1 KB, bytes" if posted else "memory of 10 turns with tools, bytes"
    targets = {"log": 1.10, f"view {HISTORY.name}": 0.1}
    against = "the events' own bytes"
    return [
        ratio(work, {name: [size], against: [own]}, name, against, at_most=targets.get(name))
        for name, size in {"log": taken, **sizes}.items()
    ]
