"""The connection that all callers share: each gets its own reply, whatever happens to the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest
from redis.asyncio import Redis

from eventlog.errors import EventLogError, ServerUnavailable
from eventlog.store.conformance.suite import LOG, put
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.store import RedisStore
from eventlog.store.redis.wire import ConnectionLost, ReplyError, Wire, pack
from tests.store.redis.conftest import connected
from tests.store.redis.proxy import Fate, Proxy

pytestmark = pytest.mark.anyio
MB = 1_000_000


@pytest.fixture
async def wire(server: str) -> AsyncIterator[Wire]:
    async with wired(server) as opened:
        yield opened


@pytest.fixture
async def proxy(server: str) -> AsyncIterator[Proxy]:
    async with Proxy(server) as opened:
        yield opened


@asynccontextmanager
async def wired(url: str, *, timeout: float = 5.0) -> AsyncIterator[Wire]:  # noqa: ASYNC109 - the wire's own
    """A wire, closed whatever happens."""
    wire = Wire(url, timeout=timeout)
    try:
        yield wire
    finally:
        await wire.close()


async def echo(wire: Wire, text: str | bytes) -> bytes:
    reply = await wire.execute(pack("ECHO", text))
    assert isinstance(reply, bytes)
    return reply


async def test_replies_stay_with_their_requests_when_others_are_cancelled(wire: Wire) -> None:
    random = Random(20_307)
    for turn in range(100):
        tasks = {f"{turn}-{number}": asyncio.ensure_future(echo(wire, f"{turn}-{number}")) for number in range(20)}
        for _ in range(random.randrange(6)):
            await asyncio.sleep(0)
        for task in random.sample(list(tasks.values()), 10):
            task.cancel()
        await asyncio.wait(tasks.values())
        for text, task in tasks.items():
            assert task.cancelled() or task.result() == text.encode()
        assert await echo(wire, "after") == b"after"


async def test_a_refusal_is_the_reply_of_its_request_alone(wire: Wire) -> None:
    first, wrong, last = await asyncio.gather(
        echo(wire, "first"), wire.execute(pack("NO-SUCH-COMMAND")), echo(wire, "last")
    )
    assert (first, last) == (b"first", b"last")
    assert isinstance(wrong, ReplyError)


async def test_a_huge_reply_and_those_behind_it_arrive_whole(wire: Wire) -> None:
    text = "a1\r\n$-" * (5 * MB)
    huge, *small = await asyncio.gather(echo(wire, text), *(echo(wire, f"small-{number}") for number in range(20)))
    assert huge == text.encode()
    assert small == [b"small-%d" % number for number in range(20)]


async def test_more_than_the_socket_takes_at_once_goes_out_in_order(wire: Wire) -> None:
    texts = [b"%d:" % number + b"x" * MB for number in range(40)]
    assert await asyncio.gather(*(echo(wire, text) for text in texts)) == texts


async def test_requests_cancelled_while_the_socket_is_full_are_not_missed(wire: Wire) -> None:
    random = Random(20_308)
    texts = [b"%d:" % number + b"x" * MB for number in range(40)]
    tasks = [asyncio.ensure_future(echo(wire, text)) for text in texts]
    for turn in range(20):
        await asyncio.sleep(0)
        random.choice(tasks).cancel()
        if turn % 4 == 0:
            texts.append(b"late-%d" % turn)
            tasks.append(asyncio.ensure_future(echo(wire, texts[-1])))
    await asyncio.wait(tasks)
    finished = [(task.result(), text) for task, text in zip(tasks, texts, strict=True) if not task.cancelled()]
    assert all(reply == text for reply, text in finished)
    assert len(finished) >= 20
    assert await echo(wire, "after") == b"after"


async def test_callers_that_begin_together_share_one_connection(proxy: Proxy) -> None:
    async with wired(proxy.url) as wire:
        assert await asyncio.gather(*(echo(wire, f"{number}") for number in range(50))) == [
            b"%d" % number for number in range(50)
        ]
        assert proxy.connections == 1


async def test_whoever_is_cancelled_while_connecting_takes_nothing_from_the_others(proxy: Proxy) -> None:
    proxy.pause_before_accepting = 0.1
    async with wired(proxy.url) as wire:
        tasks = [asyncio.ensure_future(echo(wire, f"{number}")) for number in range(5)]
        await asyncio.sleep(0.02)
        tasks[0].cancel()
        tasks[3].cancel()
        await asyncio.wait(tasks)
        assert [task.cancelled() for task in tasks] == [True, False, False, True, False]
        assert [tasks[number].result() for number in (1, 2, 4)] == [b"1", b"2", b"4"]
        assert proxy.connections == 1


async def test_when_all_who_wait_for_a_connection_are_cancelled_the_next_still_gets_one(proxy: Proxy) -> None:
    proxy.pause_before_accepting = 0.1
    async with wired(proxy.url) as wire:
        tasks = [asyncio.ensure_future(echo(wire, f"{number}")) for number in range(5)]
        await asyncio.sleep(0.02)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert await echo(wire, "next") == b"next"
        assert proxy.connections == 1


async def test_all_who_wait_for_a_connection_that_fails_are_told_and_the_next_tries_anew(proxy: Proxy) -> None:
    async with wired(proxy.url) as wire:
        proxy.fate = lambda _: Fate.CUT_REQUEST
        failed = await asyncio.gather(*(echo(wire, "x") for _ in range(5)), return_exceptions=True)
        assert all(isinstance(error, ServerUnavailable | ConnectionLost) for error in failed)
        proxy.fate = lambda _: Fate.PASS
        assert await echo(wire, "next") == b"next"


async def test_close_while_others_connect_tells_them_and_cancels_nobody(proxy: Proxy) -> None:
    proxy.pause_before_accepting = 30
    async with wired(proxy.url) as wire:
        tasks = [asyncio.ensure_future(echo(wire, "x")) for _ in range(3)]
        async with asyncio.timeout(5):
            while proxy.connections == 0:
                await asyncio.sleep(0.005)
        await wire.close()
        done, left = await asyncio.wait(tasks, timeout=3)
        assert not left
        assert not any(task.cancelled() for task in done), "a caller that nobody cancelled was cancelled"
        assert all(isinstance(task.exception(), ConnectionLost | EventLogError) for task in done)


async def test_close_tells_whoever_waits_for_a_reply(proxy: Proxy) -> None:
    async with wired(proxy.url) as wire:
        assert await echo(wire, "x") == b"x"
        arrived = asyncio.Event()

        def hold(_: bytes) -> Fate:
            arrived.set()
            return Fate.HOLD

        proxy.fate = hold
        tasks = [asyncio.ensure_future(echo(wire, "y")) for _ in range(3)]
        await arrived.wait()
        await wire.close()
        for task in tasks:
            with pytest.raises((ConnectionLost, EventLogError), match="closed"):
                await task


async def test_a_closed_wire_stays_closed(proxy: Proxy) -> None:
    async with wired(proxy.url) as wire:
        await echo(wire, "x")
        await wire.close()
        with pytest.raises((ConnectionLost, EventLogError), match="closed"):
            await echo(wire, "y")
        assert proxy.connections == 1


async def test_a_wire_that_was_closed_before_its_first_use_stays_closed(proxy: Proxy) -> None:
    async with wired(proxy.url) as wire:
        await wire.close()
        with pytest.raises((ConnectionLost, EventLogError), match="closed"):
            await echo(wire, "y")
        assert proxy.connections == 0


async def test_a_server_that_says_nothing_loses_the_connection_in_time(proxy: Proxy) -> None:
    async with wired(proxy.url, timeout=0.2) as wire:
        assert await echo(wire, "x") == b"x"
        proxy.fate = lambda _: Fate.HOLD
        lost = await asyncio.wait_for(
            asyncio.gather(*(echo(wire, "y") for _ in range(3)), return_exceptions=True), timeout=2
        )
        assert [str(error) for error in lost] == ["no reply for 0.2 s"] * 3
        assert all(isinstance(error, ConnectionLost) and error.sent for error in lost)
        proxy.fate = lambda _: Fate.PASS
        assert await echo(wire, "z") == b"z"


async def test_an_idle_connection_is_not_lost(proxy: Proxy) -> None:
    async with wired(proxy.url, timeout=0.1) as wire:
        for _ in range(3):
            assert await echo(wire, "x") == b"x"
            await asyncio.sleep(0.25)  # longer than the timeout: that nothing happens is what is tested
        assert proxy.connections == 1


async def test_a_large_request_on_a_slow_way_is_progress(proxy: Proxy) -> None:
    """Longer than the timeout in all, but never still."""
    async with wired(proxy.url, timeout=1) as wire:
        assert await echo(wire, "x") == b"x"
        proxy.pace = 20 * MB  # so fast that what the system buffers, some MB, is through within the timeout
        assert await wire.execute(pack("EXISTS", "x" * (50 * MB))) == 0
        assert proxy.connections == 1


async def test_a_reply_that_is_none_of_the_protocol_loses_the_connection() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65_536):
            writer.write(b"+OK\r\n" * (chunk.count(b"\r\n*") + 1) if b"ECHO" not in chunk else b"HTTP/1.1 400\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with wired(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}") as wire:
        with pytest.raises(ConnectionLost, match="the server does not speak the Redis protocol") as lost:
            await echo(wire, "x")
        assert lost.value.sent
        await wire.close()
        server.close()
        await server.wait_closed()


async def test_a_reply_that_nobody_asked_for_loses_the_connection() -> None:
    asked = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65_536):
            writer.write(b"+OK\r\n" * (chunk.count(b"\r\n*") + 1))
            if b"ECHO" in chunk:
                writer.write(b"+MORE\r\n")
                asked.set()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with wired(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}") as wire:
        assert await wire.execute(pack("ECHO", "x")) == b"OK"
        await asked.wait()
        line = wire._line
        assert line is not None
        async with asyncio.timeout(2):
            while line.lost is None:
                await asyncio.sleep(0.001)
        assert await wire.execute(pack("ECHO", "y")) == b"OK"
        await wire.close()
        server.close()
        await server.wait_closed()


def in_a_thread(work: object) -> list[BaseException]:
    """Run the function in a thread of its own and return what it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()  # type: ignore[operator]
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive(), "it hangs"
    return raised


def test_a_store_carried_into_another_event_loop_works_or_says_why(server: str, keys: Keys) -> None:
    """One loop ended without closing the store; the next must neither hang nor meet a bare RuntimeError."""

    async def first() -> RedisStore:
        store = await RedisStore.connect(server, namespace=keys.namespace, deadline=2)
        await put(store, 1, "op-1")
        return store

    async def second(store: RedisStore) -> None:
        try:
            outcome = await put(store, 2, "op-2")
            assert outcome.first == 2
        finally:
            await store.close()

    def both() -> None:
        with asyncio.Runner() as one:
            store = one.run(first())
            with asyncio.Runner() as two:
                two.run(second(store))
            one.run(store.close())

    for error in in_a_thread(both):
        assert isinstance(error, EventLogError), repr(error)
        assert "loop" in str(error)


async def test_two_connections_serve_any_number_of_callers(proxy: Proxy, keys: Keys, client: Redis) -> None:
    async with connected(proxy.url, keys) as store:
        await asyncio.gather(
            *(put(store, number, f"op-{number}") for number in range(200)), *(store.head(LOG) for _ in range(200))
        )
        assert proxy.connections == 2
