"""From the SDK's items to the events that record them, and back without loss. Pure.

A message becomes a ``message-added`` with its texts as text parts, a function call a
``function-call``, its output a ``function-result``; what our own form has no word for is kept as
it is. ``extra.openai`` says how an item was taken apart and holds the rest of its fields. An
item that is no JSON as it is (NaN, integers beyond 64 bits, lone surrogates, too deep) is kept as JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson

from eventlog.codec import find_fault
from eventlog.errors import InvalidEvent
from eventlog.events import Draft, Event
from eventlog.messages import Json
from gateway.adapters.openai_agents.errors import ItemInvalid
from gateway.adapters.openai_agents.foreign import item_of_message
from gateway.adapters.openai_agents.kinds import Item, is_output

MARK = "openai"
"""Where ``extra`` and text parts keep what belongs to the SDK's form."""
_WHOLE, _PART, _TEXT = "openai_item", "openai_part", "openai_json"
"""Types of parts: an item, a content part, an item as JSON text; each for what would mean something else as it is."""
_OURS = frozenset({"text", "reasoning", "blob", "file", "uri", "tool_call", "tool_call_response", _WHOLE, _PART, _TEXT})
_STRICT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
_TEXTS = frozenset({"input_text", "output_text"})


def draft_of(item: Item, message_id: str, run: str, call: int | None) -> Draft:
    """The event that records an item. ``call`` is the number of the service call whose output it is."""
    kind = item.get("type")
    match kind:
        case None | "message" if isinstance(item.get("role"), str) and item["role"]:
            content = item.get("content")
            if isinstance(content, str):
                part = {"type": "text", "content": content}
                return _message(item["role"], [part], "text", _rest(item, "role", "content"), message_id, run, call)
            if type(content) is list:
                parts = [_part(one) for one in content]
                return _message(item["role"], parts, "parts", _rest(item, "role", "content"), message_id, run, call)
        case "function_call" if isinstance(item.get("call_id"), str) and isinstance(item.get("name"), str):
            data = {"message_id": message_id, "call_id": item["call_id"], "name": item["name"]}
            if "arguments" in item:
                data["arguments"] = item["arguments"]
            if item["call_id"] and item["name"]:
                return _marked("function-call", data, _rest(item, "type", "call_id", "name", "arguments"), run, call)
        case "function_call_output" if isinstance(item.get("call_id"), str) and "output" in item and call is None:
            data = {"message_id": message_id, "call_id": item["call_id"], "output": item["output"]}
            if item["call_id"]:
                return _marked("function-result", data, _rest(item, "type", "call_id", "output"), run, call)
        case "reasoning":
            thought: dict[str, Json] = {"type": "reasoning", "content": _summary(item), MARK: item}
            return _message("assistant", [thought], "reasoning", {}, message_id, run, call)
    role = "assistant" if is_output(item) else "tool"
    if isinstance(kind, str) and kind not in _OURS:
        return _message(role, [item], "item", {}, message_id, run, call)
    return _message(role, [{"type": _WHOLE, "item": item}], "item", {}, message_id, run, call)


def items_of(event: Event) -> list[Item]:
    """The items that an event holds: one for a message, a call or a result, several for a compaction, else none."""
    data = event.data
    match event.type:
        case "message-added":
            return item_of_parts(str(data.get("role", "user")), data.get("parts") or [], data.get("extra"))
        case "function-call":
            call: Item = {"type": "function_call", "call_id": data.get("call_id"), "name": data.get("name")}
            mark = _mark(data)
            if mark is None:
                arguments = data.get("arguments")
                call["arguments"] = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
            elif "arguments" in data:
                call["arguments"] = data["arguments"]
            return [{**call, **(mark or {})}]
        case "function-result":
            result: Item = {"type": "function_call_output", "call_id": data.get("call_id")}
            mark, output = _mark(data), data.get("output")
            result["output"] = output if mark is not None or isinstance(output, str) else json.dumps(output)
            return [{**result, **(mark or {})}]
        case "history-compacted":
            return [
                item
                for message in data.get("messages") or ()
                for item in item_of_parts(
                    str(message.get("role", "user")), message.get("parts") or [], message.get("extra")
                )
            ]
    return []


