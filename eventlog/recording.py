"""From messages to the events that record them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eventlog.errors import InvalidEvent
from eventlog.events import Draft
from eventlog.messages import Json, Message


def inputs(messages: Sequence[Message], operation_id: str, run: str | None) -> list[Draft]:
    """The events for messages that are sent to the service, or posted outside any run."""
    return _drafts(messages, operation_id, run, None)


def outputs(messages: Sequence[Message], operation_id: str, run: str, call: int) -> list[Draft]:
    """The events for the messages of a service's reply."""
    return _drafts(messages, operation_id, run, call)


def result(
    call_id: str,
    output: Json,
    message_id: str,
    *,
    answers: int | None = None,
    is_error: bool = False,
    synthetic: bool = False,
    author: str | None = None,
    extra: dict[str, Json] | None = None,
    run: str | None = None,
) -> Draft:
    """The event for what a tool returned."""
    data: dict[str, Any] = {"message_id": message_id, "call_id": call_id, "output": output}
    for name, value in (("answers", answers), ("author", author), ("extra", extra)):
        if value is not None:
            data[name] = value
    if is_error:
        data["is_error"] = True
    if synthetic:
        data["synthetic"] = True
    return Draft("function-result", data, run=run)


def _drafts(messages: Sequence[Message], operation_id: str, run: str | None, call: int | None) -> list[Draft]:
    """Each message as the consecutive events of one message id, so that parts and calls keep their order."""
    drafts: list[Draft] = []
    check_messages(messages)
    for message in messages:
        message_id = message.message_id or f"{operation_id}.{len(drafts)}"
        common: dict[str, Any] = {"message_id": message_id}
        if message.author is not None:
            common["author"] = message.author
        plain: list[dict[str, Json]] = []
        before = len(drafts)
        for part in message.parts:
            kind = part.get("type") if isinstance(part, dict) else None
            if kind not in ("tool_call", "tool_call_response"):
                plain.append(part)
                continue
            if plain:
                drafts.append(_added(message, common, plain, run, call))
                plain = []
            drafts.append(_call(common, part, run, call) if kind == "tool_call" else _response(common, part, run, call))
        if plain or len(drafts) == before:
            drafts.append(_added(message, common, plain, run, call))
        if message.extra is not None:
            first = drafts[before]
            first.data["extra" if first.type == "message-added" else "message_extra"] = message.extra
    return drafts


def check_messages(messages: Sequence[Message]) -> None:
    """Raise ``InvalidEvent`` for what is not a message with a list of parts."""
    for index, message in enumerate(messages):
        if not isinstance(message, Message):
            raise InvalidEvent(
                f"messages[{index}]",
                f"a {type(message).__name__} is not a message: make one with user(…) or Message(…)",
            )
        if not isinstance(message.parts, list):
            raise InvalidEvent(f"messages[{index}].parts", f"a {type(message.parts).__name__} is not a list of parts")


def _added(
    message: Message, common: dict[str, Any], parts: list[dict[str, Json]], run: str | None, call: int | None
) -> Draft:
    return Draft("message-added", {**common, "role": message.role, "parts": parts}, run=run, call=call)


def _call(common: dict[str, Any], part: dict[str, Json], run: str | None, call: int | None) -> Draft:
    data = {**common, "call_id": part.get("id"), "name": part.get("name")}
    return Draft("function-call", _with_rest(data, part, ("arguments", "extra"), ("id", "name")), run=run, call=call)


def _response(common: dict[str, Any], part: dict[str, Json], run: str | None, call: int | None) -> Draft:
    data = {**common, "call_id": part.get("id")}
    if "response" in part:
        data["output"] = part["response"]
    kept = ("is_error", "synthetic", "extra")
    return Draft("function-result", _with_rest(data, part, kept, ("id", "response")), run=run, call=call)


def _with_rest(
    data: dict[str, Any], part: dict[str, Json], kept: tuple[str, ...], taken: tuple[str, ...]
) -> dict[str, Any]:
    """Keep the named fields under their names, and any others together as ``part``: nothing is lost."""
    rest = {}
    for name, value in part.items():
        if name in kept:
            data[name] = value
        elif name not in taken and name != "type":
            rest[name] = value
    if rest:
        data["part"] = rest
    return data
