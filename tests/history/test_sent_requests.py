"""What is sent and shown where callers do what they should not, or what is rare."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from eventlog import (
    AlreadyAnswered,
    Conversation,
    Draft,
    EditRefused,
    EventLog,
    FunctionCall,
    Message,
    Run,
    assistant,
    text,
    tool,
    tool_call,
    tool_result,
    user,
)
from projections import history
from projections.repair import NO_RESULT, repair

pytestmark = pytest.mark.anyio

CALL = assistant(tool_call("a", "look", {}))


@pytest.fixture
async def chat(log: EventLog) -> Conversation:
    return log.tenant("t").conversation("c")


def said(messages: Iterable[Message]) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(message.role, message.parts) for message in messages]


def roles(messages: Iterable[Message]) -> list[str]:
    return [message.role for message in messages]


def unpaired(messages: Iterable[Message]) -> list[str]:
    """What a strict service would refuse: a result without its call before it, a call without a result."""
    found, waiting = [], []
    for part in (part for message in messages for part in message.parts):
        if part["type"] == "tool_call":
            waiting.append(part["id"])
        elif part["type"] == "tool_call_response" and part["id"] in waiting:
            waiting.remove(part["id"])
        elif part["type"] == "tool_call_response":
            found.append(part["id"])
    return found + waiting


async def turn(run: Run, *reply: Message, add: tuple[Message, ...] = ()) -> tuple[list[Message], list[FunctionCall]]:
    """One service call: what it sent, and the function calls of its reply."""
    if add:
        await run.add(*add)
    async with run.service_call() as call:
        sent = await history.for_call(call)
        await call.complete(*reply)
    return sent, call.function_calls


async def asked(chat: Conversation, *, answer: bool = False) -> FunctionCall:
    """A function call of a committed run; with its result, when wanted, and the service's last word."""
    async with chat.run() as run:
        _, [function_call] = await turn(run, CALL, add=(user("q"),))
        if answer:
            await run.add_result(function_call, 1)
            await turn(run, assistant("ok"))
    return function_call


async def early_result(chat: Conversation, pending: Run) -> None:
    """A per-run run asks, and another run carries the answer before the first is committed."""
    _, [function_call] = await turn(pending, CALL, add=(user("q"),))
    async with chat.run(exclusive=False) as other:
        await other.add_result(function_call, 1)
        await turn(other, assistant("x"), add=(user("y"),))


@pytest.mark.parametrize("continues", [None, {"response": "s1"}], ids=["whole", "continuing"])
async def test_an_input_that_is_named_twice_is_sent_once(chat: Conversation, continues: dict[str, Any] | None) -> None:
    async with chat.run() as run:
        added = await run.add(user("a"))
        assert added is not None
        async with run.service_call(sends=[added.first, added.first], continues=continues) as call:
            sent = await history.for_call(call)
            await call.complete(assistant("x"))
    assert call.sends == (added.first,)
    assert said(sent) == [("user", [text("a")])]
    assert said((await history.load(chat)).messages) == [*said(sent), ("assistant", [text("x")])]


async def test_what_is_no_message_is_not_sent_though_it_is_named(chat: Conversation) -> None:
    async with chat.run() as run:
        added = await run.add(user("a"))
        assert added is not None
        async with run.service_call(sends=[run.progress.first, added.first]) as call:
            assert said(await history.for_call(call)) == [("user", [text("a")])]
            await call.complete(assistant("x"))
    assert roles((await history.load(chat)).messages) == ["user", "assistant"]


async def test_after_a_failure_the_next_call_sends_the_same_and_the_view_is_what_was_sent(chat: Conversation) -> None:
    async with chat.run("per-run") as run:
        _, [function_call] = await turn(run, CALL, add=(user("q"),))
        await run.add_result(function_call, 1)
        async with run.service_call() as call:
            refused = await history.for_call(call)
            await call.fail("no")
        sent, _ = await turn(run, assistant("end"))
    assert said(sent) == said(refused)
    assert said((await history.load(chat)).messages) == [*said(sent), ("assistant", [text("end")])]


