"""A gap is always said: what was trimmed, what the server lost, what is no cursor of this log. Never "up to date"."""

from __future__ import annotations

import anyio
import pytest
from redis.asyncio import from_url

from eventlog import Conversation, CursorInvalid, EventLog, Kind, LogLost, Truncated, user
from eventlog.store.memory import MemoryStore
from tests.follow.following import PATIENCE, take, until, versions
from tests.follow.losing import keep, keys_of, lose, trim
from tests.loss.server import Server

pytestmark = pytest.mark.anyio


def chat(log: EventLog, name: str = "c") -> Conversation:
    return log.tenant("t").conversation(name)


async def fill(conversation: Conversation, count: int) -> None:
    for index in range(count):
        await conversation.add(user(str(index)))


@pytest.fixture
def url(request: pytest.FixtureRequest, log: EventLog, started: object) -> str:
    kind = request.node.callspec.params["log"]
    return "memory://" if kind == "memory" else started.url(kind)  # type: ignore[attr-defined]


@pytest.mark.parametrize("after", ["start", 0, 1, 2])
async def test_a_cursor_below_what_is_kept_is_told_where_the_rest_begins(
    log: EventLog, url: str, after: str | int
) -> None:
    await fill(chat(log), 5)
    read = [event async for event in chat(log).read()]
    cursors = [chat(log).log.cursor(0, 0), *(chat(log).log.cursor(event.version, event.stamp) for event in read)]
    await trim(log, url, chat(log), 3)
    with pytest.raises(Truncated) as told:
        await until(chat(log).follow(after if isinstance(after, str) else cursors[after]), Kind.CAUGHT_UP)
    assert told.value.available == cursors[3]
    assert versions(await until(chat(log).follow(told.value.available), Kind.CAUGHT_UP)) == [4, 5]


async def test_a_follower_at_the_end_of_a_log_that_is_trimmed_to_nothing_goes_on(log: EventLog, url: str) -> None:
    await fill(chat(log), 3)
    async with chat(log).follow(poll=0.05) as follower:
        await until(follower, Kind.CAUGHT_UP)
        await trim(log, url, chat(log), 3)
        with anyio.move_on_after(0.2):
            await anext(follower)
        await fill(chat(log), 2)
        assert versions(await take(follower, 2)) == [4, 5]


async def test_a_live_follower_that_is_overtaken_by_trimming_is_told(log: EventLog, url: str) -> None:
    await fill(chat(log), 3)
    log.hub.hints = False
    async with chat(log).follow(poll=0.05) as follower:
        await until(follower, Kind.CAUGHT_UP)
        await fill(chat(log), 3)
        await trim(log, url, chat(log), 5)
        with pytest.raises(Truncated):
            await take(follower, 1)
        assert [item async for item in follower] == []


@pytest.mark.parametrize("cursor", ["", "x", "1-1", "1-1~zzzzzzzz", "-1-1~00000000", "99999999999999999-1~00000000"])
async def test_what_is_no_cursor_is_refused_at_once(log: EventLog, cursor: str) -> None:
    with pytest.raises(CursorInvalid):
        chat(log).follow(cursor)


async def test_a_cursor_of_another_conversation_or_tenant_is_refused_at_once(log: EventLog) -> None:
    await fill(chat(log), 1)
    cursor = (await chat(log).head()).last
    for other in (chat(log, "d"), log.tenant("u").conversation("c")):
        with pytest.raises(CursorInvalid):
            other.follow(cursor)
        with pytest.raises(CursorInvalid):
            other.follow(str(cursor))


@pytest.mark.parametrize("version", [1, 3, 4, 1000])
async def test_a_cursor_whose_stamp_was_never_written_is_told(log: EventLog, version: int) -> None:
    await fill(chat(log), 3)
    with pytest.raises(LogLost) as told:
        await until(chat(log).follow(chat(log).log.cursor(version, 7)), Kind.CAUGHT_UP)
    assert told.value.available == (await chat(log).head()).last


