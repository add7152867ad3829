"""The OpenAI chat-completions form of messages, read and written without loss. Pure.

One conversation a line: ``{"id", "messages"}``. Roles are system, developer, user and assistant
(``content`` a string, null, a list of parts, or absent) and tool (``tool_call_id``, ``content`` a
string or a list of parts). An assistant's ``tool_calls`` become calls that wait for an answer, a
tool message becomes a result; ``name`` is the author; every other field of a message is kept in
its ``extra``. What our own form cannot tell apart is marked there under ``openai_chat``.
"""

from __future__ import annotations

from typing import NamedTuple, NoReturn

import orjson

from eventlog.codec import find_fault
from eventlog.errors import InvalidInput
from eventlog.identity import check_id
from eventlog.messages import Json, Message
from gateway.formats.json_text import parse, write

NAME = "openai-chat"
MARK = "openai_chat"
"""Where ``extra`` keeps what tells equal-looking messages apart; also the type of a part that is kept whole."""
_ROLES = ("system", "developer", "user", "assistant")
_KEPT_WHOLE = frozenset({MARK, "reasoning", "blob", "file", "uri", "tool_call", "tool_call_response"})
"""Types of content parts that mean something else in our own form."""
_BODY = {"function": "arguments", "custom": "input"}
"""The kinds of tool call, and what the arguments of each are called."""

Object = dict[str, Json]


class Transcript(NamedTuple):
    """One line: a conversation's id and its messages in order."""

    id: str
    messages: list[Message]


def read_line(line: bytes) -> Transcript:
    """One line of a file in this form. Raises ``InvalidInput`` with the path of what is wrong."""
    document = parse(line)
    if type(document) is not dict:
        _refuse("the line", f'must be an object {{"id", "messages"}}, not {_kind(document)}')
    if "id" not in document:
        _refuse("id", "is missing: give each conversation an id")
    identity = check_id(document["id"], "id")
    raw = document.get("messages")
    if type(raw) is not list:
        _refuse("messages", "is missing" if raw is None else f"must be a list, not {_kind(raw)}")
    for name in document:
        if name not in ("id", "messages"):
            find_fault({name: None}, "the line")
            _refuse(name, "would be lost: only id and messages are imported; take it out")
    find_fault(raw, "messages")
    return Transcript(identity, [read_message(message, f"messages[{index}]") for index, message in enumerate(raw)])


def write_line(identity: str, messages: list[Message]) -> bytes:
    """The conversation as one line, without its end."""
    return write({"id": identity, "messages": [raw for message in messages for raw in write_message(message)]})


def read_message(raw: Json, path: str) -> Message:
    """The message of this form. Raises ``InvalidInput``."""
    if type(raw) is not dict:
        _refuse(path, f"must be an object, not {_kind(raw)}")
    role = raw.get("role")
    if role == "tool":
        return _read_result(raw, path)
    if role not in _ROLES:
        _refuse(f"{path}.role", f"{ascii(role)[:80]} is not one of {', '.join(_ROLES)}, tool")
    parts, mark = _read_content(raw, path)
    taken = {"role", "content"}
    if role == "assistant" and raw.get("tool_calls") is not None:
        calls = raw["tool_calls"]
        if type(calls) is not list:
            _refuse(f"{path}.tool_calls", f"must be a list, not {_kind(calls)}")
        parts += [_read_call(call, f"{path}.tool_calls[{index}]") for index, call in enumerate(calls)]
        if calls:
            taken.add("tool_calls")
    return _with_fields(Message(role, parts), raw, taken, mark)


def write_message(message: Message) -> list[Object]:
    """The message in this form: one, or one for each result that it holds."""
    extra = message.extra or {}
    mark = _object(extra, MARK)
    fields = {name: value for name, value in extra.items() if name != MARK} | _object(mark, "fields")
    if message.author is not None:
        fields["name"] = message.author
    results = [part for part in message.parts if part.get("type") == "tool_call_response"]
    if results:
        return [
            {**fields, "role": "tool", "tool_call_id": part["id"], "content": _write_output(part.get("response"))}
            for part in results
        ]
    raw: Object = {**fields, "role": message.role}
    content = [part for part in message.parts if part.get("type") != "tool_call"]
    if mark.get("content") != "absent":
        raw["content"] = _write_content(content, as_list=mark.get("content") == "list")
    calls = [_write_call(part) for part in message.parts if part.get("type") == "tool_call"]
    if calls:
        raw["tool_calls"] = calls
    return [raw]


def _read_content(raw: Object, path: str) -> tuple[list[Object], Object]:
    """The parts, and the mark that tells how they stood."""
    if "content" not in raw:
        return [], {"content": "absent"}
    content = raw["content"]
    if content is None:
        return [], {}
    if type(content) is str:
        return [{"type": "text", "content": content}], {}
    if type(content) is not list:
        _refuse(f"{path}.content", f"must be a string, null or a list of parts, not {_kind(content)}")
    return [_read_part(part, f"{path}.content[{index}]") for index, part in enumerate(content)], {"content": "list"}


