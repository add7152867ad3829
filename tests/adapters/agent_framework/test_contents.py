"""Messages and contents go through the log and come back as they were."""

from __future__ import annotations

import asyncio
from typing import Any, get_args

import pytest
from agent_framework import Content, Message
from agent_framework._types import ContentType
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog import EventLog, assistant, tool_call, tool_result, user
from gateway.adapters.agent_framework.contents import chat_messages, content_of, part_of, record_of
from projections import history

texts = st.text(st.characters(codec="utf-8"), max_size=12)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
properties = st.none() | st.dictionaries(
    names.filter(lambda name: name not in ("server_label", "_attribution", "agent_eventlog")), json_values, max_size=3
)
annotations = st.none() | st.lists(
    st.fixed_dictionaries({"type": st.just("citation"), "title": texts, "url": texts}), max_size=2
)
media = st.sampled_from(["image/png", "text/plain", "text/plain;charset=UTF-8", "application/json"])
arguments = st.none() | texts | st.dictionaries(names, json_values, max_size=3)
common = {"additional_properties": properties, "annotations": annotations}


def made(kind: str, **fields: Any) -> st.SearchStrategy[Content]:
    return st.builds(Content, st.just(kind), **{**common, **fields})


optional = st.none() | texts
calls = made(
    "function_call", call_id=texts, name=texts, arguments=arguments, id=optional, hosted=st.none() | st.booleans()
)
plain_texts = made("text", text=texts)
outputs = st.none() | st.lists(plain_texts, max_size=2)
KINDS: dict[str, st.SearchStrategy[Content]] = {
    "text": plain_texts,
    "text_reasoning": made("text_reasoning", text=optional, protected_data=optional, id=optional),
    "data": made(
        "data", uri=st.builds("data:{};base64,{}".format, media, st.just("aGk=")), media_type=st.none() | media
    ),
    "uri": made("uri", uri=optional, media_type=st.none() | media),
    "error": made("error", message=optional, error_code=optional, error_details=optional),
    "function_call": calls | made("function_call", call_id=optional, name=optional, informational_only=st.just(True)),
    "function_result": made(
        "function_result", call_id=texts, result=st.none() | texts, items=outputs, id=optional, exception=optional
    )
    | st.builds(Content.from_function_result, texts, result=json_values, id=optional, exception=optional),
    "usage": made("usage", usage_details=st.dictionaries(names, st.integers(0, 1 << 40), max_size=3)),
    "hosted_file": made("hosted_file", file_id=optional, media_type=st.none() | media),
    "hosted_vector_store": made("hosted_vector_store", vector_store_id=optional),
    "code_interpreter_tool_call": made("code_interpreter_tool_call", call_id=optional, inputs=outputs),
    "code_interpreter_tool_result": made("code_interpreter_tool_result", call_id=optional, outputs=outputs),
    "image_generation_tool_call": made("image_generation_tool_call", image_id=optional),
    "image_generation_tool_result": made(
        "image_generation_tool_result", image_id=optional, outputs=st.none() | plain_texts
    ),
    "mcp_server_tool_call": made(
        "mcp_server_tool_call", call_id=optional, tool_name=optional, server_name=optional, arguments=arguments
    ),
    "mcp_server_tool_result": made("mcp_server_tool_result", call_id=optional, output=outputs),
    "search_tool_call": made("search_tool_call", call_id=optional, tool_name=optional, arguments=arguments),
    "search_tool_result": made("search_tool_result", call_id=optional, result=json_values),
    "shell_tool_call": made(
        "shell_tool_call",
        call_id=optional,
        commands=st.lists(texts, max_size=2),
        timeout_ms=st.none() | st.integers(0, 9),
    ),
    "shell_tool_result": made("shell_tool_result", call_id=optional, outputs=outputs),
    "shell_command_output": made(
        "shell_command_output", stdout=optional, stderr=optional, exit_code=st.none() | st.integers(0, 9)
    ),
    "computer_tool_call": made(
        "computer_tool_call", call_id=optional, actions=st.lists(st.dictionaries(names, texts, max_size=2), max_size=2)
    ),
    "computer_tool_result": made("computer_tool_result", call_id=optional, screenshot=st.none() | plain_texts),
    "function_approval_request": made(
        "function_approval_request", id=optional, function_call=calls, user_input_request=st.just(True)
    ),
    "function_approval_response": made(
        "function_approval_response", id=optional, function_call=calls, approved=st.booleans()
    ),
    "oauth_consent_request": made("oauth_consent_request", consent_link=optional, user_input_request=st.just(True)),
}