async def test_a_window_cuts_no_pair_that_stands_in_a_summary(chat: Conversation) -> None:
    await chat.add(user("a"), user("b"))
    last = (await chat.head()).last
    summary = [user("sum"), CALL, tool(tool_result("a", 1)), assistant("ok")]
    await chat.compact(last.version, summary, expected=last)
    for wanted in range(1, 6):
        view = await history.load(chat, last=wanted)
        assert unpaired(view.messages) == []
        assert view.messages
        assert view.window is not None
        assert view.window.given == len(view.messages)
    assert said((await history.load(chat, last=2)).messages) == said(summary[1:])


async def test_a_result_whose_call_has_yet_to_enter_is_not_compacted_away(chat: Conversation) -> None:
    async with chat.run("per-run", exclusive=False) as pending:
        await early_result(chat, pending)
        last = (await chat.head()).last
        with pytest.raises(EditRefused, match="whose run is not committed yet"):
            await chat.compact(last.version, [user("sum")], expected=last)
    last = (await chat.head()).last
    await chat.compact(last.version, [user("sum")], expected=last)
    view = await history.load(chat)
    assert roles(view.messages) == ["user"]
    assert (view.open_calls, view.stray_results) == ((), ())


async def test_a_call_that_waits_for_approval_is_not_compacted_away(chat: Conversation) -> None:
    function_call = await asked(chat)
    await chat.append(Draft("approval-requested", {"function_call": function_call.version}))
    last = (await chat.head()).last
    with pytest.raises(EditRefused, match="has no result in the history yet"):
        await chat.compact(last.version, [user("sum")], expected=last)


async def test_a_result_that_entered_before_its_call_closes_it_and_repair_puts_it_behind(chat: Conversation) -> None:
    async with chat.run("per-run", exclusive=False) as pending:
        await early_result(chat, pending)
    view = await history.load(chat)
    assert (view.open_calls, view.stray_results) == ((), ())
    assert unpaired(view.messages) == ["a", "a"]
    repaired = repair(view)
    assert unpaired(repaired.messages) == []
    assert roles(repaired.messages) == ["user", "assistant", "user", "assistant", "tool"]
    assert repaired.messages[-1].parts == [tool_result("a", 1)]


@pytest.mark.parametrize(
    "mixed",
    [
        (Message("tool", [text("a"), text("b"), tool_result("nope", 1)]),),
        (Message("tool", [], "m"), Message("tool", [tool_result("nope", 1)], "m")),
        (Message("tool", [tool_result("nope", 1), text("a"), tool_result("nope", 2)]),),
    ],
    ids=["texts-before", "an-empty-one-of-the-same-id", "a-text-between"],
)
async def test_repair_takes_stray_results_out_of_mixed_tool_messages_and_leaves_the_rest(
    chat: Conversation, mixed: tuple[Message, ...]
) -> None:
    async with chat.run() as run:
        await turn(run, assistant("x"), add=mixed)
    view = await history.load(chat)
    repaired = repair(view)
    assert len(view.stray_results) == sum(part["type"] != "text" for message in mixed for part in message.parts)
    assert repaired.stray_results == ()
    assert unpaired(repaired.messages) == []
    kept = [part for message in mixed for part in message.parts if part["type"] == "text"]
    assert [part for message in repaired.messages for part in message.parts] == [*kept, text("x")]


async def test_a_message_that_is_posted_outside_is_one_message(chat: Conversation) -> None:
    parts = [text("let me see"), tool_call("a", "look", {}), tool_call("b", "look", {}), text("wait")]
    await chat.add(assistant(*parts), user("next"))
    await chat.add(user("third"))
    view = await history.load(chat)
    assert said(view.messages) == [("assistant", parts), ("user", [text("next")]), ("user", [text("third")])]
    assert [call.call_id for call in view.open_calls] == ["a", "b"]
    repaired = repair(view)
    assert roles(repaired.messages) == ["assistant", "tool", "user", "user"]
    assert [(part["id"], part["response"]) for part in repaired.messages[1].parts] == [
        ("a", NO_RESULT),
        ("b", NO_RESULT),
    ]


