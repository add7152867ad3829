"""What cannot be taken is refused with an error of ours that says so, and nothing is appended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from eventlog import (
    Conversation,
    Draft,
    EditRefused,
    EventLog,
    InvalidEvent,
    InvalidId,
    InvalidInput,
    Message,
    Run,
    assistant,
    user,
)
from projections import history

pytestmark = pytest.mark.anyio

Given = Awaitable[Any] | AbstractAsyncContextManager[Any]


def deep() -> Any:
    value: Any = None
    for _ in range(100_000):
        value = [value]
    return value


def cyclic() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


OUTSIDE: dict[str, Callable[[Any], Given]] = {
    "a mode that is none": lambda chat: chat.run("bogus"),
    "a mode that is a number": lambda chat: chat.run(5),
    "a parent that is no pair": lambda chat: chat.run(parent=("a",)),
    "a parent that is a text": lambda chat: chat.run(parent="ab"),
    "a lease that is a text": lambda chat: chat.run(lease="x"),
    "a lease of nothing": lambda chat: chat.run(lease=0),
    "a lease that is no number": lambda chat: chat.run(lease=float("nan")),
    "labels that are a number": lambda chat: chat.run(labels=5),
    "a label that is no text": lambda chat: chat.run(labels={"a": 5}),
    "an agent that is a number": lambda chat: chat.run(agent=5),
    "parts that are none": lambda chat: chat.add(Message("user", None)),  # type: ignore[arg-type]
    "parts that are a text": lambda chat: chat.add(Message("user", "hello")),  # type: ignore[arg-type]
    "a part that is a number": lambda chat: chat.add(Message("user", [5])),  # type: ignore[list-item]
    "a part whose type is a list": lambda chat: chat.add(assistant({"type": [], "id": "a", "name": "x"})),
    "a call whose id is a list": lambda chat: chat.add(assistant({"type": "tool_call", "id": [], "name": "x"})),
    "a role that is none": lambda chat: chat.add(Message(None, [])),  # type: ignore[arg-type]
    "an empty role": lambda chat: chat.add(Message("", [])),
    "a message that is a text": lambda chat: chat.add("hello"),
    "no message at all": lambda chat: chat.add(),
    "an expectation that is a number": lambda chat: chat.add(user("x"), expected=5),
    "an expectation that is none": lambda chat: chat.add(user("x"), expected=None),
    "an expectation that is a dict": lambda chat: chat.add(user("x"), expected={}),
    "an operation id that is empty": lambda chat: chat.add(user("x"), operation_id=""),
    "an operation id that is bytes": lambda chat: chat.add(user("x"), operation_id=b"x"),
    "a draft that is a tuple": lambda chat: chat.append(("x", {})),
    "a draft that is a dict": lambda chat: chat.append({"type": "x"}),
    "a type that is a number": lambda chat: chat.append(Draft(5, {})),  # type: ignore[arg-type]
    "a draft of a run": lambda chat: chat.append(Draft("x", {}, run="r")),
    "a key with half a character": lambda chat: chat.append(Draft("x", {"\ud800": 1})),
    "an output without bottom": lambda chat: chat.add_result("c", deep()),
    "an extra without bottom": lambda chat: chat.add(Message("user", [], extra={"a": deep()})),
    "a meta without bottom": lambda chat: chat.append(Draft("x", {}, meta={"a": deep()})),
    "data without bottom": lambda chat: chat.append(Draft("x", {"a": deep()})),
    "an output that holds itself": lambda chat: chat.add_result("c", cyclic()),
    "an integer of 65 bits": lambda chat: chat.add_result("c", 1 << 64),
    "a number that is none": lambda chat: chat.add_result("c", float("nan")),
    "bytes": lambda chat: chat.add_result("c", b"x"),
    "a set": lambda chat: chat.add_result("c", {1}),
    "a key that is a number": lambda chat: chat.add_result("c", {1: 2}),
    "a call that is none": lambda chat: chat.add_result(None, 1),
    "a cursor that is none of ours": lambda chat: anext(chat.read("bogus")),
    "a cursor that is a number": lambda chat: anext(chat.read(5)),
    "a cursor of another log": lambda chat: anext(chat.read(chat.log._replace(conversation="d").cursor(1, 1))),
    "a window of nothing": lambda chat: history.load(chat, last=0),
    "a window that is a text": lambda chat: history.load(chat, last="1"),  # type: ignore[arg-type]
    "a version that is a text": lambda chat: history.load(chat, at="1"),  # type: ignore[arg-type]
    "a version before the first": lambda chat: history.load(chat, at=-1),
    "a version beyond the end": lambda chat: history.load(chat, at=99),
    "an explanation before the first": lambda chat: history.explain(chat, at=-1),
    "an explanation beyond the end": lambda chat: history.explain(chat, at=99),
    "an explanation of no view": lambda chat: history.explain(chat, view="bogus"),  # type: ignore[arg-type]
    "a view that is none": lambda chat: history.load(chat, view="bogus"),  # type: ignore[arg-type]
    "a summary that is none": lambda chat: chat.compact(1, [None], expected=chat.log.cursor(0, 0)),
    "a summary without bottom": lambda chat: chat.compact(
        1, [Message("user", [{"type": "x", "a": deep()}])], expected=chat.log.cursor(0, 0)
    ),
    "an edit at no cursor": lambda chat: chat.rewind(0, expected="any"),
    "a run id that is empty": lambda chat: chat.resume(""),
    "a run id that is none": lambda chat: chat.resume(None),
}

INSIDE: dict[str, Callable[[Any], Given]] = {
    "a continuation that is a list": lambda run: run.service_call(continues=[1]),
    "a text of versions": lambda run: run.service_call(sends="abc"),
    "a version that is 0": lambda run: run.service_call(sends=[0]),
    "a version beyond the end": lambda run: run.service_call(sends=[99]),
    "what is ahead and no version": lambda run: run.service_call(ahead=["x"]),
    "a model that is a number": lambda run: run.service_call(model=5),
    "a reason that is none": lambda run: run.abort("bogus"),
    "an outcome that is none": lambda run: run.commit("bogus"),
    "usage that is a list": lambda run: run.commit(usage=[]),
    "a message that is a number": lambda run: run.add(5),
    "an output that is a set": lambda run: run.add_result("c", {1}),
    "an id that is a number": lambda run: run.add_result("c", 1, message_id=5),
}

EDITS: dict[str, Callable[[Conversation], Given]] = {
    "a rewind to a text": lambda chat: chat.rewind("x", expected=chat.log.cursor(0, 0)),  # type: ignore[arg-type]
    "a rewind to a fraction": lambda chat: chat.rewind(0.0, expected=chat.log.cursor(0, 0)),  # type: ignore[arg-type]
    "a rewind before the first": lambda chat: chat.rewind(-1, expected=chat.log.cursor(0, 0)),
}

BAD_IDS = ["", "x" * 1001, "\ud800", "a\udfffb", "é" * 501, b"x", 5, None]


async def take(given: Given) -> None:
    """Do it, as far as it goes."""
    if isinstance(given, AbstractAsyncContextManager):
        async with given:
            pytest.fail("it was entered")
    await given


@pytest.mark.parametrize("what", OUTSIDE)
async def test_outside_a_run_it_is_invalid_and_nothing_is_appended(chat: Conversation, what: str) -> None:
    before = await chat.head()
    with pytest.raises(InvalidInput):
        await take(OUTSIDE[what](chat))
    assert await chat.head() == before


@pytest.mark.parametrize("what", INSIDE)
async def test_within_a_run_it_is_invalid_and_the_run_goes_on(chat: Conversation, what: str) -> None:
    async with chat.run() as run:
        before = (await chat.head()).last
        with pytest.raises(InvalidInput):
            await take(INSIDE[what](run))
        assert (await chat.head()).last == before
        await usable(run)


async def usable(run: Run) -> None:
    await run.add(user("x"))
    async with run.service_call() as call:
        assert call.number == 1
        with pytest.raises(InvalidInput):
            await call.fail(5)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            await call.fail("no", outcome="bogus")  # type: ignore[arg-type]
        with pytest.raises(InvalidEvent):
            await call.complete("hello")  # type: ignore[arg-type]
        await call.complete(assistant("hello"))


@pytest.mark.parametrize("what", EDITS)
async def test_an_edit_to_no_version_is_refused_and_nothing_is_appended(chat: Conversation, what: str) -> None:
    before = await chat.head()
    with pytest.raises(EditRefused):
        await take(EDITS[what](chat))
    assert await chat.head() == before


@pytest.mark.parametrize("bad", BAD_IDS, ids=lambda bad: ascii(bad)[:12])
async def test_an_id_that_cannot_be_one_is_refused_wherever_it_is_given(log: EventLog, bad: Any) -> None:
    chat = log.tenant("t").conversation("c")
    for name in (log.tenant, log.tenant("t").conversation, chat.resume):
        with pytest.raises(InvalidId):
            name(bad)
    if bad is None:  # which chooses one
        return
    with pytest.raises(InvalidId):
        chat.run(operation_id=bad)
    with pytest.raises(InvalidId):
        await chat.add(user("x"), operation_id=bad)
    with pytest.raises(InvalidInput):
        await chat.abort_run(bad)
