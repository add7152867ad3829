"""The chat-completions form, there and back."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog import EventLog, Message, Mode
from gateway.formats import openai_chat
from gateway.import_plan import plan
from gateway.importing import content, record
from projections import history

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
WORDS = [
    "name",
    "refusal",
    "audio",
    "extra",
    "parts",
    "author",
    "openai_chat",
    "function_call",
    "content",
    "type",
    "versions",
]
NAMES = TEXT | st.sampled_from(WORDS)
TYPES = [
    "text",
    "image_url",
    "file",
    "uri",
    "blob",
    "reasoning",
    "refusal",
    "tool_call",
    "tool_call_response",
    "openai_chat",
]


def objects(required: dict[str, st.SearchStrategy[Any]], optional: dict[str, Any] | None = None) -> Any:
    """Objects with these fields, and others of any name."""
    known = st.fixed_dictionaries(required, optional=optional or {})
    others = st.dictionaries(NAMES.filter(lambda name: name not in {*required, *(optional or {})}), JSON, max_size=2)
    return st.builds(lambda first, second: {**second, **first}, known, others)


PARTS = objects({"type": st.just("text"), "text": TEXT}) | objects(
    {"type": (st.sampled_from(TYPES) | TEXT).filter(lambda kind: kind != "text")}
)
CONTENT = TEXT | st.none() | st.lists(PARTS, max_size=3)
CALL_IDS = st.sampled_from(["t1", "t2", ""]) | TEXT
FUNCTIONS = objects(
    {"id": CALL_IDS, "function": objects({"name": TEXT}, {"arguments": TEXT | JSON})}, {"type": st.just("function")}
)
CUSTOM = objects({"id": CALL_IDS, "type": st.just("custom"), "custom": objects({"name": TEXT}, {"input": TEXT})})
CALLS = st.none() | st.lists(FUNCTIONS | CUSTOM, max_size=3)
MESSAGES = (
    objects({"role": st.sampled_from(["system", "developer", "user"])}, {"content": CONTENT})
    | objects({"role": st.just("assistant")}, {"content": CONTENT, "tool_calls": CALLS})
    | objects({"role": st.just("tool"), "tool_call_id": CALL_IDS, "content": TEXT | st.lists(PARTS, max_size=2)})
)


def same(one: Any, other: Any) -> bool:
    """Equal as JSON values: ``True`` is not 1, and 1.0 is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@given(MESSAGES)
@settings(max_examples=300, deadline=None)
def test_a_message_of_this_form_comes_back_as_it_was(raw: dict[str, Any]) -> None:
    assert same(openai_chat.write_message(openai_chat.read_message(raw, "m")), [raw])


@given(st.lists(MESSAGES, max_size=8), st.sampled_from(Mode))
@settings(max_examples=150, deadline=None)
def test_a_conversation_comes_back_through_the_log_less_its_unsent_end(raw: list[Any], mode: Mode) -> None:
    calls = [index for index, message in enumerate(raw) if message["role"] == "assistant"]
    sent = raw[: calls[-1] + 1] if calls else []

    async def there_and_back() -> None:
        transcript = openai_chat.read_line(json.dumps({"id": "c", "messages": raw}).encode())
        async with EventLog.open("memory://") as log:
            conversation = log.tenant("t").conversation("c")
            operations = plan("c", transcript.messages, form="openai-chat", mode=mode)
            assert await record(conversation, operations)
            assert not await record(conversation, operations)
            view = await history.load(conversation)
            found = json.loads(openai_chat.write_line("c", list(view.messages)))
            assert same(found, {"id": "c", "messages": sent})
            told = await content(conversation)
            assert (told.in_view, told.dropped.total()) == (len(sent), len(raw) - len(sent))

    anyio.run(there_and_back)


def test_text_is_text_and_calls_are_calls_in_our_form() -> None:
    raw = {
        "role": "assistant",
        "content": "Let me look.",
        "name": "amy",
        "refusal": None,
        "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}],
    }
    assert openai_chat.read_message(raw, "m") == Message(
        "assistant",
        [
            {"type": "text", "content": "Let me look."},
            {"type": "tool_call", "id": "t1", "name": "f", "arguments": '{"a": 1}'},
        ],
        author="amy",
        extra={"refusal": None},
    )


@pytest.mark.parametrize(
    ("part", "written"),
    [
        ({"type": "tool_call_response", "id": "t", "response": {"a": 1}}, '{"a":1}'),
        ({"type": "tool_call_response", "id": "t", "response": [1, 2]}, "[1,2]"),
        ({"type": "tool_call_response", "id": "t", "response": "plain"}, "plain"),
        ({"type": "tool_call_response", "id": "t", "response": None}, "null"),
    ],
)
def test_a_result_of_any_json_is_written_as_the_form_allows(part: dict[str, Any], written: str) -> None:
    assert openai_chat.write_message(Message("tool", [part])) == [
        {"role": "tool", "tool_call_id": "t", "content": written}
    ]


def test_several_results_in_one_message_are_written_as_several() -> None:
    parts = [{"type": "tool_call_response", "id": name, "response": name} for name in "ab"]
    assert [raw["tool_call_id"] for raw in openai_chat.write_message(Message("tool", parts))] == ["a", "b"]


def test_marks_that_others_left_do_no_harm() -> None:
    call = {"type": "tool_call", "id": "t", "name": "f", "extra": {"openai_chat": {"kind": "?", "body": 7, "call": []}}}
    message = Message("assistant", [call], extra={"openai_chat": {"fields": 1, "content": 2}})
    assert openai_chat.write_message(message) == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "t", "type": "function", "function": {"name": "f"}}],
        }
    ]
