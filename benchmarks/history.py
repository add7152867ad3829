"""Loading histories: with the view and by folding the log, against a bare list and sessions of peers.

The bare contender keeps the same messages in a list: LRANGE and orjson. The peers hold the same messages in
their own shapes and load them through their own sessions.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

import orjson

from benchmarks.bench import Bench
from benchmarks.measure import Contender, Operation, latency
from benchmarks.peers import PROVIDER, SESSION, as_framework, as_items, history_provider, redis_session
from benchmarks.ratio import Ratio, ratio
from benchmarks.workload import EVENTS_A_TURN, MESSAGES_A_TURN, keep_history, post, record
from eventlog import Conversation
from projections import history

WITH_VIEW, BY_FOLD, LIST = "history.load with the view", "history.load by the fold", "bare LRANGE + orjson"
SMALL, LARGE, NEWEST = 100, 100_000, 50


async def measure(bench: Bench) -> list[Ratio]:
    """All rows."""
    rows = await of_messages(bench, bench.size.of(1_000, 4 * MESSAGES_A_TURN), each=bench.size.of(15, 3))
    rows += await of_events(bench, EVENTS_A_TURN, each=bench.size.of(100, 5))
    rows += await of_events(bench, bench.size.of(LARGE, 400), each=1)
    return rows + await newest(bench)


async def of_messages(bench: Bench, messages: int, *, each: int) -> list[Ratio]:
    """Runs with tools, against everybody who keeps the same messages."""
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(bench.log())
        viewed = log.tenant("bench").conversation("viewed")
        folded = (await stack.enter_async_context(bench.log())).tenant("bench").conversation("folded")
        client = await stack.enter_async_context(bench.client())
        decoding = await stack.enter_async_context(bench.client(decode_responses=True))
        for conversation in (viewed, folded):
            await record(conversation, messages // MESSAGES_A_TURN)
        await keep_history(log)
        loaded = (await history.load(viewed)).messages
        key, name = bench.name(), f"load {len(loaded):,} messages"
        await client.rpush(key, *(orjson.dumps(message.as_json()) for message in loaded))
        session, provider = redis_session(client, bench.name()), history_provider(decoding, bench.name())
        await session.add_items(as_items(loaded))
        await provider.save_messages("bench", as_framework(loaded))
        assert len(await session.get_items()) == len(await provider.get_messages("bench")) == len(loaded)

        async def bare(first: int = 0) -> object:
            return [orjson.loads(document) for document in await client.lrange(key, first, -1)]

        contenders = [
            Contender(WITH_VIEW, _load(viewed)),
            Contender(BY_FOLD, _load(folded)),
            Contender(LIST, bare),
            Contender(SESSION, session.get_items),
            Contender(PROVIDER, lambda: provider.get_messages("bench")),
        ]
        times = await latency(contenders, rounds=bench.size.rounds, each=each)
        contenders = [
            Contender(WITH_VIEW, _load(viewed, NEWEST)),
            Contender(BY_FOLD, _load(folded, NEWEST)),
            Contender(LIST, lambda: bare(-NEWEST)),
            Contender(SESSION, lambda: session.get_items(NEWEST)),
        ]
        some = await latency(contenders, rounds=bench.size.rounds, each=each)
    faster, last = f"{name}, times as fast (µs)", f"load the newest {NEWEST} of {len(loaded):,} messages, µs"
    return [
        ratio(f"{name}, µs", times, WITH_VIEW, LIST, at_most=2),
        ratio(f"{name}, µs", times, BY_FOLD, LIST, at_most=4),
        ratio(faster, times, WITH_VIEW, SESSION, at_least=1, times_as_fast=True),
        ratio(faster, times, WITH_VIEW, PROVIDER, at_least=3, times_as_fast=True),
        ratio(faster, times, BY_FOLD, SESSION, times_as_fast=True),
        ratio(faster, times, BY_FOLD, PROVIDER, times_as_fast=True),
        ratio(last, some, WITH_VIEW, LIST),
        ratio(last, some, BY_FOLD, LIST),
        ratio(last, some, WITH_VIEW, SESSION),
    ]


async def of_events(bench: Bench, events: int, *, each: int) -> list[Ratio]:
    """Messages posted one an event, whole and the newest 50."""
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(bench.log())
        viewed = log.tenant("bench").conversation("viewed")
        folded = (await stack.enter_async_context(bench.log())).tenant("bench").conversation("folded")
        client = await stack.enter_async_context(bench.client())
        for conversation in (viewed, folded):
            await post(conversation, events)
        await keep_history(log)
        key = bench.name()
        loaded = (await history.load(viewed)).messages
        for first in range(0, len(loaded), 1_000):
            await client.rpush(key, *(orjson.dumps(one.as_json()) for one in loaded[first : first + 1_000]))
        del loaded

        async def bare() -> object:
            return [orjson.loads(document) for document in await client.lrange(key, 0, -1)]

        async def newest() -> object:
            return [orjson.loads(document) for document in await client.lrange(key, -NEWEST, -1)]

        contenders = [
            Contender(WITH_VIEW, _load(viewed)),
            Contender(BY_FOLD, _load(folded)),
            Contender(LIST, bare),
        ]
        whole = await latency(contenders, rounds=bench.size.rounds, each=each)
        contenders = [
            Contender(WITH_VIEW, _load(viewed, NEWEST)),
            Contender(BY_FOLD, _load(folded, NEWEST)),
            Contender(LIST, newest),
        ]
        some = await latency(contenders, rounds=bench.size.rounds, each=each)
    return [
        ratio(f"{work} of {events:,} events, µs", times, contender, LIST)
        for work, times in (("load all", whole), (f"load the newest {NEWEST}", some))
        for contender in (WITH_VIEW, BY_FOLD)
    ]


async def newest(bench: Bench) -> list[Ratio]:
    """``last=50`` of a long conversation against that of a short one, with the view."""
    async with bench.log() as log:
        sizes = (SMALL, bench.size.of(LARGE, 2 * SMALL))
        chats = [log.tenant("bench").conversation(str(size)) for size in sizes]
        for chat, size in zip(chats, sizes, strict=True):
            await post(chat, size)
        await keep_history(log)
        small, large = (
            Contender(f"of {size:,} events", _load(chat, NEWEST)) for chat, size in zip(chats, sizes, strict=True)
        )
        times = await latency([large, small], rounds=bench.size.rounds, each=bench.size.of(50, 5))
    return [ratio(f"history.load(last={NEWEST}) with the view, µs", times, large.name, small.name, at_most=1.3)]


def _load(conversation: Conversation, last: int | None = None) -> Operation:
    return lambda: history.load(conversation, last=last)
