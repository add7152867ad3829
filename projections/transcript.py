"""Everything that was recorded, in log order, for people. Pure.

Messages stand whether the service knows them or not; what failed, was approved, rewound or
compacted stands between them as messages of the role ``log``, with one part of the event's type.
"""

from __future__ import annotations

from collections.abc import Sequence

from eventlog.events import Event
from eventlog.messages import Message
from projections.assembly import group, objects

_SILENT = frozenset({"service-call-started", "service-call-completed"})
_SPOKEN = frozenset({"message-added", "function-call", "function-result"})


def transcript(events: Sequence[Event], log: str) -> list[Message]:
    """The messages of all events."""
    messages: list[Message] = []
    spoken: list[Event] = []
    for event in events:
        if event.type in _SPOKEN:
            spoken.append(event)
            continue
        if event.type in _SILENT:
            continue
        messages += group(spoken, log)
        spoken = []
        partial = objects(event.data.get("partial")) if event.type == "service-call-failed" else []
        if partial:
            messages.append(Message("assistant", partial, None, None, {"partial": True}, log, (event.version,)))
        part = {"type": event.type, **{name: value for name, value in event.data.items() if name != "partial"}}
        messages.append(Message("log", [part], event.id, None, None, log, (event.version,)))
    return messages + group(spoken, log)
