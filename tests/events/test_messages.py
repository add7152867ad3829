"""Messages become events and the same messages again."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from eventlog import recording
from eventlog.codec import decode, encode
from eventlog.errors import InvalidEvent
from eventlog.events import Draft, Event
from eventlog.messages import Message, assistant, system, text, tool, tool_call, tool_result, user
from projections.assembly import group
from tests.events import strategies

AT = "2026-01-02T03:04:05.000006Z"


def recorded(drafts: list[Draft]) -> list[Event]:
    documents = encode(drafts, "op", AT).documents
    return [decode(index + 1, 1, document) for index, document in enumerate(documents)]


def said(messages: list[Message]) -> list[tuple[Any, ...]]:
    """What a message says, with the types of its numbers and the order of its fields."""
    return [(m.role, repr(m.parts), m.message_id, m.author, repr(m.extra)) for m in messages]


@given(strategies.messages())
def test_messages_are_read_back_as_they_were_given(messages: list[Message]) -> None:
    before = copy.deepcopy(messages)
    for drafts in (recording.inputs(messages, "op", "r"), recording.outputs(messages, "op", "r", 1)):
        read = group(recorded(drafts), "tag")
        assert [(m.role, m.parts, m.message_id, m.author, m.extra) for m in read] == [
            (m.role, m.parts, m.message_id, m.author, m.extra) for m in before
        ]
        assert [version for message in read for version in message.versions] == list(range(1, len(drafts) + 1))
        assert {message.log for message in read} <= {"tag"}
    assert messages == before


@given(strategies.messages())
def test_an_output_carries_its_call_and_an_input_none(messages: list[Message]) -> None:
    assert {draft.call for draft in recording.outputs(messages, "op", "r", 7)} <= {7}
    assert {draft.call for draft in recording.inputs(messages, "op", "r")} <= {None}


def test_text_call_text_keep_their_order_in_one_message() -> None:
    message = assistant(
        "one", tool_call("a", "f", '{"x": 1}'), "two", tool_call("b", "f"), tool_call("a", "g"), "three"
    )
    drafts = recording.outputs([message], "op", "r", 1)
    assert [draft.type.partition("-")[0] for draft in drafts] == [
        "message",
        "function",
        "message",
        "function",
        "function",
        "message",
    ]
    (read,) = group(recorded(drafts), "tag")
    assert read.parts == message.parts
    assert read.versions == (1, 2, 3, 4, 5, 6)


def test_a_message_that_begins_with_a_call_keeps_its_extra_and_author() -> None:
    message = Message("assistant", [tool_call("a", "f"), text("x")], "m", "Ada", {"signature": "s"})
    (read,) = group(recorded(recording.outputs([message], "op", "r", 1)), "tag")
    assert (read.author, read.extra, read.parts) == ("Ada", {"signature": "s"}, message.parts)


def test_extra_of_a_call_and_of_its_message_stay_apart() -> None:
    call = {**tool_call("a", "f", {}), "extra": {"of": "call"}, "index": 0}
    message = Message("assistant", [call], "m", None, {"of": "message"})
    (read,) = group(recorded(recording.outputs([message], "op", "r", 1)), "tag")
    assert (read.parts, read.extra) == ([call], {"of": "message"})


def test_a_message_without_parts_is_still_a_message() -> None:
    (read,) = group(recorded(recording.inputs([user()], "op", "r")), "tag")
    assert (read.role, read.parts) == ("user", [])


def test_messages_without_an_id_stay_apart() -> None:
    messages = [user("same"), user("same"), system("same"), user("same")]
    read = group(recorded(recording.inputs(messages, "op", None)), "tag")
    assert [(m.role, m.text) for m in read] == [(m.role, m.text) for m in messages]
    assert len({m.message_id for m in read}) == 4


def test_results_of_one_message_id_that_stand_together_are_one_message() -> None:
    drafts = [recording.result("a", 1, "m"), recording.result("b", [text("x")], "m"), recording.result("c", None, "n")]
    assert [m.parts for m in group(recorded(drafts), "tag")] == [
        [tool_result("a", 1), tool_result("b", [text("x")])],
        [tool_result("c", None)],
    ]


def test_a_result_keeps_what_marks_it() -> None:
    draft = recording.result("a", "x", "m", answers=4, is_error=True, synthetic=True, author="t", extra={"k": 1})
    (read,) = group(recorded([draft]), "tag")
    assert read.parts == [{**tool_result("a", "x", is_error=True), "synthetic": True, "extra": {"k": 1}}]
    assert (read.role, read.author) == ("tool", "t")


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (user(5), "events[0].data.parts[0]"),  # type: ignore[arg-type]
        (user({"content": "x"}), "events[0].data.parts[0].type"),
        (assistant({"type": "tool_call", "name": "f"}), "events[0].data.call_id"),
        (assistant("x", {"type": "tool_call", "id": "a"}), "events[1].data.name"),
        (tool({"type": "tool_call_response", "response": 1}), "events[0].data.call_id"),
        (Message("", [text("x")]), "events[0].data.role"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_malformed_message_is_refused_with_the_path(message: Message, path: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        encode(recording.inputs([message], "op", "r"), "op", AT)
    assert caught.value.path == path


@pytest.mark.parametrize("value", ["hi", {"role": "user", "parts": []}, None, 5])
def test_what_is_no_message_is_told(value: Any) -> None:
    with pytest.raises(InvalidEvent, match="is not a message"):
        recording.inputs([value], "op", None)


def test_a_result_without_a_response_is_refused() -> None:
    """None is an answer, too; no answer at all is not."""
    with pytest.raises(InvalidEvent) as caught:
        encode(recording.inputs([tool({"type": "tool_call_response", "id": "a"})], "op", "r"), "op", AT)
    assert caught.value.path == "events[0].data.output"