def item_of_parts(role: str, parts: Sequence[dict[str, Json]], extra: Json) -> list[Item]:
    """The items of a recorded message: as they were given, or as the SDK would say what others recorded."""
    mark = extra.get(MARK) if isinstance(extra, dict) else None
    if not isinstance(mark, dict) or "as" not in mark or (not parts and mark["as"] != "parts"):
        return item_of_message(role, parts)
    rest = mark.get("rest") or {}
    match mark["as"]:
        case "text":
            return [{"role": role, "content": parts[0].get("content"), **rest}]
        case "parts":
            return [{"role": role, "content": [_content(part) for part in parts], **rest}]
        case "reasoning":
            return [parts[0][MARK]]
        case "json":
            return [json.loads(parts[0]["json"])]
    first = parts[0]
    return [first["item"] if first.get("type") == _WHOLE else first]


def taken(item: Any, index: int) -> Item | str:
    """The item as it is at this moment: as its reader gets it, or as JSON text where it cannot be stored as it is."""
    try:
        document = packed(item)
        found = json.loads(document) if isinstance(document, str) else orjson.loads(document)
    except (TypeError, ValueError, RecursionError) as error:
        raise ItemInvalid(f"items[{index}] is no JSON: {error}; give dicts, lists, texts, numbers and None") from None
    if isinstance(document, str):
        try:
            find_fault(found, f"items[{index}]", 2)
        except (InvalidEvent, RecursionError):
            return document
    return found if type(found) is dict else json.dumps(found)


def packed(item: Any) -> bytes | str:
    """An item as JSON; a text where not every reader would take it. Raises ``TypeError`` or ``ValueError``."""
    try:
        found = orjson.dumps(item, option=_STRICT)
    except (TypeError, ValueError):
        return json.dumps(item)
    return found if b"null" not in found or orjson.loads(found) == item else json.dumps(item)


def draft_of_text(text: str, message_id: str, run: str, call: int | None) -> Draft:
    """The event for an item that is kept as JSON text."""
    role = "tool" if call is None else "assistant"
    return _message(role, [{"type": _TEXT, "json": text}], "json", {}, message_id, run, call)


def _message(
    role: str, parts: list[dict[str, Json]], how: str, rest: Item, message_id: str, run: str, call: int | None
) -> Draft:
    mark: dict[str, Json] = {"as": how}
    if rest:
        mark["rest"] = rest
    data = {"message_id": message_id, "role": role, "parts": parts, "extra": {MARK: mark}}
    return Draft("message-added", data, run=run, call=call)


def _marked(kind: str, data: dict[str, Any], rest: Item, run: str, call: int | None) -> Draft:
    data["extra"] = {MARK: rest}
    return Draft(kind, data, run=run, call=call)


def _mark(data: dict[str, Any]) -> Item | None:
    extra = data.get("extra")
    mark = extra.get(MARK) if isinstance(extra, dict) else None
    return mark if isinstance(mark, dict) else None


def _rest(item: Item, *taken: str) -> Item:
    return {name: value for name, value in item.items() if name not in taken}


def _part(part: Json) -> dict[str, Json]:
    kind = part.get("type") if type(part) is dict else None
    if kind in _TEXTS and isinstance(part.get("text"), str):
        return {"type": "text", "content": part["text"], MARK: _rest(part, "text")}
    if isinstance(kind, str) and kind not in _OURS:
        return dict(part)
    return {"type": _PART, "part": part}


def _content(part: dict[str, Json]) -> Json:
    if part.get("type") == "text":
        return {**part.get(MARK, {"type": "input_text"}), "text": part.get("content")}
    return part["part"] if part.get("type") == _PART else part


def _summary(item: Item) -> str:
    """The words of a reasoning item that people may read."""
    summary = item.get("summary")
    texts = [one.get("text") for one in summary if type(one) is dict] if type(summary) is list else []
    return "\n".join(text for text in texts if isinstance(text, str))
