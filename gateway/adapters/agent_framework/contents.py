"""The framework's messages and contents as messages and parts of the log, there and back. Pure.

What is kept is what the framework itself serialises: ``raw_representation`` is not, and an
exception is its fixed marker. A function call that the application must answer becomes a
``tool_call`` part and a function result a ``tool_call_response``; whatever the provider ran itself
is a plain part of the content's own type. Fields without a place in our part stand under ``FIELDS``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent_framework import Content
from agent_framework import Message as ChatMessage

from eventlog.messages import Json, Message
from gateway.adapters.agent_framework.nearest import nearest

FIELDS = "agent_framework"
"""Where a part, or a message's ``extra``, keeps what only the framework knows."""
MARK = "agent_eventlog"
"""The additional property of a loaded message that tells which events it is."""
_TRANSIENT = frozenset({MARK, "_attribution"})
"""Additional properties that are set anew whenever a message is loaded."""
_TAKEN = frozenset({"text", "reasoning", "blob", "file", "uri", "tool_call", "tool_call_response", FIELDS})
"""Part types that mean something in the log; a content of such a type that does not fit is wrapped."""
_DATA = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)

Part = dict[str, Json]


def is_open_call(content: Content) -> bool:
    """Whether it asks the application to run a tool."""
    return (
        content.type == "function_call"
        and not content.informational_only
        and not content.hosted
        and isinstance(content.call_id, str)
        and isinstance(content.name, str)
    )


def is_local_approval(content: Content) -> bool:
    """Whether it asks for, or answers, the approval of a tool that the application runs."""
    if content.type not in ("function_approval_request", "function_approval_response"):
        return False
    call = content.function_call
    return call is not None and is_open_call(call)


def part_of(content: Content, *, plain: bool = False) -> Part:
    """The part that records a content. ``plain``: the provider ran it; nobody is to answer."""
    document = document_of(content)
    kind = document["type"]
    if kind == "text" and isinstance(document.get("text"), str):
        return _with_rest({"type": "text", "content": document["text"]}, document, "text")
    if kind == "text_reasoning":
        return _reasoning(document)
    if kind == "data":
        return _data(document)
    if kind == "uri" and isinstance(document.get("uri"), str):
        return _located("uri", "uri", document)
    if kind == "hosted_file" and isinstance(document.get("file_id"), str):
        return _located("file", "file_id", document)
    if kind == "function_call" and not plain and is_open_call(content):
        return _call(document)
    if kind == "function_result" and not plain and isinstance(document.get("call_id"), str):
        return _result(document)
    return {"type": FIELDS, "content": document} if kind in _TAKEN else document


def content_of(part: Part) -> Content:
    """The inverse of ``part_of``; a part of the log that no framework wrote becomes what comes nearest."""
    kind = part["type"]
    if kind == FIELDS:
        return nearest(part["content"])
    rest = _fields(part)
    if kind == "text" and not rest:
        return Content("text", text=part["content"])
    if kind == "text":
        return nearest({"type": "text", "text": part["content"], **rest})
    if kind == "reasoning":
        return nearest({"type": "text_reasoning", "text": part["content"], **rest})
    if kind == "blob":
        media = part.get("mime_type") or "application/octet-stream"
        return nearest({"type": "data", "uri": f"data:{media};base64,{part['content']}", "media_type": media, **rest})
    if kind == "uri":
        return nearest({"type": "uri", "uri": part["uri"], **_media(part), **rest})
    if kind == "file":
        return nearest({"type": "hosted_file", "file_id": part["file_id"], **_media(part), **rest})
    if kind == "tool_call":
        document = {"type": "function_call", "call_id": part["id"], "name": part["name"], **_fields(part.get("extra"))}
        return nearest({**document, **_present("arguments", part.get("arguments"))})
    if kind == "tool_call_response":
        return _content_of_result(part)
    return nearest(part)


def record_of(message: ChatMessage, *, contents: Sequence[Content] | None = None, output: bool = False) -> Message:
    """The message that records one of the framework's; ``contents`` in place of its own.

    An ``output`` is the service's reply: what it holds a result for, the provider ran itself.
    """
    chosen = message.contents if contents is None else list(contents)
    ran = _ran_by_provider(chosen) if output else frozenset()
    parts = [part_of(content, plain=id(content) in ran) for content in chosen]
    places = {_place(message.role, part) for part in parts}
    fields: Part = {}
    if message.message_id is not None:
        fields["message_id"] = message.message_id
    properties = {name: value for name, value in message.additional_properties.items() if name not in _TRANSIENT}
    if properties:
        fields["additional_properties"] = properties
    if len(places) > 1:
        fields["split"] = True
    if places and places != {(message.role, message.role == "tool")}:
        fields["role"] = message.role
    return Message(message.role, parts, author=message.author_name, extra={FIELDS: fields} if fields else None)


def chat_messages(messages: Iterable[Message]) -> list[tuple[ChatMessage, list[Message]]]:
    """The framework's messages for those of a view, each with those that it was made from.

    A message of the framework that holds results beside other contents was recorded as several.
    """
    found: list[tuple[ChatMessage, list[Message]]] = []
    open_id: str | None = None
    for message in messages:
        contents = [content_of(part) for part in message.parts]
        if found and open_id is not None and message.message_id == open_id:
            found[-1][0].contents.extend(contents)
            found[-1][1].append(message)
            continue
        fields = _fields(message.extra) or _message_fields(message.parts)
        open_id = message.message_id if fields.get("split") else None
        found.append((_chat_message(message, contents, fields), [message]))
    return found


