"""From rows of references to messages. Pure.

A message is the consecutive events of one message id and role within one unit: its inputs, then
its outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from eventlog.events import Event
from eventlog.messages import Json, Message
from projections.reference import Reference


class Lookup(Protocol):
    """The events of one log by their versions: a mapping, or a list whose first item stands for version 0."""

    def __getitem__(self, version: int, /) -> Event:
        """The event at this version."""
        ...


class Whole:
    """A lookup in a list that holds all events of a log, from the first on, and may grow."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events

    def __getitem__(self, version: int, /) -> Event:
        return self._events[version - 1]


def by_version(events: Sequence[Event]) -> Sequence[Event]:
    """A lookup of events that are all of a log, from the first on."""
    return [*events[:1], *events]


def view_messages(view: Iterable[Reference], events: Lookup, log: str) -> tuple[list[Message], list[int | None]]:
    """The messages of a view's rows, and for each that is an output, the version of its unit's first.

    ``log`` is the log's tag.
    """
    messages: list[Message] = []
    outputs_of: list[int | None] = []
    loose: list[Event] = []
    """Posted outside any run by one operation: its events make messages together."""
    for row in view:
        if row.is_loose:
            event = events[row.inputs[0]]
            if loose and loose[-1].operation_id != event.operation_id:
                messages += group(loose, log)
                loose = []
            loose.append(event)
            continue
        if loose:
            messages += group(loose, log)
            loose = []
        if row.summary:
            messages += summary_messages(events[row.summary], log)
        elif row.inputs:
            messages += group([events[version] for version in row.inputs], log)
        if row.outputs:
            outputs_of += [None] * (len(messages) - len(outputs_of))
            messages += group([events[version] for version in row.outputs], log)
            outputs_of += [row.outputs[0]] * (len(messages) - len(outputs_of))
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
