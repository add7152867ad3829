"""The stores that we are compared with, and the same messages in their shapes.

A message of ours becomes an item of the OpenAI Agents SDK, or a message of the Microsoft Agent Framework, with the same
role, texts, calls and results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import agent_framework
import orjson
import redis.asyncio
from agent_framework_redis import RedisHistoryProvider
from agents.extensions.memory import RedisSession

from eventlog import Message

SESSION = "openai-agents' RedisSession"
PROVIDER = "agent-framework-redis' provider"


def redis_session(client: redis.asyncio.Redis, name: str) -> RedisSession:
    """A session of the SDK on this client."""
    return RedisSession(name, redis_client=client)


def history_provider(client: redis.asyncio.Redis, name: str) -> RedisHistoryProvider:
    """The framework's history on this client, which must decode responses; the name keeps its keys apart."""
    return RedisHistoryProvider(redis_client=client, application_id=name)


def as_item(message: Message) -> Any:
    """The item of the SDK: of one part, as each message here has."""
    [part] = message.parts
    match part["type"]:
        case "tool_call":
            arguments = orjson.dumps(part["arguments"]).decode()
            return {"type": "function_call", "call_id": part["id"], "name": part["name"], "arguments": arguments}
        case "tool_call_response":
            return {"type": "function_call_output", "call_id": part["id"], "output": part["response"]}
        case "text" if message.role == "assistant":
            content = [{"type": "output_text", "text": part["content"], "annotations": []}]
            return {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        case "text":
            return {"role": message.role, "content": part["content"]}
        case other:
            raise ValueError(f"a part of type {other!r}: items are made of text, tool_call and tool_call_response")


def as_items(messages: Sequence[Message]) -> list[Any]:
    """The items of the SDK."""
    return [as_item(message) for message in messages]


def as_framework(messages: Sequence[Message]) -> list[agent_framework.Message]:
    """The messages of the framework."""
    return [agent_framework.Message(message.role, [_content(part) for part in message.parts]) for message in messages]


def _content(part: dict[str, Any]) -> agent_framework.Content:
    match part["type"]:
        case "tool_call":
            arguments = orjson.dumps(part["arguments"]).decode()
            return agent_framework.Content.from_function_call(part["id"], part["name"], arguments=arguments)
        case "tool_call_response":
            return agent_framework.Content.from_function_result(part["id"], result=part["response"])
        case "text":
            return agent_framework.Content.from_text(part["content"])
        case other:
            raise ValueError(f"a part of type {other!r}: contents are made of text, tool_call and tool_call_response")