def document_of(content: Content) -> Part:
    """The content as the framework serialises it, without what is no JSON by nature."""
    document = content.to_dict()
    if not document.get("additional_properties"):
        document.pop("additional_properties", None)
    if content.annotations is not None:
        document["annotations"] = [
            {name: value for name, value in annotation.items() if name != "raw_representation"}
            for annotation in content.annotations
        ]
    return document


def result_extra(part: Part, message: Message) -> Part:
    """The ``extra`` of a result that is recorded by itself: its own, and that of the message it stood in."""
    extra = dict(part.get("extra") or {})
    about = {**_fields(message.extra), **_present("author", message.author)}
    if about:
        extra["message"] = about
    return extra


def _chat_message(message: Message, contents: list[Content], fields: Mapping[str, Any]) -> ChatMessage:
    return ChatMessage(
        fields.get("role", message.role),
        contents,
        author_name=fields.get("author", message.author),
        message_id=fields.get("message_id"),
        additional_properties=dict(fields.get("additional_properties", {})),
    )


def _place(role: str, part: Part) -> tuple[str, bool]:
    """Where the log puts a part: the role it is read back with, and whether among results."""
    if part["type"] == "tool_call":
        return ("assistant", False)
    return ("tool", True) if part["type"] == "tool_call_response" else (role, False)


def _ran_by_provider(contents: Sequence[Content]) -> frozenset[int]:
    """The calls and results of a reply that answer each other, paired in order."""
    waiting: dict[str, list[Content]] = {}
    ran: set[int] = set()
    for content in contents:
        if content.type == "function_call" and content.call_id is not None:
            waiting.setdefault(content.call_id, []).append(content)
        elif content.type == "function_result":
            ran.add(id(content))
            if calls := waiting.get(content.call_id or ""):
                ran.add(id(calls.pop(0)))
    return frozenset(ran)


def _reasoning(document: Part) -> Part:
    text = document.get("text")
    part = {"type": "reasoning", "content": text if isinstance(text, str) else ""}
    if not isinstance(text, str):
        document = {**document, "text": text}
        return _with_rest(part, document)
    return _with_rest(part, document, "text")


def _data(document: Part) -> Part:
    match = _DATA.fullmatch(document["uri"]) if isinstance(document.get("uri"), str) else None
    if match is None or document.get("media_type") != match[1]:
        return document
    return _with_rest({"type": "blob", "content": match[2], "mime_type": match[1]}, document, "uri", "media_type")


def _located(kind: str, field: str, document: Part) -> Part:
    media = document.get("media_type")
    part = {"type": kind, field: document[field]}
    if isinstance(media, str):
        part["mime_type"] = media
    return _with_rest(part, document, field, "media_type")


def _call(document: Part) -> Part:
    part: Part = {"type": "tool_call", "id": document["call_id"], "name": document["name"]}
    part.update(_present("arguments", document.get("arguments")))
    rest = _rest(document, "call_id", "name", "arguments")
    if rest.get("hosted") is False:
        del rest["hosted"]
    return {**part, "extra": {FIELDS: rest}} if rest else part


def _result(document: Part) -> Part:
    """``items`` repeat the text of the result in the common case, and are kept only where they do not."""
    result = document.get("result")
    part: Part = {"type": "tool_call_response", "id": document["call_id"], "response": result}
    if document.get("exception") is not None:
        part["is_error"] = True
    rest = _rest(document, "call_id", "result")
    if isinstance(result, str) and document.get("items") == _items(result):
        rest.pop("items", None)
    else:
        rest["items"] = document.get("items")
    return {**part, "extra": {FIELDS: rest}} if rest else part


def _content_of_result(part: Part) -> Content:
    rest = _fields(part.get("extra"))
    result = part.get("response")
    if FIELDS not in (part.get("extra") or {}) and not isinstance(result, str):
        made = Content.from_function_result(part["id"], result=result)
        return made if not part.get("is_error") else nearest({**made.to_dict(), "exception": "error"})
    document = {"type": "function_result", "call_id": part["id"], "items": _items(result), **rest}
    if part.get("is_error"):
        document.setdefault("exception", "error")
    return nearest({**document, **_present("result", result)})


def _items(result: Json) -> list[Part] | None:
    """What the framework makes of a result that is one text."""
    if not isinstance(result, str):
        return None
    return [{"type": "text", "text": result, "additional_properties": {}}]


def _with_rest(part: Part, document: Part, *taken: str) -> Part:
    rest = _rest(document, *taken)
    return {**part, FIELDS: rest} if rest else part


def _rest(document: Part, *taken: str) -> Part:
    return {name: value for name, value in document.items() if name != "type" and name not in taken}


def _fields(kept: Mapping[str, Any] | None) -> Part:
    fields = (kept or {}).get(FIELDS)
    return dict(fields) if isinstance(fields, dict) else {}


def _message_fields(parts: Sequence[Part]) -> Part:
    """What the first result of a message says of it, where it was recorded by itself."""
    about = (parts[0].get("extra") or {}).get("message") if parts else None
    return dict(about) if isinstance(about, dict) else {}


def _media(part: Part) -> Part:
    return _present("media_type", part.get("mime_type"))


def _present(name: str, value: Json) -> Part:
    return {} if value is None else {name: value}
