"""What a scripted model says, and tools for it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from agents import Agent, Tool, function_tool
from agents.testing import ScriptedModel
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)

Items = list[dict[str, Any]]


def said(text: str, message_id: str = "m1") -> ResponseOutputMessage:
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(id=message_id, type="message", role="assistant", status="completed", content=[part])


def calls(name: str, call_id: str = "c1", **arguments: Any) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        id=f"f-{call_id}", call_id=call_id, name=name, arguments=json.dumps(arguments), type="function_call"
    )


def thought(text: str, item_id: str = "r1") -> ResponseReasoningItem:
    summary = [{"type": "summary_text", "text": text}]
    return ResponseReasoningItem.model_validate(
        {"id": item_id, "type": "reasoning", "summary": summary, "encrypted_content": "gAAAA=="}
    )


@function_tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"sunny in {city}"


def agent(*replies: Sequence[Any], tools: Sequence[Tool] = (weather,), **options: Any) -> Agent[Any]:
    return Agent(name="guide", model=ScriptedModel([list(reply) for reply in replies]), tools=list(tools), **options)


def shapes(items: Sequence[dict[str, Any]]) -> list[str]:
    """The items by their types, messages by their roles."""
    return [item.get("role") or item["type"] for item in items]


class Broken(ScriptedModel):
    """A model whose service is down."""

    async def get_response(self, *_: Any, **__: Any) -> Any:
        raise ConnectionError("the service is down")

    async def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise ConnectionError("the service is down")
        yield
