"""A client that comes back gets what it missed on its stream; with any other event id it gets nothing, and an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.server.streamable_http import EventMessage
from mcp_types import JSONRPCNotification, JSONRPCResponse

from eventlog import Cursor, CursorInvalid, Draft, EventLog, EventLogError, FollowerTooSlow, Gap
from gateway.adapters.mcp import EventLogEvents
from gateway.adapters.mcp.event_id import event_id, parse

pytestmark = pytest.mark.anyio


def note(text: str | int) -> JSONRPCNotification:
    return JSONRPCNotification(jsonrpc="2.0", method="notifications/message", params={"data": text})


async def replayed(events: EventLogEvents, after: str) -> tuple[str | None, list[EventMessage]]:
    sent: list[EventMessage] = []

    async def send(message: EventMessage) -> None:
        sent.append(message)

    return await events.replay_events_after(after, send), sent


async def nothing(events: EventLogEvents, after: str, error: type[EventLogError]) -> None:
    """Nothing is sent, and this error is raised."""
    sent: list[EventMessage] = []

    async def send(message: EventMessage) -> None:
        sent.append(message)

    with pytest.raises(error):
        await events.replay_events_after(after, send)
    assert sent == []


@pytest.fixture
def events(log: EventLog) -> EventLogEvents:
    return EventLogEvents(log.tenant("t"), "session-1")


async def test_what_came_after_the_event_is_sent_again_in_order_with_its_ids(events: EventLogEvents) -> None:
    ids = [await events.store_event("1", note(number)) for number in range(5)]
    stream, sent = await replayed(events, ids[1])
    assert stream == "1"
    assert [message.event_id for message in sent] == ids[2:]
    assert [message.message for message in sent] == [note(number) for number in range(2, 5)]
    assert await replayed(events, ids[-1]) == ("1", [])


async def test_other_streams_of_the_session_are_not_mixed_in(events: EventLogEvents) -> None:
    first = await events.store_event("1", None)  # primes the stream: a place to resume from, and no message
    await events.store_event("2", note("other"))
    await events.store_event("1", note("mine"))
    await events.store_event("_GET_stream", note("standing"))
    stream, sent = await replayed(events, first)
    assert (stream, [message.message for message in sent]) == ("1", [note("mine")])


async def test_a_replay_goes_on_over_many_pages(events: EventLogEvents) -> None:
    first = await events.store_event("1", None)
    await events.conversation.append(
        *(Draft("mcp-message", {"stream": "1", "message": note(n).model_dump()}) for n in range(900))
    )
    await events.conversation.append(
        *(Draft("mcp-message", {"stream": "1", "message": note(n).model_dump()}) for n in range(900))
    )
    assert len((await replayed(events, first))[1]) == 1800


async def test_an_event_of_another_stream_session_or_tenant_replays_nothing(
    log: EventLog, events: EventLogEvents
) -> None:
    mine = await events.store_event("1", note("mine"))
    await events.store_event("2", note("other stream"))
    _, cursor = parse(mine)
    await nothing(events, event_id("2", cursor), CursorInvalid)
    others = [EventLogEvents(log.tenant("t"), "session-2"), EventLogEvents(log.tenant("other"), "session-1")]
    for other in others:
        theirs = await other.store_event("1", note("theirs"))
        await other.store_event("1", note("secret"))
        await nothing(events, theirs, CursorInvalid)
        await nothing(other, mine, CursorInvalid)


async def test_the_stream_is_judged_before_the_cursor_and_nothing_is_looked_up_for_a_foreign_one(
    log: EventLog, events: EventLogEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, cursor = parse(await events.store_event("1", note("a")))
    gone = cursor._replace(version=99)
    await nothing(events, event_id("1", gone), Gap)
    looked_up: list[object] = []
    monkeypatch.setattr(EventLogEvents, "_at", lambda *arguments: looked_up.append(arguments))
    for named in (cursor, gone, cursor._replace(log="00000000")):
        with pytest.raises(CursorInvalid, match="stream 'theirs' is none of this session: begin another session"):
            await replayed(events, event_id("theirs", named))
    assert looked_up == []


async def test_another_store_of_the_session_knows_its_streams(log: EventLog, events: EventLogEvents) -> None:
    other = EventLogEvents(log.tenant("t"), "session-1")
    for stream in ("1", "a/b ☃", ""):
        first = await events.store_event(stream, None)
        await events.store_event(stream, note(f"on {stream}"))
        assert [message.message for message in (await replayed(other, first))[1]] == [note(f"on {stream}")]
        await nothing(other, event_id("later", parse(first)[1]), CursorInvalid)


async def test_an_event_that_never_was_replays_nothing(events: EventLogEvents) -> None:
    mine = await events.store_event("1", note("a"))
    await events.store_event("1", note("b"))
    stream, cursor = parse(mine)
    await nothing(events, event_id(stream, cursor._replace(stamp=cursor.stamp ^ 1)), Gap)
    await nothing(events, event_id(stream, cursor._replace(version=99)), Gap)
    await nothing(events, event_id(stream, cursor._replace(version=0)), CursorInvalid)
    unreadable = ["", "1", "@", "\ud800", f"\ud800@{cursor}", f"%ff@{cursor}", "@" * 10_000]
    for broken in (*unreadable, f"1 @{cursor}", f"{stream}@{cursor}x", "1@5"):
        await nothing(events, broken, CursorInvalid)


async def test_more_than_is_replayed_at_most_is_said_before_anything_is_sent(log: EventLog) -> None:
    events = EventLogEvents(log.tenant("t"), "s", most=3)
    ids = [await events.store_event("1", note(number)) for number in range(5)]
    assert len((await replayed(events, ids[1]))[1]) == 3
    with pytest.raises(FollowerTooSlow, match=r"4 events came since .*, at most 3 are replayed: begin another") as said:
        await replayed(events, ids[0])
    assert said.value.cursor == parse(ids[0])[1]
    await nothing(events, ids[0], FollowerTooSlow)


@pytest.mark.parametrize("value", [2**80, {"deep": [None, 1.5, "å"]}, "x" * 10_000])
async def test_a_message_comes_back_as_it_was(events: EventLogEvents, value: object) -> None:
    first = await events.store_event("1", None)
    message = JSONRPCResponse(jsonrpc="2.0", id=7, result={"value": value})
    await events.store_event("1", message)
    [sent] = (await replayed(events, first))[1]
    assert sent.message == message


@given(st.text(min_size=1), st.integers(0, 10**15), st.integers(0, 2**63 - 1))
async def test_an_event_id_is_one_visible_line_and_tells_its_stream_and_cursor(
    stream: str, version: int, stamp: int
) -> None:
    if any(0xD800 <= ord(character) <= 0xDFFF for character in stream):
        return
    text = event_id(stream, Cursor(version, stamp, "0123abcd"))
    assert all("!" <= character <= "~" for character in text)
    assert parse(text) == (stream, Cursor(version, stamp, "0123abcd"))
