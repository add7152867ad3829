"""A way to the server that loses requests and replies: a deletion or a trim has its effect once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from uuid import uuid4

import pytest

from eventlog.errors import ConversationDeleted, OutcomeUnknown
from eventlog.identity import LogId
from eventlog.store.conformance.suite import notes, put
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.store import RedisStore
from tests.store.redis.proxy import Fate, Proxy

pytestmark = pytest.mark.anyio
LOG = LogId("t", "a")


@asynccontextmanager
async def connected(url: str, keys: Keys, *, deadline: float) -> AsyncIterator[RedisStore]:
    store = await RedisStore.connect(url, namespace=keys.namespace, partitions=1, deadline=deadline)
    yield store
    await store.close()


@pytest.fixture
def keys() -> Keys:
    return Keys(f"t{uuid4().hex[:12]}", 1)


@pytest.fixture
async def proxy(server: str) -> AsyncIterator[Proxy]:
    async with Proxy(server) as opened:
        yield opened


@pytest.fixture
async def store(server: str, keys: Keys) -> AsyncIterator[RedisStore]:
    async with connected(server, keys, deadline=10) as opened:
        yield opened


class Scripts:
    """The fate of the next ``times`` chunks that hold a script; all else passes."""

    def __init__(self, fate: Fate, times: int) -> None:
        self._fate = fate
        self.left = times

    def __call__(self, chunk: bytes) -> Fate:
        if self.left and (b"EVALSHA" in chunk or b"EVAL\r\n" in chunk):
            self.left -= 1
            return self._fate
        return Fate.PASS


@pytest.mark.parametrize("fate", [Fate.CUT_REPLY, Fate.CUT_REQUEST])
async def test_a_deletion_whose_reply_is_lost_is_made_once(
    proxy: Proxy, store: RedisStore, keys: Keys, fate: Fate
) -> None:
    async with connected(proxy.url, keys, deadline=10) as lossy:
        await put(lossy, notes(1, 2), "op-1", log=LOG)
        await store.delete(LogId("t", "never"))  # so that the server knows the script
        for options in ({}, {"force": True}):
            proxy.fate = Scripts(fate, 3)
            assert await lossy.delete(LOG, **options)
        proxy.fate = Scripts(fate, 2)
        assert await lossy.delete(LOG, idle_since_ms=1 << 45, why="expired")
        assert not await lossy.delete(LogId("t", "never"))
    assert [(entry.first, entry.events) for entry in await store.read_feed(0, 1, 10)] == [(1, 2), (3, 0)]
    assert (await store.head(LOG)).why == "deleted"


async def test_deletions_and_appends_over_a_lossy_way_are_each_made_once_or_refused(
    proxy: Proxy, store: RedisStore, keys: Keys
) -> None:
    random = Random(41_117)
    logs = [LogId("t", f"c{number}") for number in range(12)]
    async with connected(proxy.url, keys, deadline=20) as lossy:
        fates = [Fate.PASS] * 14 + [Fate.CUT_REPLY] * 4 + [Fate.CUT_REQUEST] * 2
        proxy.fate = lambda _: random.choice(fates)
        refused = 0

        async def append(log: LogId, number: int) -> None:
            nonlocal refused
            try:
                await put(lossy, notes(number), f"op-{number}", log=log)
            except ConversationDeleted:
                refused += 1

        for number in range(10):
            work = [append(log, number) for log in logs]
            if number in (4, 6):
                work += [lossy.delete(log) for log in logs[:8]]  # type: ignore[misc]
                random.shuffle(work)
            await asyncio.gather(*work)
        assert proxy.connections > 5, "too little was lost to prove anything"
        await lossy.close()
    assert refused >= 8 * 5
    feed = await store.read_feed(0, 1, 1_000)
    assert [entry.seq for entry in feed] == list(range(1, len(feed) + 1))
    for index, log in enumerate(logs):
        own, head = [entry for entry in feed if entry.log == log], await store.head(log)
        assert [entry.first for entry in own] == list(range(1, len(own) + 1)), "an append was named twice, or not"
        assert [entry.is_deletion for entry in own] == [False] * (len(own) - 1) + [index < 8]
        assert head.deleted == (index < 8)
        assert head.last.version == len(own) - head.deleted
        assert len(await store.read(log, 1, None, 100)) == (0 if head.deleted else 10)


@pytest.mark.parametrize("fate", [Fate.CUT_REPLY, Fate.CUT_REQUEST])
async def test_a_trim_whose_reply_is_lost_trims_no_further(
    proxy: Proxy, store: RedisStore, keys: Keys, fate: Fate
) -> None:
    for number in range(10):
        await put(store, number, f"op-{number}", log=LOG)
    stamp = (await store.read_feed(0, 5, 1))[0].stamp
    await store.trim_feed(0, 1)  # so that the server knows the script
    async with connected(proxy.url, keys, deadline=10) as lossy:
        proxy.fate = Scripts(fate, 3)
        removed = await lossy.trim_feed(0, 6)
        assert removed == (0 if fate is Fate.CUT_REPLY else 5), "what went with the lost reply is not counted"
    assert await store.feed_base(0) == (5, stamp, 6)
    assert [entry.seq for entry in await store.read_feed(0, 1, 100)] == [6, 7, 8, 9, 10]


async def test_a_long_feed_is_trimmed_in_steps(store: RedisStore, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventlog.store.redis.store._TRIMMED_AT_ONCE", 3)
    for number in range(11):
        await put(store, number, f"op-{number}", log=LOG)
    assert await store.trim_feed(0, 9) == 8
    assert [entry.seq for entry in await store.read_feed(0, 1, 100)] == [9, 10, 11]
    assert await store.trim_feed(0, 100) == 2
    assert (await store.feed_base(0)).seq == 10


async def test_a_deletion_that_no_replica_holds_is_not_known_to_last(server: str, keys: Keys) -> None:
    async with connected(server, keys, deadline=10) as plain:
        await put(plain, 1, "op-1", log=LOG)
    store = await RedisStore.connect(server, namespace=keys.namespace, deadline=2, replicas=1)
    try:
        assert not await store.delete(LogId("t", "never")), "a refusal stands, whoever holds what was written"
        for _ in range(2):
            with pytest.raises(OutcomeUnknown, match="is deleted on the primary, but 0 of 1 replicas hold it"):
                await store.delete(LOG)
        assert (await store.head(LOG)).deleted
    finally:
        await store.close()
