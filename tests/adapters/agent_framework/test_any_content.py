"""Whatever stands in a conversation can be read: any field on any content, and what other writers recorded."""

from __future__ import annotations

import inspect
from typing import Any, get_args

import pytest
from agent_framework import Agent, Content
from agent_framework._types import _MERGEABLE_CONTENT_TYPES, ContentType
from agents.items import TResponseInputItem
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog import Tenant, user
from gateway.adapters.agent_framework import record
from gateway.adapters.agent_framework.contents import content_of, part_of
from gateway.adapters.openai_agents import EventLogSession
from tests.adapters.agent_framework import shown
from tests.adapters.agent_framework.service import Service, text
from tests.adapters.agent_framework.test_contents import (
    annotations,
    arguments,
    calls,
    json_values,
    names,
    outputs,
    plain_texts,
    properties,
    texts,
)

TEXTS = (
    *("text", "protected_data", "uri", "media_type", "message", "error_code", "error_details", "call_id", "name"),
    *("exception", "file_id", "vector_store_id", "image_id", "status", "stdout", "stderr", "tool_name"),
    *("server_name", "id", "consent_link"),
)
checks = st.none() | st.lists(st.fixed_dictionaries({"id": texts, "code": texts}), max_size=2)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(TEXTS, st.none() | texts),
    **dict.fromkeys(("timed_out", "user_input_request"), st.none() | st.booleans()),
    **dict.fromkeys(("timeout_ms", "max_output_length", "exit_code"), st.none() | st.integers(-5, 1 << 40)),
    **dict.fromkeys(("informational_only", "approved"), st.booleans()),
    **dict.fromkeys(("items", "inputs"), outputs),
    **dict.fromkeys(("output", "outputs"), outputs | json_values),
    **dict.fromkeys(("pending_safety_checks", "acknowledged_safety_checks"), checks),
    "arguments": arguments,
    "result": json_values,
    "commands": st.none() | st.lists(texts, max_size=2),
    "actions": st.none() | st.lists(st.dictionaries(names, texts, max_size=2), max_size=2),
    "screenshot": st.none() | plain_texts,
    "function_call": st.none() | calls,
    "usage_details": st.none() | st.dictionaries(names, st.integers(0, 99), max_size=2),
    "hosted": st.none() | st.booleans(),
    "merge_mode": st.sampled_from([None, "append", "replace"]),
    "annotations": annotations,
    "additional_properties": properties,
}


def test_every_field_of_a_content_is_tried() -> None:
    assert set(FIELDS) == set(inspect.signature(Content).parameters) - {"type", "raw_representation"}


@pytest.mark.parametrize("kind", get_args(ContentType))
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_any_fields_on_a_content_come_back_as_they_were(kind: Any) -> None:
    fields = dict(FIELDS)
    if kind != "function_call":
        del fields["hosted"]
    if kind not in _MERGEABLE_CONTENT_TYPES:
        del fields["merge_mode"]
    answered = {"approved": fields.pop("approved")} if kind == "function_approval_response" else {}

    @settings(max_examples=25, deadline=None)
    @given(st.fixed_dictionaries(answered, optional=fields))
    def holds(given_fields: dict[str, Any]) -> None:
        content = Content(kind, **given_fields)
        assert content_of(part_of(content)).to_dict() == content.to_dict()
        assert content_of(part_of(content, plain=True)).to_dict() == content.to_dict()

    holds()


def test_outputs_that_are_objects_of_the_provider_come_back_as_they_were() -> None:
    """The framework writes them, and cannot read them again itself."""
    ran = Content("code_interpreter_tool_result", call_id="c1", outputs=[{"type": "logs", "logs": "1\n"}, {}])
    with pytest.raises((TypeError, ValueError)):
        Content.from_dict(ran.to_dict())
    assert content_of(part_of(ran)).to_dict() == ran.to_dict()


def test_a_content_with_a_field_that_is_not_known_keeps_it() -> None:
    read = content_of({"type": "search_tool_call", "call_id": "c1", "depth": 3})
    assert (read.type, read.call_id, read.additional_properties) == ("search_tool_call", "c1", {"depth": 3})


def test_a_blob_without_a_media_type_is_of_unknown_data() -> None:
    read = content_of({"type": "blob", "content": "aGk=", "mime_type": None})
    assert read.uri == "data:application/octet-stream;base64,aGk="


def test_a_part_that_the_framework_has_no_word_for_is_told_as_its_json() -> None:
    read = content_of({"type": "weather_map", "grid": [1, "å"]})
    assert (read.type, read.text) == ("text", '{"type": "weather_map", "grid": [1, "å"]}')


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.sampled_from([*FIELDS, "agent_framework", "extra", "x"]), json_values, max_size=5),
    st.sampled_from([*get_args(ContentType), "openai_item", "x"]),
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_no_part_of_anybody_is_unreadable(fields: dict[str, Any], kind: str) -> None:
    if kind in ("text", "uri"):
        fields = {"content": "hi", "uri": "x", **fields}
        fields["uri"] = "x"
    assert isinstance(content_of({**fields, "type": kind}), Content)


@pytest.mark.anyio
async def test_an_agent_goes_on_with_a_conversation_of_another_sdk(tenant: Tenant) -> None:
    items: list[TResponseInputItem] = [
        {"role": "user", "content": [{"type": "input_text", "text": "look"}]},
        {"type": "reasoning", "id": "r1", "summary": []},
        {"type": "web_search_call", "id": "w1", "status": "completed", "action": {"type": "search", "query": "x"}},
        {"type": "computer_call", "id": "k1", "call_id": "k1", "status": "completed", "pending_safety_checks": []},
        {"role": "assistant", "content": "found"},
    ]
    await EventLogSession("s", tenant=tenant).add_items(items)
    await tenant.conversation("s").add(user("posted", {"type": "weather_map", "grid": [1]}))
    service = Service([[text("fine")]], strict=False)
    agent = record(Agent(service, name="a"), tenant)
    assert (await agent.run("and?", session=agent.create_session(session_id="s"))).text == "fine"
    assert len(service.requests[0]) >= len(items)
    assert (await shown.view(tenant.conversation("s")))[-2:] == ["user: and?", "assistant: fine"]
