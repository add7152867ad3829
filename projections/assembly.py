"""From rows of references to messages. Pure.

A message is the consecutive events of one message id and role within one unit: its inputs, then
its outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eventlog.events import Event
from eventlog.ledger import Row
from eventlog.messages import Json, Message

BODIES = frozenset({"message-added", "function-call", "function-result", "history-compacted"})
"""The types of the events whose bodies messages are made of."""


def row_messages(row: Row, bodies: Mapping[int, Event], log: str) -> list[Message]:
    """The messages of one row, in order."""
    if row.summary:
        return summary_messages(bodies[row.summary], log)
    messages = group((bodies[version] for version in row.inputs), log)
    messages += group((bodies[item.version] for item in row.outputs), log)
    return messages


def group(events: Iterable[Event], log: str) -> list[Message]:
    """Messages of the events that stand next to each other."""
    messages: list[Message] = []
    message: Message | None = None
    for event in events:
        data = event.data
        role, parts = _role_and_parts(event)
        message_id = data.get("message_id")
        if message is not None and message.message_id == message_id and message.role == role:
            message.parts = [*message.parts, *parts]
            message.versions = (*message.versions, event.version)
        else:
            extra = data.get("extra" if event.type == "message-added" else "message_extra")
            message = Message(role, parts, message_id, data.get("author"), extra, log, (event.version,))
            messages.append(message)
    return messages


def summary_messages(event: Event, log: str) -> list[Message]:
    """The messages that a compaction put in."""
    return [
        Message(
            message.get("role", ""),
            message.get("parts", []),
            f"{event.id}.{index}",
            message.get("author"),
            message.get("extra"),
            log,
            (event.version,),
        )
        for index, message in enumerate(event.data.get("messages", ()))
    ]


def _role_and_parts(event: Event) -> tuple[str, list[dict[str, Json]]]:
    data = event.data
    if event.type == "message-added":
        return data.get("role", ""), data.get("parts", [])
    part: dict[str, Json]
    kept: tuple[str, ...]
    if event.type == "function-call":
        part = {"type": "tool_call", "id": data.get("call_id"), "name": data.get("name")}
        kept, role = ("arguments", "extra"), "assistant"
    else:
        part = {"type": "tool_call_response", "id": data.get("call_id"), "response": data.get("output")}
        kept, role = ("is_error", "synthetic", "extra"), "tool"
    for name in kept:
        if name in data:
            part[name] = data[name]
    rest = data.get("part")
    if rest:
        part.update(rest)
    return role, [part]
