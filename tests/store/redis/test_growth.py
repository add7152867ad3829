"""What grows with a log, and what does not."""

from __future__ import annotations

from statistics import median
from time import perf_counter

import pytest
from redis.asyncio import Redis

from eventlog.identity import LogId
from eventlog.store.conformance.suite import LOG, going_on, notes, put, start
from eventlog.store.port import OPERATION_WINDOW
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.store import RedisStore

pytestmark = pytest.mark.anyio


async def timed(store: RedisStore, log: LogId, operation: str) -> float:
    begin = perf_counter()
    await put(store, notes("x" * 500), operation, log=log)
    return perf_counter() - begin


async def test_an_append_takes_as_long_after_10000_events_as_after_10(store: RedisStore) -> None:
    long = LogId("acme", "long")
    for number in range(20):
        await put(store, notes(*["x" * 500] * 500), f"seed-{number}", log=long)
    ratios = []
    for attempt in range(3):
        brief, grown = [], []
        for number in range(40):
            short = LogId("acme", f"short-{attempt}-{number}")
            await put(store, notes(*["x" * 500] * 10), "seed", log=short)
            for index in range(10):
                brief.append(await timed(store, short, f"op-{index}"))
                grown.append(await timed(store, long, f"op-{attempt}-{number}-{index}"))
        ratios.append(median(grown) / median(brief))
        if ratios[-1] <= 1.3:
            return
    pytest.fail(f"an append to the longer log took {ratios} times as long")


async def test_the_record_of_operations_stays_bounded(store: RedisStore, client: Redis, keys: Keys) -> None:
    where = keys.of_log(LOG)
    most = 0
    for number in range(3_000):
        await put(store, number, f"op-{number}")
        if number % 50 == 0:
            most = max(most, await client.hlen(where.ops) + await client.hlen(where.old_ops))
    assert OPERATION_WINDOW <= most <= 2 * OPERATION_WINDOW
    assert await client.hlen(where.head) < 20


async def test_a_closed_run_leaves_nothing_in_the_head(store: RedisStore, client: Redis, keys: Keys) -> None:
    await put(store, 0, "op-0")
    sizes = set()
    for number in range(20):
        run = f"run-{number}"
        await start(store, run)
        await put(store, 1, f"op-{run}", claim=going_on(run, answers=(7, 8, 9)))
        await put(store, 2, f"end-{run}", claim=going_on(run, answers=(10,), closes=True))
        sizes.add(await client.hlen(keys.of_log(LOG).head))
    assert len(sizes) == 1
