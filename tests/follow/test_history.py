"""The history as it grows: the snapshot and every change together are what a fresh load gives, at each version."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import anyio
import pytest
from hypothesis import given

from eventlog import Conversation, CursorInvalid, Draft, Event, EventLog, Message, Mode, assistant, tool_call, user
from eventlog.store.memory import MemoryStore
from projections import history
from projections.change import Changes, Left, apply
from projections.following import HistoryChange
from projections.history import build
from projections.view import View
from tests.follow.following import PATIENCE
from tests.history import strategies

CONVERSATION: Conversation = EventLog(MemoryStore(partitions=1)).tenant("t").conversation("c")


def messages_at(events: list[Event], version: int) -> tuple[Message, ...]:
    return build(events[:version], CONVERSATION).messages


@given(strategies.logs())
def test_the_changes_give_what_a_fresh_load_gives_at_each_version(events: list[Event]) -> None:
    changes = Changes([], CONVERSATION.log.tag)
    messages: tuple[Message, ...] = ()
    for event in events:
        change = changes.take(event)
        before, messages = messages, apply(messages, change)
        assert change.version == event.version
        assert messages == messages_at(events, event.version)
        if change.removed or change.added:
            assert change.removed == 0 or change.added == () or before[change.start] != messages[change.start]
        removed = before[change.start : change.start + change.removed]
        gone = {version for message in removed for version in message.versions}
        come = {version for message in change.added for version in message.versions}
        assert {version for left in change.left for version in left.versions} >= gone - come
        assert set(change.entered) >= come - gone
        assert not set(change.entered) & {version for message in before for version in message.versions}
        assert {left.why for left in change.left} <= {"rewound", "compacted"}


@given(strategies.logs())
def test_from_any_version_on_they_do_so_too(events: list[Event]) -> None:
    for start in range(0, len(events) + 1, max(1, len(events) // 4)):
        changes = Changes(events[:start], CONVERSATION.log.tag)
        messages = messages_at(events, start)
        for event in events[start:]:
            messages = apply(messages, changes.take(event))
        assert messages == messages_at(events, len(events))


@given(strategies.broken_logs())
def test_of_a_log_that_makes_no_sense_they_give_the_same_as_a_load(events: list[Event]) -> None:
    changes = Changes([], CONVERSATION.log.tag)
    messages: tuple[Message, ...] = ()
    for event in events:
        messages = apply(messages, changes.take(event))
        assert messages == messages_at(events, event.version)


@given(strategies.logs())
def test_somebody_who_changes_a_message_changes_only_their_own(events: list[Event]) -> None:
    changes = Changes([], CONVERSATION.log.tag)
    expected = [messages_at(events, event.version) for event in events]
    messages: tuple[Message, ...] = ()
    for event, those in zip(events, expected, strict=True):
        change = changes.take(event)
        messages = apply(messages, change)
        assert messages == those
        for message in change.added:
            message.parts.append({"type": "text", "content": "mine"})
        messages = those


class Window:
    """A chat window: what it shows, and up to which version."""

    def __init__(self) -> None:
        self.messages: tuple[Message, ...] = ()
        self.version = -1
        self.changes: list[HistoryChange] = []

    def take(self, item: View | HistoryChange) -> None:
        if isinstance(item, View):
            self.messages = item.messages
        else:
            self.messages = history_apply(self.messages, item)
            self.changes.append(item)
        self.version = item.version


history_apply = apply


async def show(chat: Conversation, window: Window, version: int, **options: Any) -> None:
    """Follow until this version is shown."""
    with anyio.fail_after(PATIENCE):
        async with aclosing(history.follow(chat, **options)) as items:
            while window.version < version:
                window.take(await anext(items))


async def turn(chat: Conversation, text: str, mode: Mode = Mode.PER_SERVICE_CALL) -> None:
    async with chat.run(mode) as run:
        await run.add(user(text))
        async with run.service_call() as call:
            await call.complete(assistant(tool_call("a", "tool")))
        [function_call] = call.function_calls
        await run.add_result(function_call, "out")
        async with run.service_call() as call:
            await call.complete(assistant("done " + text))


@pytest.mark.anyio
async def test_a_window_shows_what_the_service_holds_at_each_version(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    await turn(chat, "one")
    window = Window()
    async with anyio.create_task_group() as tasks:

        async def write() -> None:
            await turn(chat, "two", Mode.PER_RUN)
            await chat.compact(9, [user("summary")], expected=(await chat.head()).last)
            await chat.rewind(3, expected=(await chat.head()).last)
            await turn(chat, "three")
            await chat.append(Draft("x-end", {}))

        tasks.start_soon(write)
        with anyio.fail_after(PATIENCE):
            async with aclosing(history.follow(chat)) as items:
                async for item in items:
                    window.take(item)
                    assert window.messages == (await history.load(chat, at=window.version)).messages
                    newest = [event async for event in chat.read(reverse=True, limit=1)]
                    if [(event.version, event.type) for event in newest] == [(window.version, "x-end")]:
                        break
    assert window.messages == (await history.load(chat)).messages
    assert {left.why for change in window.changes for left in change.left} == {"compacted", "rewound"}


@pytest.mark.anyio
async def test_a_compaction_says_what_gave_way_to_what(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    await chat.add(user("a"))
    await chat.add(user("b"))
    await chat.add(user("c"))
    window = Window()
    await show(chat, window, 3)
    cursor = (await chat.head()).last
    await chat.compact(2, [user("summary")], expected=cursor)
    await show(chat, window, 4, after=cursor)
    [change] = window.changes
    assert (change.version, change.start, change.removed, change.entered) == (4, 0, 2, (4,))
    assert change.left == (Left((1,), "compacted"), Left((2,), "compacted"))
    assert [message.text for message in window.messages] == ["summary", "c"]
    assert change.cursor == (await chat.head()).last


@pytest.mark.anyio
async def test_whoever_holds_a_view_goes_on_without_another_snapshot(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    await turn(chat, "one")
    view = await history.load(chat, at=4)
    window = Window()
    window.take(view)
    await show(chat, window, (await chat.head()).last.version, after=str(view.cursor))
    assert window.messages == (await history.load(chat)).messages
    assert all(isinstance(change, HistoryChange) for change in window.changes)


@pytest.mark.anyio
async def test_a_change_of_no_message_tells_how_far_the_log_was_read(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    window = Window()
    async with aclosing(history.follow(chat)) as items:
        window.take(await anext(items))
        await chat.append(Draft("x-note", {}))
        with anyio.fail_after(PATIENCE):
            window.take(await anext(items))
    [change] = window.changes
    assert (change.version, change.removed, change.added, change.left, change.entered) == (1, 0, (), (), ())


@pytest.mark.anyio
async def test_a_cursor_of_another_conversation_is_refused(log: EventLog) -> None:
    chat, other = log.tenant("t").conversation("c"), log.tenant("t").conversation("d")
    await other.add(user("a"))
    with pytest.raises(CursorInvalid):
        await anext(history.follow(chat, (await other.head()).last))