async def test_a_result_in_a_message_of_the_user_comes_back_as_a_tools(chat: Conversation) -> None:
    async with chat.run() as run:
        await turn(run, CALL, add=(user("q"),))
        sent, _ = await turn(run, assistant("ok"), add=(user("see", tool_result("a", 1)),))
    view = await history.load(chat)
    assert said(view.messages)[2:] == [
        ("user", [text("see")]),
        ("tool", [tool_result("a", 1)]),
        ("assistant", [text("ok")]),
    ]
    assert said(sent) == said(view.messages)[:-1]
    assert view.open_calls == ()


@pytest.mark.parametrize("as_message", [False, True], ids=["result", "message"])
async def test_a_bare_second_result_is_refused_by_the_run_that_holds_one(chat: Conversation, as_message: bool) -> None:
    async with chat.run() as run:
        _, [function_call] = await turn(run, CALL, add=(user("q"),))
        await run.add_result(function_call, 1)
        with pytest.raises(AlreadyAnswered):
            await (run.add(tool(tool_result("a", 2))) if as_message else run.add_result("a", 2))
        with pytest.raises(AlreadyAnswered):
            await run.add_result(function_call, 2)
        sent, _ = await turn(run, assistant("x"))
    assert unpaired(sent) == []
    view = await history.load(chat)
    assert view.stray_results == ()
    assert roles(view.messages) == ["user", "assistant", "tool", "assistant"]


async def test_a_second_result_of_another_run_is_sent_as_its_sender_decided_and_named_stray(chat: Conversation) -> None:
    function_call = await asked(chat, answer=True)
    async with chat.run() as run:
        second = await run.add_result(function_call, 2)
        assert second is not None
        sent, _ = await turn(run, assistant("x"), add=(user("go"),))
    assert unpaired(sent) == ["a"]
    view = await history.load(chat)
    assert view.stray_results == (second.first,)
    assert unpaired(repair(view).messages) == []
    assert {fate.fate for fate in await history.explain(chat)} == {"in-view"}


async def test_of_a_result_in_a_closed_run_and_one_outside_the_first_is_carried(chat: Conversation) -> None:
    async with chat.run() as run:
        _, [function_call] = await turn(run, CALL, add=(user("q"),))
        await run.add_result(function_call, 1)
    await chat.add_result(function_call, 2)
    async with chat.run() as run:
        sent, _ = await turn(run, assistant("x"), add=(user("go"),))
    assert unpaired(sent) == []
    assert [message.parts for message in sent if message.role == "tool"] == [[tool_result("a", 1)]]


async def test_a_result_posted_outside_for_a_call_of_an_open_run_is_sent_by_its_next_call(chat: Conversation) -> None:
    async with chat.run() as run:
        _, [function_call] = await turn(run, CALL, add=(user("q"),))
        posted = await chat.add_result(function_call, 1)
        assert (await chat.progress(run.id)).unsent == [posted.first]
        sent, _ = await turn(run, assistant("x"))
    assert unpaired(sent) == []
    assert (await history.load(chat)).open_calls == ()


@pytest.mark.parametrize("decision", ["approved", "denied"])
async def test_an_approval_that_was_resolved_stays_resolved_over_a_rewind(chat: Conversation, decision: str) -> None:
    function_call = await asked(chat)
    await chat.append(Draft("approval-requested", {"function_call": function_call.version}))
    waiting = await history.load(chat)
    assert [call.awaits_approval for call in waiting.open_calls] == [True]
    await chat.append(Draft("approval-resolved", {"function_call": function_call.version, "decision": decision}))
    await chat.rewind(waiting.version, expected=(await chat.head()).last)
    view = await history.load(chat)
    assert [(call.call_id, call.awaits_approval) for call in view.open_calls] == [("a", False)]
    assert said(view.messages) == said(waiting.messages)