def messages(*, output: bool) -> st.SearchStrategy[Message]:
    kinds = [kind for name, kind in KINDS.items() if not output or name != "function_result"]
    return st.builds(
        Message,
        st.just("assistant") if output else st.sampled_from(["user", "system", "tool", "assistant"]),
        st.lists(st.one_of(kinds), max_size=4),
        author_name=optional,
        message_id=optional,
        additional_properties=properties,
    )


def test_every_type_of_content_is_tried() -> None:
    assert set(KINDS) == set(get_args(ContentType))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_content_comes_back_as_it_was(kind: str) -> None:
    @settings(max_examples=60, deadline=None)
    @given(KINDS[kind])
    def holds(content: Content) -> None:
        assert content_of(part_of(content)).to_dict() == content.to_dict()
        assert content_of(part_of(content, plain=True)).to_dict() == content.to_dict()

    holds()


@pytest.mark.filterwarnings("ignore::FutureWarning")
@settings(max_examples=120, deadline=None)
@given(st.lists(messages(output=False), min_size=1, max_size=3), st.lists(messages(output=True), max_size=2))
def test_messages_come_back_through_the_log_as_they_were(sent: list[Message], replied: list[Message]) -> None:
    async def there_and_back() -> list[Message]:
        async with EventLog.open("memory://") as log:
            chat = log.tenant("t").conversation("c")
            async with chat.run() as run:
                for message in sent:
                    await run.add(record_of(message))
                async with run.service_call() as call:
                    await call.complete(*(record_of(message, output=True) for message in replied))
            view = await history.load(chat)
            return [message for message, _ in chat_messages(view.messages)]

    found = asyncio.run(there_and_back())
    assert [message.to_dict() for message in found] == [message.to_dict() for message in [*sent, *replied]]


def test_what_other_writers_recorded_becomes_what_comes_nearest() -> None:
    read = [
        user("hi", {"type": "blob", "content": "aGk=", "mime_type": "image/png"}),
        assistant({"type": "reasoning", "content": "hm"}, tool_call("c1", "look", {"deep": [1]})),
    ]
    (first, _), (second, _) = chat_messages(read)
    assert [content.type for content in first.contents] == ["text", "data"]
    assert first.contents[1].uri == "data:image/png;base64,aGk="
    assert [content.type for content in second.contents] == ["text_reasoning", "function_call"]
    assert second.contents[1].arguments == {"deep": [1]}
    failed = content_of(tool_result("c1", {"why": "no"}, is_error=True))
    assert (failed.type, failed.result, failed.exception) == ("function_result", '{"why": "no"}', "error")


def test_calls_that_the_reply_itself_answers_were_run_by_the_provider() -> None:
    reply = Message(
        "assistant",
        [
            Content.from_function_call("c1", "search"),
            Content.from_function_result("c1", result="found"),
            Content.from_function_call("c1", "look"),
        ],
    )
    assert [part["type"] for part in record_of(reply, output=True).parts] == [
        "function_call",
        "function_result",
        "tool_call",
    ]


def test_the_log_keeps_a_tools_exception_as_the_framework_does_without_its_text() -> None:
    failed = Content.from_function_result("c1", result="Error: Function failed.", exception="password=hunter2")
    assert "hunter2" not in str(part_of(failed))
    assert part_of(failed)["is_error"] is True