def _write_content(parts: list[Object], *, as_list: bool) -> Json:
    if not as_list:
        if not parts:
            return None
        if len(parts) == 1 and parts[0].keys() == {"type", "content"} and parts[0]["type"] == "text":
            return parts[0]["content"]
    return [_write_part(part) for part in parts]


def _read_part(raw: Json, path: str) -> Object:
    if type(raw) is not dict:
        _refuse(path, f"must be an object, not {_kind(raw)}")
    kind = raw.get("type")
    if type(kind) is not str:
        _refuse(f"{path}.type", "is missing" if kind is None else f"must be a string, not {_kind(kind)}")
    if kind == "text":
        if type(raw.get("text")) is not str:
            _refuse(f"{path}.text", f"must be a string, not {_kind(raw.get('text'))}")
        if "content" not in raw:
            return {("content" if name == "text" else name): value for name, value in raw.items()}
    elif kind not in _KEPT_WHOLE:
        part: Object = raw
        return part
    return {"type": MARK, "part": raw}


def _write_part(part: Object) -> Object:
    if part.get("type") == MARK and isinstance(part.get("part"), dict):
        whole: Object = part["part"]
        return whole
    if part.get("type") == "text" and "content" in part:
        rest = {name: value for name, value in part.items() if name not in ("content", "text")}
        return {**rest, "text": part["content"]}
    return part


def _read_call(raw: Json, path: str) -> Object:
    if type(raw) is not dict:
        _refuse(path, f"must be an object, not {_kind(raw)}")
    kind = raw.get("type", "function")
    if type(kind) is not str or kind not in _BODY:
        _refuse(f"{path}.type", f"{ascii(kind)[:80]} is not function or custom")
    body = raw.get(kind)
    if type(body) is not dict:
        _refuse(f"{path}.{kind}", "is missing" if body is None else f"must be an object, not {_kind(body)}")
    for where, value in ((f"{path}.id", raw.get("id")), (f"{path}.{kind}.name", body.get("name"))):
        if type(value) is not str:
            _refuse(where, "is missing" if value is None else f"must be a string, not {_kind(value)}")
    part: Object = {"type": "tool_call", "id": raw["id"], "name": body["name"]}
    arguments = _BODY[kind]
    if arguments in body:
        part["arguments"] = body[arguments]
    mark: Object = {
        "kind": kind if kind != "function" else None,
        "untyped": "type" not in raw or None,
        "call": {name: value for name, value in raw.items() if name not in ("id", "type", kind)},
        "body": {name: value for name, value in body.items() if name not in ("name", arguments)},
    }
    mark = {name: value for name, value in mark.items() if value}
    if mark:
        part["extra"] = {MARK: mark}
    return part


def _write_call(part: Object) -> Object:
    mark = _object(_object(part, "extra"), MARK)
    kind = "custom" if mark.get("kind") == "custom" else "function"
    body = {**_object(mark, "body"), "name": part["name"]}
    if "arguments" in part:
        body[_BODY[kind]] = part["arguments"]
    raw = {**_object(mark, "call"), "id": part["id"], "type": kind, kind: body}
    if mark.get("untyped"):
        del raw["type"]
    return raw


def _read_result(raw: Object, path: str) -> Message:
    identity, content = raw.get("tool_call_id"), raw.get("content")
    if type(identity) is not str:
        _refuse(
            f"{path}.tool_call_id", "is missing" if identity is None else f"must be a string, not {_kind(identity)}"
        )
    if type(content) is list:
        for index, part in enumerate(content):
            _read_part(part, f"{path}.content[{index}]")
    elif type(content) is not str:
        _refuse(f"{path}.content", f"must be a string or a list of parts, not {_kind(content)}")
    part = {"type": "tool_call_response", "id": identity, "response": content}
    return _with_fields(Message("tool", [part]), raw, {"role", "content", "tool_call_id"}, {})


def _write_output(output: Json) -> Json:
    """A tool's output as the form takes it: a string, or a list of parts; other JSON as its text."""
    if isinstance(output, str):
        return output
    if isinstance(output, list) and all(
        isinstance(part, dict) and isinstance(part.get("type"), str) for part in output
    ):
        return output
    return orjson.dumps(output).decode()


def _with_fields(message: Message, raw: Object, taken: set[str], mark: Object) -> Message:
    """The message with the fields that were not taken: the author, and ``extra``."""
    fields = {name: value for name, value in raw.items() if name not in taken}
    if type(fields.get("name")) is str:
        message.author = fields.pop("name")
    if MARK in fields:
        mark = {**mark, "fields": {MARK: fields.pop(MARK)}}
    if mark:
        fields[MARK] = mark
    message.extra = fields or None
    return message


def _object(holder: Object, name: str) -> Object:
    """The object that stands under this name; an empty one where none does."""
    found = holder.get(name)
    return found if isinstance(found, dict) else {}


def _kind(value: Json) -> str:
    """What a JSON value is, for a person to read."""
    if value is None:
        return "null"
    return {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}.get(type(value), "a number")


def _refuse(path: str, problem: str) -> NoReturn:
    raise InvalidInput(f"{path}: {problem}")
