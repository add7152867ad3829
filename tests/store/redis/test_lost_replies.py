"""A way to the server that loses requests and replies: every operation is there once, or its outcome is said."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import AsyncIterator
from random import Random

import orjson
import pytest
from redis.asyncio import Redis

from eventlog.errors import EventLogError, OutcomeUnknown, ServerUnavailable
from eventlog.store.conformance.suite import LOG, notes, put
from eventlog.store.port import NONE, OPERATION_WINDOW
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.store import RedisStore
from tests.store.redis.conftest import connected
from tests.store.redis.proxy import Fate, Proxy

pytestmark = pytest.mark.anyio


@pytest.fixture
async def proxy(server: str) -> AsyncIterator[Proxy]:
    async with Proxy(server) as opened:
        yield opened


class Appends:
    """The fate of the next ``times`` chunks that hold an append; all else passes."""

    def __init__(self, fate: Fate, times: int = 1_000_000) -> None:
        self._fate = fate
        self.left = times

    def __call__(self, chunk: bytes) -> Fate:
        if self.left and (b"EVALSHA" in chunk or b"EVAL\r\n" in chunk):
            self.left -= 1
            return self._fate
        return Fate.PASS


async def test_with_replies_lost_at_random_every_operation_is_there_once(
    proxy: Proxy, store: RedisStore, keys: Keys
) -> None:
    random = Random(20_304)
    async with connected(proxy.url, keys, deadline=20) as lossy:
        fates = [Fate.PASS] * 14 + [Fate.CUT_REPLY] * 4 + [Fate.CUT_REQUEST] * 2
        proxy.fate = lambda _: random.choice(fates)
        told = {}
        for number in range(50):
            for outcome in await asyncio.gather(
                *(put(lossy, notes(*range(3)), f"op-{number}-{index}") for index in range(5))
            ):
                told[outcome.operation_id] = outcome
        await lossy.close()
        assert proxy.connections > 10, "too little was lost to prove anything"
        entries = await store.read(LOG, 1, None, 10_000)
        assert [entry.version for entry in entries] == list(range(1, 751))
        for operation, outcome in told.items():
            own = [entries[version - 1] for version in outcome.versions]
            assert [orjson.loads(entry.document)["id"] for entry in own] == [
                f"{operation}.{index}" for index in range(3)
            ]
            assert {entry.stamp for entry in own} == {outcome.cursor.stamp}


async def test_a_lost_reply_is_made_good_unseen(proxy: Proxy, store: RedisStore, keys: Keys) -> None:
    async with connected(proxy.url, keys, deadline=10) as lossy:
        proxy.fate = Appends(Fate.CUT_REPLY, 3)
        outcome = await put(lossy, notes(1, 2), "op-1", expected=NONE)
        assert (outcome.first, outcome.cursor.version) == (1, 2)
        assert (await store.head(LOG)).last == outcome.cursor


async def test_reads_are_asked_again(proxy: Proxy, store: RedisStore, keys: Keys) -> None:
    await put(store, 1, "op-1")
    async with connected(proxy.url, keys, deadline=10) as lossy:
        random = Random(20_305)
        asked = re.compile(rb"XRANGE|HGETALL")
        fates = [Fate.PASS, Fate.PASS, Fate.CUT_REPLY, Fate.CUT_REQUEST]
        proxy.fate = lambda chunk: random.choice(fates) if asked.search(chunk) else Fate.PASS
        for _ in range(10):
            assert len(await lossy.read(LOG, 1, None, 10)) == 1
            assert (await lossy.head(LOG)).last.version == 1


async def test_an_outcome_that_cannot_be_learnt_is_said_and_a_second_append_learns_it(
    proxy: Proxy, store: RedisStore, keys: Keys
) -> None:
    async with connected(proxy.url, keys, deadline=0.3) as lossy:
        proxy.fate = Appends(Fate.CUT_REPLY)
        with pytest.raises(OutcomeUnknown) as unknown:
            await put(lossy, notes(1, 2), "op-1")
        assert unknown.value.operation_id == "op-1"
        assert str(unknown.value).startswith("operation 'op-1' was sent and its reply is lost (")
        assert str(unknown.value).endswith("append it again with the same operation id to learn its outcome")
        proxy.fate = lambda _: Fate.PASS
        outcome = await put(lossy, notes(1, 2), "op-1")
        assert (outcome.first, outcome.duplicate) == (1, True)
        assert len(await store.read(LOG, 1, None, 10)) == 2


async def test_an_append_that_never_arrived_is_made_by_the_second(proxy: Proxy, store: RedisStore, keys: Keys) -> None:
    async with connected(proxy.url, keys, deadline=0.3) as lossy:
        proxy.fate = Appends(Fate.CUT_REQUEST)
        with pytest.raises(OutcomeUnknown) as unknown:
            await put(lossy, 1, "op-1")
        assert (await store.head(LOG)).last.version == 0
        proxy.fate = lambda _: Fate.PASS
        outcome = await put(lossy, 1, unknown.value.operation_id)
        assert (outcome.first, outcome.duplicate) == (1, False)


async def test_a_retry_whose_record_went_in_between_is_an_unknown_outcome(
    proxy: Proxy, store: RedisStore, keys: Keys
) -> None:
    first = await put(store, 0, "op-0")
    async with connected(proxy.url, keys, deadline=20) as lossy:
        busy = asyncio.Event()

        def lose_then_refuse(chunk: bytes) -> Fate:
            if b"EVALSHA" not in chunk:
                return Fate.PASS
            if not busy.is_set():
                busy.set()
                return Fate.CUT_REPLY
            return Fate.PASS if done else Fate.CUT_REQUEST

        done = False
        proxy.fate = lose_then_refuse
        attempt = asyncio.ensure_future(put(lossy, 1, "op-1", cursor=first.cursor))
        await busy.wait()
        for number in range(2 * OPERATION_WINDOW + 8):
            await put(store, number, f"other-{number}")
        done = True
        with pytest.raises(OutcomeUnknown, match="cannot be learnt: the record of operations no longer reaches back"):
            await attempt


async def test_a_refusal_of_the_retry_does_not_say_that_the_first_try_wrote_nothing(
    own_server: str, own_store: RedisStore, own_client: Redis, keys: Keys
) -> None:
    """A server out of memory refuses the retry before the script can look at its records."""
    async with Proxy(own_server) as proxy, connected(proxy.url, keys, deadline=10) as lossy:
        await put(lossy, 0, "op-0")
        full = asyncio.Event()
        sent: list[bytes] = []

        def lose_the_first_reply(chunk: bytes) -> Fate:
            if b"EVALSHA" not in chunk:
                return Fate.PASS
            sent.append(chunk)
            if len(sent) == 1:
                return Fate.CUT_REPLY
            return Fate.PASS if full.is_set() else Fate.CUT_REQUEST

        proxy.fate = lose_the_first_reply
        attempt = asyncio.ensure_future(put(lossy, 1, "op-1"))
        async with asyncio.timeout(5):
            while (await own_store.head(LOG)).last.version < 2:
                await asyncio.sleep(0.005)
        await own_client.config_set("maxmemory", 1_000_000)
        full.set()
        try:
            with pytest.raises(OutcomeUnknown) as unknown:
                await attempt
        finally:
            await own_client.config_set("maxmemory", 0)
        assert unknown.value.operation_id == "op-1"
        assert (await put(lossy, 1, "op-1")).duplicate


async def test_a_server_that_is_not_there_is_said_in_time(keys: Keys) -> None:
    with socket.socket() as taken:  # bound but not listening: nobody else gets the port
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        begin = time.monotonic()
        with pytest.raises(ServerUnavailable) as unavailable:
            await RedisStore.connect(f"redis://127.0.0.1:{port}", namespace=keys.namespace, deadline=0.3)
        assert time.monotonic() - begin < 1.3
    text = str(unavailable.value)
    assert text.startswith("no answer within 0.3 s: cannot connect to ")
    assert "127.0.0.1" in text
    assert str(port) in text
    assert text.endswith("start it or mend the URL")


async def test_an_append_to_a_server_that_went_away_says_that_nothing_was_appended(proxy: Proxy, keys: Keys) -> None:
    async with connected(proxy.url, keys, deadline=0.3) as lossy:
        await put(lossy, 1, "op-1")
        await proxy.stop()
        line = lossy._appends._line
        assert line is not None
        async with asyncio.timeout(5):
            while line.lost is None:
                await asyncio.sleep(0.001)
        with pytest.raises(ServerUnavailable, match=r"^nothing was appended within 0\.3 s: cannot connect to "):
            await put(lossy, 2, "op-2")
        with pytest.raises(ServerUnavailable, match=r"no answer within 0\.3 s: "):
            await lossy.read(LOG, 1, None, 10)


@pytest.mark.parametrize("fate", [Fate.HOLD, Fate.HOLD_REPLY])
async def test_the_deadline_bounds_an_append_that_gets_no_reply(proxy: Proxy, keys: Keys, fate: Fate) -> None:
    async with connected(proxy.url, keys, deadline=0.5) as lossy:
        await put(lossy, 1, "op-1")
        proxy.fate = Appends(fate)
        begin = time.monotonic()
        with pytest.raises(OutcomeUnknown):
            await put(lossy, 2, "op-2")
        assert time.monotonic() - begin < 2


async def test_the_deadline_bounds_a_read_that_gets_no_reply(proxy: Proxy, keys: Keys) -> None:
    async with connected(proxy.url, keys, deadline=0.5) as lossy:
        proxy.fate = lambda chunk: Fate.HOLD if b"HGETALL" in chunk else Fate.PASS
        begin = time.monotonic()
        with pytest.raises(ServerUnavailable, match=r"no answer within 0\.5 s"):
            await lossy.head(LOG)
        assert time.monotonic() - begin < 2


async def test_the_deadline_bounds_connecting_to_a_server_that_says_nothing(keys: Keys) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        begin = time.monotonic()
        with pytest.raises(ServerUnavailable):
            async with asyncio.timeout(15):
                await RedisStore.connect(
                    f"redis://127.0.0.1:{silent.getsockname()[1]}", namespace=keys.namespace, deadline=0.5
                )
        assert time.monotonic() - begin < 2


async def test_close_ends_appends_that_wait_and_none_of_them_connects_anew(proxy: Proxy, keys: Keys) -> None:
    async with connected(proxy.url, keys, deadline=20) as lossy:
        await put(lossy, 0, "op-0")
        arrived = asyncio.Event()

        def hold(chunk: bytes) -> Fate:
            arrived.set()
            return Fate.HOLD

        proxy.fate = hold
        waiting = [asyncio.ensure_future(put(lossy, number, f"op-{number}")) for number in range(1, 6)]
        reading = asyncio.ensure_future(lossy.head(LOG))
        await arrived.wait()
        before = proxy.connections
        await lossy.close()
        done, left = await asyncio.wait([*waiting, reading], timeout=3)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
        await lossy.close()
        assert not left, "callers still wait although the store was closed"
        assert all(isinstance(task.exception(), EventLogError) for task in done)
        assert proxy.connections == before
        for task in waiting:
            assert isinstance(task.exception(), OutcomeUnknown), "sent, and no reply"


async def test_a_closed_store_says_so_and_does_not_connect_anew(proxy: Proxy, keys: Keys) -> None:
    async with connected(proxy.url, keys, deadline=1) as closed:
        await put(closed, 0, "op-0")
        await closed.close()
        before = proxy.connections
        for use in (
            lambda: put(closed, 1, "op-1"),
            lambda: closed.head(LOG),
            lambda: closed.read(LOG, 1, None, 1),
            lambda: closed.conversations(0, 0, 1),
        ):
            with pytest.raises(EventLogError, match="closed"):
                await use()
        assert proxy.connections == before
