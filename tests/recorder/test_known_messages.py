"""A message that was read from the log is known by its event, and not recorded again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eventlog import Conversation, EventLog, Message, text, user
from projections import history
from tests.recorder.steps import agree, events

pytestmark = pytest.mark.anyio


async def texts(chat: Conversation) -> list[str]:
    return [message.text for message in (await history.load(chat)).messages]


async def test_what_was_read_is_not_recorded_again_in_a_run_or_outside(chat: Conversation) -> None:
    await chat.add(user("a"))
    read = (await history.load(chat)).messages
    await chat.add(*read, user("b"))
    assert await texts(chat) == ["a", "b"]
    assert await chat.add(*read) is None
    async with chat.run() as run:
        assert await run.add(*(await history.load(chat)).messages) is None
        assert run.unsent == ()
        await run.add(*read, user("c"))
        assert len(run.unsent) == 1
        await agree(run)


async def test_what_was_read_and_changed_since_is_not_recorded_again(chat: Conversation) -> None:
    await chat.add(user("a"))
    [read] = (await history.load(chat)).messages
    read.parts = [text("corrected")]
    async with chat.run() as run:
        assert await run.add(read) is None
    assert await chat.add(read) is None
    assert len(await events(chat, "message-added")) == 1


async def test_a_new_message_with_what_was_read_is_recorded(chat: Conversation) -> None:
    await chat.add(user("a"))
    [read] = (await history.load(chat)).messages
    await chat.add(Message(read.role, [text("corrected")]))
    await chat.add(Message(read.role, read.parts))
    assert await texts(chat) == ["a", "corrected", "a"]


async def test_what_was_read_from_another_log_is_new_in_this_one(log: EventLog, chat: Conversation) -> None:
    other = log.tenant("t").conversation("other")
    await other.add(user("a"))
    await chat.add(*(await history.load(other)).messages)
    assert await texts(chat) == ["a"]


async def test_what_was_read_from_a_log_of_the_same_name_elsewhere_is_new_in_this_one(chat: Conversation) -> None:
    async with EventLog.open("memory://") as elsewhere:
        other = elsewhere.tenant(chat.tenant).conversation(chat.id)
        await other.add(user("there"))
        await other.add(user("there, too"))
        read = (await history.load(other)).messages
    await chat.add(user("here"))
    async with chat.run() as run:
        assert await run.add(*read) is not None
        assert len(run.unsent) == 2
        await agree(run)


async def test_a_message_that_claims_a_version_beyond_the_end_is_new(chat: Conversation) -> None:
    await chat.add(user("a"))
    [read] = (await history.load(chat)).messages
    assert await chat.add(replace(read, versions=(99,))) is not None
    assert await texts(chat) == ["a", "a"]
