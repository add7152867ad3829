"""What the server loses or trims is said by the group, and never skipped; a restart is not noticed."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from uuid import uuid4

import anyio
import pytest
from redis.asyncio import Redis, from_url

from eventlog import EventLog, LogLost, Truncated
from eventlog.consumer_group import ConsumerGroup
from eventlog.delivery import Delivery
from eventlog.identity import LogId
from eventlog.server.binary import find
from eventlog.store.conformance.suite import notes
from eventlog.store.redis.keys import Keys
from tests import servers
from tests.groups.running import QUICK, consuming, passed
from tests.loss.server import Server

pytestmark = pytest.mark.anyio
CHAT = LogId("t", "a")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "executable" in metafunc.fixturenames:
        kinds = [kind for kind in servers.kinds(metafunc.config.getoption("server")) if kind != "docker"]
        metafunc.parametrize("executable", kinds or ["embedded"], indirect=True)


@pytest.fixture
def executable(request: pytest.FixtureRequest) -> str:
    found = shutil.which("redis-server") if request.param == "redis" else str(find(None).path)
    assert found, "redis-server is not on PATH"
    return found


@pytest.fixture
def keys() -> Keys:
    return Keys(f"t{uuid4().hex[:12]}", 1)


@pytest.fixture
async def client(server: str) -> AsyncIterator[Redis]:
    async with from_url(server, decode_responses=True) as opened:
        yield opened


@pytest.fixture
async def one(server: str, keys: Keys) -> AsyncIterator[EventLog]:
    """A log with one partition, of which a group has passed four events of one conversation."""
    async with EventLog.open(server, namespace=keys.namespace, partitions=1) as log:
        chat = log.tenant("t").conversation("a")
        for number in range(4):
            await chat.append(*notes(number))
        async with consuming(log.group("g"), nothing):
            await passed(log.group("g"))
        yield log


async def nothing(delivery: Delivery) -> None:
    """Handles anything."""


async def said(group: ConsumerGroup) -> BaseException:
    """What a member says of the loss. It must say it by itself."""
    with anyio.fail_after(20), pytest.raises((LogLost, Truncated)) as raised:
        await group.consume(nothing, **QUICK)
    return raised.value


async def put_other(client: Redis, feed: str, seq: int) -> None:
    """Other appends in place of those from ``seq`` on, as a server makes them that lost its end."""
    entries = await client.xrange(feed)
    await client.delete(feed)
    for number, (identity, fields) in enumerate(entries, 1):
        await client.xadd(feed, fields | ({"s": 12345} if number >= seq else {}), id=identity)


async def test_the_entry_at_the_mark_was_replaced(one: EventLog, client: Redis, keys: Keys) -> None:
    await put_other(client, keys.feed(0), 4)
    mark = (await one.group("g").status()).partitions[0].place.mark
    error = await said(one.group("g"))
    assert isinstance(error, LogLost)
    assert "feed of partition 0 does not hold entry 4" in str(error)
    assert (await one.group("g").status()).partitions[0].place.mark == mark


async def test_the_feed_ends_before_the_mark(one: EventLog, client: Redis, keys: Keys) -> None:
    await client.xtrim(keys.feed(0), maxlen=0)
    assert isinstance(await said(one.group("g")), LogLost)


async def test_the_feed_has_a_hole(one: EventLog, client: Redis, keys: Keys) -> None:
    chat = one.tenant("t").conversation("a")
    for number in range(2):
        await chat.append(*notes(number))
    await client.xdel(keys.feed(0), "0-5")
    assert isinstance(await said(one.group("g")), LogLost)
    assert (await one.group("g").status()).partitions[0].place.mark[0] == 4  # type: ignore[index]


async def test_an_event_that_the_feed_names_is_gone_from_its_log(one: EventLog, client: Redis, keys: Keys) -> None:
    appended = await one.tenant("t").conversation("a").append(*notes(5))
    await client.xdel(keys.of_log(CHAT).log, appended.cursor.entry_id)
    assert "version 5 of conversation 'a' of 't' is gone" in str(await said(one.group("g")))
    assert (await one.group("g").status()).partitions[0].place.mark[0] == 4  # type: ignore[index]


async def test_an_event_was_replaced_by_another_of_its_version(one: EventLog, client: Redis, keys: Keys) -> None:
    appended = await one.tenant("t").conversation("a").append(*notes(5))
    log = keys.of_log(CHAT).log
    [(_, fields)] = await client.xrange(log, appended.cursor.entry_id, appended.cursor.entry_id)
    await client.xdel(log, appended.cursor.entry_id)
    await client.xadd(log, fields, id="5-9223372036854775807")
    assert "version 5 of conversation 'a' of 't' is gone" in str(await said(one.group("g")))


async def test_an_event_was_trimmed_before_it_was_delivered(one: EventLog, client: Redis, keys: Keys) -> None:
    appended = await one.tenant("t").conversation("a").append(*notes(5))
    await client.xdel(keys.of_log(CHAT).log, appended.cursor.entry_id)
    await client.hset(keys.of_log(CHAT).head, "base", appended.cursor.entry_id)
    error = await said(one.group("g"))
    assert isinstance(error, Truncated)
    assert error.available == appended.cursor


async def test_a_missing_mark_is_the_beginning_and_never_now(one: EventLog, client: Redis, keys: Keys) -> None:
    await client.delete(f"{{{keys.namespace}:0}}:reader:g")
    seen = list[int]()

    async def handle(delivery: Delivery) -> None:
        seen.append(delivery.version)

    async with consuming(one.group("g"), handle):
        await passed(one.group("g"))
    assert seen == [1, 2, 3, 4]


async def test_a_missing_mark_is_where_the_group_was_created(one: EventLog, client: Redis, keys: Keys) -> None:
    group, seen = one.group("late", start="now"), list[int]()
    await group.create()
    for number in range(2):
        await one.tenant("t").conversation("a").append(*notes(number))

    async def handle(delivery: Delivery) -> None:
        seen.append(delivery.version)

    for _ in range(2):
        async with consuming(group, handle):
            await passed(group)
        await client.delete(f"{{{keys.namespace}:0}}:reader:late")
    assert seen == [5, 6, 5, 6]


async def test_what_waits_and_was_lost_is_said(one: EventLog, client: Redis, keys: Keys) -> None:
    chat, group = one.tenant("t").conversation("a"), one.group("g")

    async def fails(delivery: Delivery) -> None:
        await delivery.retry(1.0)

    async with consuming(group, fails):
        appended = await chat.append(*notes(5, 6))
        with anyio.fail_after(10):
            while (await group.status()).waiting == 0:
                await anyio.sleep(0.01)
    await client.xdel(keys.of_log(CHAT).log, appended.cursor.entry_id)
    assert isinstance(await said(group), LogLost)


async def test_a_group_outlives_restarts_of_its_server(executable: str) -> None:
    async with Server(executable) as server, EventLog.open(server.url, partitions=2) as log:
        group, counts, appended = log.group("g"), list[tuple[str, int]](), 0

        async def handle(delivery: Delivery) -> None:
            await asyncio.sleep(0.001)
            counts.append((delivery.conversation.conversation, delivery.version))

        async with consuming(group, handle, lease=3.0):
            for stop in (server.stop, _killed(server), server.stop):
                for number in range(20):
                    await log.tenant("t").conversation(f"c{number % 5}").append(*notes(number))
                    appended += 1
                await stop()
                await server.start()
            await passed(group)
    assert len(set(counts)) == appended == 60
    for name in {name for name, _ in counts}:
        firsts = list(dict.fromkeys(version for one, version in counts if one == name))
        assert firsts == sorted(firsts)


def _killed(server: Server):  # type: ignore[no-untyped-def]
    async def kill() -> None:
        server.kill()

    return kill
