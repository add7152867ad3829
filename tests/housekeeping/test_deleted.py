"""Who reads, follows or appends to a deleted conversation is told so, at once and by one error."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
import pytest

from eventlog import (
    Conversation,
    ConversationBusy,
    ConversationDeleted,
    Draft,
    EventLog,
    Kind,
    assistant,
    user,
)
from eventlog.store.conformance.suite import notes
from projections import history
from tests.follow.following import PATIENCE, events_of, take, until
from tests.housekeeping.feeds import chat, fill

pytestmark = pytest.mark.anyio
WORDS = "conversation 'a' of 't' was deleted, and nothing of it is left"


async def all_of(items: AsyncIterator[object]) -> list[object]:
    return [item async for item in items]


async def run_in(conversation: Conversation) -> None:
    async with conversation.run():
        raise AssertionError("a run was opened")


ATTEMPTS: dict[str, Callable[[Conversation, str], Awaitable[object]]] = {
    "read": lambda chat, _: all_of(chat.read()),
    "read after a cursor": lambda chat, cursor: all_of(chat.read(cursor)),
    "read in reverse": lambda chat, _: all_of(chat.read(reverse=True)),
    "read in reverse after a cursor": lambda chat, cursor: all_of(chat.read(cursor, reverse=True)),
    "read up to a version": lambda chat, _: all_of(chat.read(until=2)),
    "pages": lambda chat, _: all_of(chat.pages()),
    "ledger": lambda chat, _: chat.ledger(),
    "history": lambda chat, _: history.load(chat),
    "the newest of the history": lambda chat, _: history.load(chat, last=2),
    "append": lambda chat, _: chat.append(*notes(1)),
    "add": lambda chat, _: chat.add(user("hello")),
    "a late result": lambda chat, _: chat.add_result("c1", "fine"),
    "run": lambda chat, _: run_in(chat),
    "resume": lambda chat, _: chat.resume("run-1", force=True).__aenter__(),
    "progress": lambda chat, _: chat.progress("run-1"),
    "abort": lambda chat, _: chat.abort_run("run-1", force=True),
    "rewind": lambda chat, cursor: chat.rewind(0, expected=cursor, force=True),
    "compact": lambda chat, cursor: chat.compact(2, [user("all")], expected=cursor),
    "follow": lambda chat, _: all_of(chat.follow()),
    "follow after a cursor": lambda chat, cursor: all_of(chat.follow(cursor)),
    "follow from now": lambda chat, _: all_of(chat.follow("now")),
    "follow to the end of a run": lambda chat, cursor: all_of(chat.follow(cursor, ends_with_run="run-1")),
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
@pytest.mark.parametrize("is_old", [True, False], ids=["a handle that wrote", "a new handle"])
async def test_whatever_is_tried_says_that_it_was_deleted(one: EventLog, attempt: str, is_old: bool) -> None:
    old = chat(one)
    await old.add(user("hello"), user("again"))
    cursor = str((await old.append(*notes(1))).cursor)
    assert await old.delete()
    with pytest.raises(ConversationDeleted, match=WORDS), anyio.fail_after(PATIENCE):
        await ATTEMPTS[attempt](old if is_old else chat(one), cursor)


async def test_a_conversation_that_never_was_is_not_deleted(one: EventLog) -> None:
    assert not await chat(one).delete()
    assert await all_of(chat(one).read()) == []
    await fill(one, "a")
    assert [event.version for event in await all_of(chat(one).read())] == [1, 2, 3]  # type: ignore[attr-defined]


async def test_it_leaves_the_list_of_conversations(one: EventLog) -> None:
    await fill(one, "a", "b", "c")
    assert await chat(one, "b").delete()
    assert await chat(one, "b").delete(), "again"
    assert await all_of(one.tenant("t").conversations()) == ["a", "c"]


async def test_an_open_run_is_only_deleted_by_force_and_its_holder_is_told(one: EventLog) -> None:
    conversation = chat(one)

    async def holder() -> None:
        async with conversation.run(agent="weather") as run:
            await run.add(user("hello"))
            with pytest.raises(ConversationBusy, match="is open, held by"):
                await chat(one).delete()
            async with run.service_call() as call:
                assert await chat(one).delete(force=True)
                await call.complete(assistant("fine"))

    with pytest.raises(ConversationDeleted, match=WORDS):
        await holder()
    head = await conversation.head()
    assert (head.deleted, head.why, head.runs, head.last.version) == (True, "deleted", (), 3)


async def test_reading_that_had_begun_ends_with_the_error(one: EventLog) -> None:
    for number in range(3):
        await chat(one).append(*notes(*range(400)), operation_id=f"op-{number}")
    for reverse in (False, True):
        reading = chat(one).pages(reverse=reverse)
        assert len(await anext(reading)) == 500
        if not reverse:
            continue
        await chat(one).delete()
        with pytest.raises(ConversationDeleted):
            await anext(reading)


@pytest.mark.parametrize("hints", [True, False])
async def test_a_live_follower_is_told(one: EventLog, hints: bool) -> None:
    one.hub.hints = hints
    await fill(one, "a")
    followers = [
        chat(one).follow(poll=60 if hints else 0.05),
        chat(one).follow(types=["x"], poll=60 if hints else 0.05),
    ]
    for follower in followers:
        await until(follower, Kind.CAUGHT_UP)
    async with anyio.create_task_group() as tasks:
        for follower in followers:
            tasks.start_soon(_is_told, follower)
        await anyio.sleep(0.05)
        await chat(one).delete()


async def _is_told(follower: AsyncIterator[object]) -> None:
    with anyio.fail_after(10), pytest.raises(ConversationDeleted, match=WORDS):
        await anext(follower)
    with pytest.raises(StopAsyncIteration):
        await anext(follower)


async def test_a_follower_that_is_behind_is_told_too(one: EventLog) -> None:
    await fill(one, "a", events=1)
    follower = chat(one).follow()
    await take(follower, 1)
    await fill(one, "a")
    await chat(one).delete()
    with anyio.fail_after(PATIENCE), pytest.raises(ConversationDeleted, match=WORDS):
        await all_of(follower)


async def test_a_follower_of_the_tenant_gets_past_it_and_goes_on_with_the_others(one: EventLog) -> None:
    await fill(one, "a", "b", "c")
    await chat(one, "b").delete()
    follower = one.tenant("t").follow()
    items = await until(follower, Kind.CAUGHT_UP)
    named = [(item.conversation, item.event.version) for item in items if item.event is not None]
    assert named == [("a", 1), ("a", 2), ("a", 3), ("c", 1), ("c", 2), ("c", 3)]
    await fill(one, "a", events=1)
    [event] = events_of(await take(follower, 1))
    assert event.version == 4
    again = await until(one.tenant("t").follow(str(items[-1].cursor)), Kind.CAUGHT_UP)
    assert [event.version for event in events_of(again)] == [4]


async def test_a_live_follower_of_the_tenant_is_not_held_up_by_a_deletion(one: EventLog) -> None:
    await fill(one, "a", "b")
    follower = one.tenant("t").follow(poll=60)
    await until(follower, Kind.CAUGHT_UP)
    await chat(one, "a").delete()
    with anyio.fail_after(10):
        item = await anext(follower)
    assert (item.kind, item.event) == (Kind.SKIPPED, None)
    await fill(one, "b", "c", events=1)
    items = await take(follower, 2)
    assert [(item.conversation, item.event.version) for item in items if item.event] == [("b", 4), ("c", 1)]


async def test_a_cursor_within_an_operation_goes_on_when_that_was_deleted(one: EventLog) -> None:
    await chat(one).append(*notes(1, 2, 3))
    await fill(one, "b", events=1)
    cursor = (await take(one.tenant("t").follow(), 2))[-1].cursor
    await chat(one).delete()
    items = await until(one.tenant("t").follow(str(cursor)), Kind.CAUGHT_UP)
    assert [(item.conversation, item.event.version) for item in items if item.event] == [("b", 1)]


async def test_an_event_of_the_deletions_name_is_an_event(one: EventLog) -> None:
    await chat(one).append(Draft("conversation-deleted", {}))
    items = await until(one.tenant("t").follow(), Kind.CAUGHT_UP)
    assert [event.type for event in events_of(items)] == ["conversation-deleted"]
