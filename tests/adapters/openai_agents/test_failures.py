"""Lost replies, a server that is away, a wrong store, several processes: once, whole, or a clear error of our tree."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import pytest
from agents import Runner
from redis.asyncio import Redis, RedisCluster

from eventlog import (
    Draft,
    EventLog,
    EventLogError,
    InvalidInput,
    LayoutMismatch,
    OperationReused,
    OutcomeUnknown,
    ServerError,
)
from eventlog.store.port import OPERATION_WINDOW
from gateway.adapters.openai_agents import EventLogSession, SessionClosed
from gateway.adapters.openai_agents.kinds import answers, asks
from gateway.adapters.openai_agents.place import url_of
from tests.adapters.openai_agents import writing
from tests.adapters.openai_agents.conftest import MakeSession
from tests.adapters.openai_agents.scripted import agent, calls, said
from tests.store.redis.proxy import Fate, Proxy

pytestmark = pytest.mark.anyio
YES = {"role": "user", "content": "yes"}


@pytest.fixture
async def proxy(server: str) -> AsyncIterator[Proxy]:
    async with Proxy(server) as proxy:
        yield proxy


def appends(fate: Fate, times: int) -> Callable[[bytes], Fate]:
    """This fate for so many requests that append; all else passes."""
    left = [fate] * times
    return lambda chunk: left.pop() if left and b"EVAL" in chunk else Fate.PASS


@pytest.mark.parametrize("fate", [Fate.CUT_REPLY, Fate.CUT_REQUEST], ids=lambda fate: fate.name.lower())
async def test_a_lost_reply_adds_the_items_once(proxy: Proxy, fate: Fate) -> None:
    async with EventLog.open(proxy.url, namespace=f"t{uuid4().hex[:12]}") as log:
        session = EventLogSession("s", tenant=log.tenant("t"))
        await session.add_items([YES])
        for step in (session.add_items([YES]), session.add_items([YES]), session.pop_item()):
            proxy.fate = appends(fate, 1)
            await step
        assert await EventLogSession("s", tenant=log.tenant("t")).get_items() == await session.get_items() == [YES, YES]


@pytest.mark.parametrize("fate", [Fate.CUT_REPLY, Fate.HOLD], ids=lambda fate: fate.name.lower())
async def test_an_outcome_that_is_unknown_is_learnt_by_adding_again_under_the_same_id(proxy: Proxy, fate: Fate) -> None:
    turn = [YES, {"role": "assistant", "content": "indeed"}]
    async with EventLog.open(proxy.url, namespace=f"t{uuid4().hex[:12]}", deadline=0.3) as log:
        session = EventLogSession("s", tenant=log.tenant("t"))
        await session.add_items(turn)
        proxy.fate = appends(fate, 1_000)
        with pytest.raises(OutcomeUnknown) as caught:
            await session.add_items(turn)
        proxy.fate = lambda _: Fate.PASS
        await EventLogSession("s", tenant=log.tenant("t")).add_items([YES])  # somebody else, meanwhile
        for _ in range(2):
            await session.add_items(turn, operation_id=caught.value.operation_id)
        items = await session.get_items()
        assert len(items) == 5
        assert items == [*turn, *turn, YES] if fate is Fate.CUT_REPLY else [*turn, YES, *turn]


async def test_it_is_learnt_though_the_record_of_the_operation_is_long_gone(proxy: Proxy) -> None:
    async with EventLog.open(proxy.url, namespace=f"t{uuid4().hex[:12]}", deadline=0.5) as log:
        session = EventLogSession("s", tenant=log.tenant("t"))
        await session.add_items([YES])
        proxy.fate = appends(Fate.CUT_REPLY, 1_000)
        with pytest.raises(OutcomeUnknown) as caught:
            await session.add_items([YES])
        proxy.fate = lambda _: Fate.PASS
        other = log.tenant("t").conversation("s")
        for _ in range(2 * OPERATION_WINDOW + 1):
            await other.append(Draft("note", {}))
        await session.add_items([YES], operation_id=caught.value.operation_id)
        assert await session.get_items() == [YES, YES]


async def test_an_id_of_the_callers_adds_once_whoever_adds(make: MakeSession) -> None:
    odd = [YES, {"role": "assistant", "content": "x", "score": float("inf")}]
    for _ in range(3):
        await make().add_items(odd, operation_id="request-7")
        await make().add_items([YES])
    assert len(await make().get_items()) == 5
    with pytest.raises(OperationReused):
        await make().add_items([YES], operation_id="request-7")


async def test_a_server_that_goes_away_in_mid_run_is_an_error_of_the_tree(proxy: Proxy) -> None:
    async with EventLog.open(proxy.url, namespace=f"t{uuid4().hex[:12]}", deadline=0.3) as log:
        session = EventLogSession("s", tenant=log.tenant("t"))
        one = agent([calls("weather", city="Oslo")], [said("x")])
        proxy.fate = lambda chunk: Fate.CUT_REQUEST if b"function-call" in chunk else Fate.PASS
        with pytest.raises(EventLogError, match="append") as caught:
            await Runner.run(one, "weather?", session=session)
        assert isinstance(caught.value, ServerError | OutcomeUnknown)
        proxy.fate = lambda _: Fate.CUT_REQUEST
        assert await session.ping() is False
        proxy.fate = lambda _: Fate.PASS
        assert await session.ping() is True
        assert await session.get_items() == [{"role": "user", "content": "weather?"}]


async def test_a_server_that_is_not_there_is_said_when_it_is_first_needed(free_port: int) -> None:
    session = EventLogSession.from_url("s", url=f"redis://127.0.0.1:{free_port}")
    with pytest.raises(ServerError, match="does not answer"):
        await session.get_items()
    assert await session.ping() is False
    await session.close()


async def test_a_store_that_is_laid_out_otherwise_is_refused(server: str) -> None:
    async with Redis.from_url(server, db=9) as client:
        await client.flushdb()
        await client.hset("eventlog:meta", mapping={"layout": 99, "partitions": 16})
        session = EventLogSession("s", redis_client=client)
        with pytest.raises(LayoutMismatch):
            await session.add_items([YES])
        await session.close()
        await client.flushdb()


async def test_a_client_shows_the_way_and_stays_as_it_is(server: str) -> None:
    async with Redis.from_url(server, db=8) as client:
        await client.flushdb()
        one, other = (EventLogSession("s", redis_client=client) for _ in range(2))
        await one.add_items([YES])
        assert await other.get_items() == [YES]
        assert await EventLogSession("s", redis_client=client, key_prefix="others").get_items() == []
        await one.close()
        await one.add_items([YES])  # a client of the application's keeps the session usable
        assert len(await other.get_items()) == 2
        await one.close()
        await other.close()
        assert await client.ping()
        await client.flushdb()


async def test_a_session_with_a_url_of_its_own_ends_when_it_is_closed(server: str) -> None:
    session = EventLogSession.from_url("s", url=server, key_prefix=uuid4().hex)
    await session.add_items([YES])
    await session.close()
    await session.close()
    for call in (session.get_items, session.pop_item, session.clear_session, session.ping):
        with pytest.raises(SessionClosed, match=r"EventLogSession is closed: make another for session 's'"):
            await call()
    with pytest.raises(RuntimeError):
        await session.add_items([])


@pytest.mark.parametrize(
    ("options", "url"),
    [
        ({"host": "db", "port": 7}, "redis://db:7"),
        ({"host": "::1", "password": "p@ss/w", "db": 3}, "redis://:p%40ss%2Fw@[::1]:6379?db=3"),
        (
            {"host": "db", "username": "me", "password": "x", "ssl": True, "ssl_cert_reqs": "none"},
            "rediss://me:x@db:6379",
        ),
        ({"unix_socket_path": "/run/a b.sock", "db": 2}, "unix:///run/a%20b.sock?db=2"),
    ],
)
async def test_the_address_of_a_client_is_told_by_a_url(options: dict[str, Any], url: str) -> None:
    found = url_of(Redis(**options))
    assert found.startswith(url)
    again = url_of(Redis.from_url(found))
    assert again == found


async def test_what_leads_to_no_server_is_refused_with_the_way_out() -> None:
    class Fake:
        pass

    with pytest.raises(InvalidInput, match=r"redis_client=Fake: it is not a client of one server; give tenant="):
        EventLogSession("s", redis_client=Fake())  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="RedisCluster"):
        EventLogSession("s", redis_client=RedisCluster(host="localhost"))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="give either tenant="):
        EventLogSession("s")
    with pytest.raises(InvalidInput, match="ttl=0: give whole seconds"):
        EventLogSession.from_url("s", url="memory://", ttl=0)


async def test_what_is_older_than_its_time_to_live_is_taken_back_and_stays_in_the_log(make: MakeSession) -> None:
    session = make(ttl=1)
    await session.add_items([YES])
    assert await session.get_items() == [YES]
    conversation = await session.conversation()
    written = (await conversation.head()).updated_ms
    while await conversation.store.now_ms() < written + 1_000:
        await asyncio.sleep(0.05)
    assert await session.get_items() == []
    await session.add_items([YES])
    assert await make().get_items() == [YES]
    assert len([event async for event in conversation.read(types=["message-added"])]) == 2


async def test_writers_at_once_lose_nothing_and_tear_no_add(make: MakeSession) -> None:
    def turn(number: int) -> list[dict[str, Any]]:
        call = {"type": "function_call", "call_id": f"c{number}", "name": "look", "arguments": "{}"}
        return [call, {"type": "function_call_output", "call_id": f"c{number}", "output": "seen"}]

    sessions = [make() for _ in range(4)]
    await asyncio.gather(*(session.add_items(turn(n)) for n in range(10) for session in sessions[n % 4 : n % 4 + 1]))
    items = await make().get_items()
    assert len(items) == 20
    assert all(asks(call) == answers(result) for call, result in zip(items[::2], items[1::2], strict=True))


async def test_items_popped_at_once_go_to_one_each(make: MakeSession) -> None:
    await make().add_items([{"role": "user", "content": str(number)} for number in range(12)])
    popped = await asyncio.gather(*(make().pop_item() for _ in range(12)))
    assert sorted(int(item["content"]) for item in popped if item) == list(range(12))
    assert await make().get_items() == []


async def test_a_cancelled_add_happens_whole_or_not_at_all_and_is_known(make: MakeSession) -> None:
    session = make()
    for number in range(40):
        task = asyncio.create_task(session.add_items([YES, {"role": "assistant", "content": str(number)}]))
        for _ in range(number % 8):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    items = await session.get_items()
    assert items == await make().get_items()
    assert all(item == YES for item in items[::2])
    assert len(items) % 2 == 0


async def test_two_processes_with_one_session_never_tear_a_pair(server: str) -> None:
    namespace = f"t{uuid4().hex[:12]}"
    other = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", writing.__name__, server, namespace, "a"), stdout=asyncio.subprocess.PIPE
    )
    assert other.stdout is not None
    await other.stdout.readline()  # it is writing
    await writing.write(server, namespace, "b")
    assert await other.wait() == 0
    async with EventLog.open(server, namespace=namespace) as log:
        session = EventLogSession("s", tenant=log.tenant("t"))
        items = await session.get_items()
        assert len(items) == 100
        assert all(asks(call) == answers(result) for call, result in zip(items[::2], items[1::2], strict=True))
        for limit in range(1, 12):
            window = await EventLogSession("s", tenant=log.tenant("t")).get_items(limit)
            assert {asks(one) for one in window} == {answers(one) for one in window}


@pytest.mark.parametrize("limit", [2.5, "3", [1]])
async def test_a_limit_that_is_no_number_of_items_is_refused(make: MakeSession, limit: Any) -> None:
    await make().add_items([YES])
    with pytest.raises(InvalidInput, match=r"limit=.*: give a whole number of items, or None for all"):
        await make().get_items(limit)


@pytest.mark.parametrize("session_id", ["a/b", "a:b", "{x}", "%2F", " ", "\n", "\0", "☃😀", "x" * 1_000])
async def test_any_session_id_is_a_session_of_its_own(make: MakeSession, session_id: str) -> None:
    await make(session_id).add_items([YES])
    assert await make(f"{session_id[:-1]}y").get_items() == []
    assert await make(session_id).get_items() == [YES]


@pytest.mark.parametrize("session_id", ["", "x" * 1_001, "\ud800", None, 5])
async def test_a_session_id_that_can_be_no_conversation_is_refused(make: MakeSession, session_id: Any) -> None:
    with pytest.raises(InvalidInput, match=r"session_id .*give|session_id must be text"):
        make(session_id)


ODD: list[Any] = [{}, {"type": None}, {"role": 5}, "text", None, [], {"a": 2**80}]
ODD += [{"role": "user", "content": "\ud800"}]
ODD += [{"type": "function_call", "call_id": 5}, {"type": "x" * 100_000}, {"role": "user", "content": "x" * 3_000_000}]


@pytest.mark.parametrize("item", ODD, ids=lambda item: str(item)[:30].encode("unicode_escape").decode())
async def test_an_item_that_is_json_and_nothing_else_comes_back_as_it_was(make: MakeSession, item: Any) -> None:
    session = make()
    await session.add_items([item, YES])
    assert await session.get_items() == await make().get_items() == [item, YES]
    assert await make().get_items(2) == [item, YES]


async def test_four_runs_at_once_on_one_session_each_end_and_nothing_is_lost(make: MakeSession) -> None:
    session = make()
    agents = [agent([calls("weather", city=str(number))], [said(f"done {number}")]) for number in range(4)]
    ends = await asyncio.gather(*(Runner.run(one, "weather?", session=session) for one in agents))
    assert [end.final_output for end in ends] == [f"done {number}" for number in range(4)]
    items = await session.get_items()
    assert len(items) == 16
    assert items == await make().get_items()
