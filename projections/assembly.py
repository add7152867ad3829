"""From rows of references to messages. Pure.

A message is the consecutive events of one message id and role within one unit: its inputs, then
its outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from eventlog.events import Event
from eventlog.ledger import Row
from eventlog.messages import Json, Message


def view_messages(view: Sequence[Row], events: Sequence[Event], log: str) -> tuple[list[Message], list[int | None]]:
    """The messages of a view's rows, and for each that is an output, the version of its unit's first.

    ``events`` are all of the log, from the first on; ``log`` is the log's tag.
    """
    messages: list[Message] = []
    outputs_of: list[int | None] = []
    loose: list[Event] = []
    """Posted outside any run by one operation: its events make messages together."""
    for row in view:
        if row.unit is None and not row.summary and len(row.inputs) == 1:
            event = events[row.inputs[0] - 1]
            if loose and loose[-1].operation_id != event.operation_id:
                messages += group(loose, log)
                loose = []
            loose.append(event)
            continue
        if loose:
            messages += group(loose, log)
            loose = []
        if row.summary:
            messages += summary_messages(events[row.summary - 1], log)
        elif row.inputs:
            messages += group([events[version - 1] for version in row.inputs], log)
        if row.outputs:
            outputs_of += [None] * (len(messages) - len(outputs_of))
            messages += group([events[item.version - 1] for item in row.outputs], log)
            outputs_of += [row.outputs[0].version] * (len(messages) - len(outputs_of))
    messages += group(loose, log)
    outputs_of += [None] * (len(messages) - len(outputs_of))
    return messages, outputs_of


def group(events: Iterable[Event], log: str) -> list[Message]:
    """Messages of the events that stand next to each other. Results never share a message with parts of other kinds."""
    messages: list[Message] = []
    message: Message | None = None
    before = ""
    for event in events:
        if event.type == "history-compacted":
            messages += summary_messages(event, log)
            message = None
            continue
        data = event.data
        role, parts = _role_and_parts(event)
        message_id = data.get("message_id")
        if (
            message is not None
            and message.message_id == message_id
            and message.role == role
            and (before == "function-result") == (event.type == "function-result")
        ):
            message.parts = [*message.parts, *parts]
            message.versions = (*message.versions, event.version)
        else:
            extra = data.get("extra" if event.type == "message-added" else "message_extra")
            message = Message(role, parts, message_id, data.get("author"), extra, log, (event.version,), event.stamp)
            messages.append(message)
        before = event.type
    return messages


def objects(value: Any) -> list[dict[str, Json]]:
    """The objects of a list, such as the parts of a message; of anything else, none."""
    if type(value) is not list:
        return []
    for item in value:
        if type(item) is not dict:
            return [found for found in value if type(found) is dict]
    return value


def summary_messages(event: Event, log: str) -> list[Message]:
    """The messages that a compaction put in."""
    return [
        Message(
            message.get("role", ""),
            objects(message.get("parts")),
            f"{event.id}.{index}",
            message.get("author"),
            message.get("extra"),
            log,
            (event.version,),
            event.stamp,
        )
        for index, message in enumerate(objects(event.data.get("messages")))
    ]


def _role_and_parts(event: Event) -> tuple[str, list[dict[str, Json]]]:
    data = event.data
    if event.type == "message-added":
        return data.get("role", ""), objects(data.get("parts"))
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
    if type(rest) is dict:
        part.update(rest)
    return role, [part]