@pytest.mark.parametrize("again", [0, 1, 2, 3], ids="versions used again: {}".format)
@pytest.mark.parametrize("is_live", [False, True], ids=["coming back", "live"])
async def test_whoever_stood_beyond_what_the_server_lost_is_told(own: Server, again: int, is_live: bool) -> None:
    async with EventLog.open(own.url) as log:
        await fill(chat(log), 2)
        await keep(own)
        follower = chat(log).follow(poll=0.2)
        await until(follower, Kind.CAUGHT_UP)
        await fill(chat(log), 2)
        lost = (await take(follower, 2))[-1].cursor
        await lose(own)
        await fill(chat(log, "c"), again)  # a new handle: it has not seen what was lost
        if not is_live:
            await follower.aclose()
            follower = chat(log).follow(str(lost))
        with pytest.raises(LogLost) as told, anyio.fail_after(PATIENCE):
            await take(follower, 100)
        assert told.value.available.version == 2 + again


async def test_whoever_stood_before_what_the_server_lost_is_not_disturbed(own: Server) -> None:
    async with EventLog.open(own.url) as log:
        await fill(chat(log), 2)
        await keep(own)
        cursor = (await chat(log).head()).last
        await fill(chat(log), 2)
        await lose(own)
        await fill(chat(log), 3)
        assert versions(await until(chat(log).follow(cursor), Kind.CAUGHT_UP)) == [3, 4, 5]


async def test_a_tenant_is_told_that_the_feed_lost_its_end(own: Server) -> None:
    async with EventLog.open(own.url) as log:
        await fill(chat(log), 2)
        await keep(own)
        follower = log.tenant("t").follow(poll=0.2)
        await until(follower, Kind.CAUGHT_UP)
        await fill(chat(log), 2)
        lost = (await take(follower, 2))[-1].cursor
        await lose(own)
        await fill(chat(log), 3)
        for one in (follower, log.tenant("t").follow(str(lost))):
            with pytest.raises(LogLost) as told, anyio.fail_after(PATIENCE):
                await take(one, 100)
            assert told.value.available.version == 5


async def test_a_feed_whose_beginning_is_missing_is_told(served: EventLog, server: str) -> None:
    await fill(chat(served), 3)
    cursors = [item.cursor for item in await until(served.tenant("t").follow(), Kind.CAUGHT_UP)]
    partition = next(number for number, end in enumerate(await served.hub.feeds.feed_ends()) if end)
    async with from_url(server) as client:
        await client.xtrim(keys_of(served.store).feed(partition), minid="0-3", approximate=False)
    for after in ("start", cursors[0], cursors[1]):
        with pytest.raises(Truncated):
            await until(served.tenant("t").follow(after), Kind.CAUGHT_UP)
    assert versions(await until(served.tenant("t").follow(cursors[2]), Kind.CAUGHT_UP)) == []


async def test_a_hole_in_a_feed_is_told(served: EventLog, server: str) -> None:
    await fill(chat(served), 3)
    partition = next(number for number, end in enumerate(await served.hub.feeds.feed_ends()) if end)
    async with from_url(server) as client:
        await client.xdel(keys_of(served.store).feed(partition), "0-2")
    with pytest.raises(LogLost):
        await until(served.tenant("t").follow(), Kind.CAUGHT_UP)


async def test_events_that_are_not_those_the_feed_names_are_told() -> None:
    store = MemoryStore()
    log = EventLog(store)
    await fill(chat(log), 3)
    [feed] = [feed for feed in store.feeds if feed]
    feed[1] = feed[1]._replace(stamp=7)
    with pytest.raises(LogLost):
        await until(log.tenant("t").follow(), Kind.CAUGHT_UP)


async def test_events_that_were_trimmed_below_the_feed_are_told(log: EventLog, url: str) -> None:
    await fill(chat(log), 3)
    await trim(log, url, chat(log), 2)
    with pytest.raises(Truncated):
        await until(log.tenant("t").follow(), Kind.CAUGHT_UP)
