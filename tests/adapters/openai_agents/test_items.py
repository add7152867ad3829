"""Items come back as they were given, whatever they hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.codec import decode, encode
from gateway.adapters.openai_agents import ItemInvalid
from gateway.adapters.openai_agents.items import draft_of, draft_of_text, items_of, packed, taken
from gateway.adapters.openai_agents.kinds import is_output
from tests.adapters.openai_agents.strategies import ITEMS, JSON

AT = "2026-01-01T00:00:00.000000Z"


def back(item: Any, call: int | None) -> Any:
    """The item after it was recorded and read."""
    one = taken(item, 0)
    draft = draft_of_text(one, "m", "r", call) if isinstance(one, str) else draft_of(one, "m", "r", call)
    [document] = encode([draft], "op", AT).documents
    [found] = items_of(decode(1, 1, document))
    return found


@settings(max_examples=400)
@given(ITEMS)
def test_an_item_comes_back_as_it_was_given(item: dict[str, Any]) -> None:
    assert back(item, 1 if is_output(item) else None) == item


@given(ITEMS)
def test_it_comes_back_as_the_session_of_the_sdk_would_give_it(item: dict[str, Any]) -> None:
    assert back(item, None) == json.loads(json.dumps(item))


@pytest.mark.parametrize(
    "odd",
    [float("inf"), 2**70, "\ud800", {1: "a"}, ("a", "b"), None],
    ids=["infinity", "big-integer", "lone-surrogate", "number-as-key", "tuple", "null"],
)
def test_what_json_of_ours_cannot_hold_is_kept_all_the_same(odd: Any) -> None:
    item = {"role": "user", "content": "x", "extra": odd}
    assert back(item, None) == json.loads(json.dumps(item))


def test_nan_is_kept_and_does_not_become_null() -> None:
    found = back({"type": "x", "score": float("nan")}, 1)
    assert found["score"] != found["score"]


def test_an_item_nested_too_deep_for_an_event_is_kept() -> None:
    deep: Any = "end"
    for _ in range(300):
        deep = [deep]
    assert back({"role": "user", "content": "x", "deep": deep}, None)["deep"] == deep


@pytest.mark.parametrize("item", [{"content": object()}, {"role": "user", "content": b"bytes"}])
def test_what_is_no_json_is_refused_with_its_place(item: Any) -> None:
    with pytest.raises(ItemInvalid, match=r"items\[3\] is no JSON.*give dicts") as caught:
        taken(item, 3)
    assert isinstance(caught.value, TypeError)


@given(st.lists(JSON, max_size=4))
def test_what_is_remembered_of_an_item_is_the_item(values: list[Any]) -> None:
    item = {"type": "x", "values": values}
    document = packed(item)
    assert json.loads(document) == item


def test_texts_and_calls_read_as_what_they_are_in_the_log() -> None:
    said = draft_of({"role": "user", "content": [{"type": "input_text", "text": "hi"}]}, "m", "r", None)
    assert (said.type, said.data["role"], said.data["parts"][0]["content"]) == ("message-added", "user", "hi")
    call = draft_of({"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}, "m", "r", 1)
    assert (call.type, call.data["name"], call.call) == ("function-call", "look", 1)
    result = draft_of({"type": "function_call_output", "call_id": "c", "output": "x"}, "m", "r", None)
    assert (result.type, result.data["output"]) == ("function-result", "x")
    thought = draft_of({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, "m", "r", 1)
    assert thought.data["parts"][0]["content"] == "hm"
