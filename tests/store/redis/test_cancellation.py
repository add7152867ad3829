"""Cancelling a caller leaves an append whole or undone, and the connection in step."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine
from random import Random
from typing import Any, TypeVar

import anyio
import orjson
import pytest

from eventlog.identity import LogId
from eventlog.store.conformance.suite import LOG, notes, put
from eventlog.store.redis.store import RedisStore

pytestmark = pytest.mark.anyio
Result = TypeVar("Result")


async def cut_short(work: Coroutine[Any, Any, Result], random: Random) -> Result | None:
    """Cancel the work at a random point: after so many steps of the loop, or so little time."""
    if random.random() < 0.5:
        with anyio.move_on_after(random.random() * 0.0006):
            return await work
        return None
    task = asyncio.ensure_future(work)
    for _ in range(random.randrange(9)):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    return None if task.cancelled() else task.result()


async def test_1000_cancelled_appends_are_each_wholly_there_or_not_at_all(store: RedisStore) -> None:
    random = Random(20_301)
    told = {}
    for number in range(250):
        work = (cut_short(put(store, notes(*range(3)), f"op-{number}-{index}"), random) for index in range(4))
        for index, outcome in enumerate(await asyncio.gather(*work)):
            if outcome is not None:
                told[f"op-{number}-{index}"] = outcome
        if number % 10 == 0:
            sound = await put(store, notes(number), f"sound-{number}")
            assert (await store.read(LOG, sound.first, None, 10))[0].stamp == sound.cursor.stamp
    entries = await store.read(LOG, 1, None, 10_000)
    assert [entry.version for entry in entries] == list(range(1, len(entries) + 1))
    assert (await store.head(LOG)).last == LOG.cursor(len(entries), entries[-1].stamp)
    written = defaultdict(list)
    for entry in entries:
        operation, _, index = orjson.loads(entry.document)["id"].rpartition(".")
        written[operation].append((entry.version, int(index), entry.stamp))
    for operation, events in written.items():
        count = 1 if operation.startswith("sound") else 3
        first, _, stamp = events[0]
        assert events == [(first + index, index, stamp) for index in range(count)], operation
    for operation, outcome in told.items():
        assert [version for version, _, _ in written[operation]] == list(outcome.versions)
    assert 100 < len(told) < 900, "the cancels came too early or too late to prove anything"
    assert len(written) - 25 > len(told), "no append went through although its caller was cancelled"


async def test_a_cancelled_append_is_found_out_by_its_retry(store: RedisStore) -> None:
    random = Random(20_302)
    for number in range(200):
        await cut_short(put(store, notes(number, number), f"op-{number}"), random)
        outcome = await put(store, notes(number, number), f"op-{number}")
        assert (outcome.first, outcome.cursor.version) == (2 * number + 1, 2 * number + 2)


async def test_after_5000_cancelled_reads_each_reply_still_goes_to_who_asked(store: RedisStore) -> None:
    random = Random(20_303)
    logs = [LogId("acme", f"c{number}") for number in range(10)]
    for number, log in enumerate(logs):
        await put(store, notes(*range(number + 1)), "op-1", log=log)
    finished = 0
    for _ in range(625):
        picked = [random.randrange(10) for _ in range(8)]
        reads = (cut_short(store.read(logs[number], 1, None, 100), random) for number in picked[:4])
        heads = (cut_short(store.head(logs[number]), random) for number in picked[4:])
        entries, found = await asyncio.gather(asyncio.gather(*reads), asyncio.gather(*heads))
        for number, page in zip(picked[:4], entries, strict=True):
            assert page is None or len(page) == number + 1
            finished += page is not None
        for number, head in zip(picked[4:], found, strict=True):
            assert head is None or head.last.version == number + 1
            finished += head is not None
        assert len(await store.read(logs[picked[0]], 1, None, 100)) == picked[0] + 1
    assert 500 < finished < 4_500, "the cancels came too early or too late to prove anything"
