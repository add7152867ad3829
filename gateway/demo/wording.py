"""Events, messages and fates in words. ASCII alone, so that any terminal or pipe takes them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from eventlog.events import Event
from eventlog.messages import Message
from projections.explain import IN_VIEW, Fate

IN_HISTORY = "in history"


class Line(NamedTuple):
    """One event, and what became of it."""

    version: int
    event: str
    content: str
    fate: str
    """``in history``, the reason why not, or empty: the event is structure."""


def lines(events: Sequence[Event], fates: Sequence[Fate]) -> list[Line]:
    """One line for each event of the log."""
    by_version = {event.version: event for event in events}
    fate_of = {fate.version: fate_name(fate.fate) for fate in fates}
    return [
        Line(event.version, event.type, content(event, by_version), fate_of.get(event.version, "")) for event in events
    ]


def fate_name(fate: str) -> str:
    """A fate as it is printed."""
    return IN_HISTORY if fate == IN_VIEW else fate


def content(event: Event, by_version: Mapping[int, Event]) -> str:
    """What the event says."""
    words = _WORDS.get(event.type)
    return words(event, by_version) if words is not None else ""


def part(part: Mapping[str, Any]) -> str:
    """What a message part says."""
    kind = part.get("type")
    if kind == "tool_call":
        return _call(part["id"], part["name"], part.get("arguments"))
    if kind == "tool_call_response":
        return _result(part["id"], part["response"])
    return str(part.get("content", f"[{kind}]"))


def message(message: Message) -> str:
    """What a message says, one line for each part."""
    return "\n".join(part(each) for each in message.parts)


def numbers(versions: Iterable[int]) -> str:
    """Versions for people: ``7, 8``, or ``nothing``."""
    return ", ".join(map(str, versions)) or "nothing"


def _call(call_id: str, name: str, arguments: Any) -> str:
    given = ", ".join(f"{key}={_json(value)}" for key, value in (arguments or {}).items())
    return f"{call_id} -> {name}({given})"


def _result(call_id: str, output: Any) -> str:
    return f"{call_id} <- {_json(output)}"


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


_WORDS: dict[str, Callable[[Event, Mapping[int, Event]], str]] = {
    "run-started": lambda event, _: f"{event.data['mode']}",
    "message-added": lambda event, _: f"{event.data['role']}: {' '.join(map(part, event.data['parts']))}",
    "function-call": lambda event, _: _call(event.data["call_id"], event.data["name"], event.data["arguments"]),
    "function-result": lambda event, _: _result(event.data["call_id"], event.data["output"]),
    "service-call-started": lambda event, _: f"call {event.call} sends {numbers(event.data['sends'])}",
    "service-call-completed": lambda event, _: f"call {event.call}",
    "service-call-failed": lambda event, _: (
        f"call {event.call}, partial: {' '.join(map(part, event.data.get('partial', ())))}"
    ),
    "run-committed": lambda event, _: event.data["outcome"],
    "run-aborted": lambda event, _: event.data["reason"],
}
