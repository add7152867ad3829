"""One line for each event, message part and value, for people. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import orjson

from eventlog.events import Event
from eventlog.messages import Json

WIDTH = 100
"""Characters that a summary has at most."""


def clean(text: str) -> str:
    """The text with nothing in it that a terminal would obey; line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str, width: int = WIDTH) -> str:
    """The text on one line, with … in place of what is too much."""
    line = clean(" ".join(text[: width * 8].split()))
    return line if len(line) <= width and len(text) <= width * 8 else line[: width - 1] + "…"


def many(number: int, what: str) -> str:
    """A number of things: ``1 event``, ``2,000 events``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def plain(problem: str) -> str:
    """An error's text without what libraries put in of their own: a prefix, a full stop before ours."""
    return re.sub(r"(?<=[^\s.])\.(?=[.;](?:\s|$))", "", problem.replace("Value error, ", ""))


def words(value: Json) -> str:
    """A JSON value as text: a string as it is."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def part_text(part: dict[str, Json]) -> str:
    """A message part as text."""
    kind = part.get("type")
    if kind == "tool_call":
        return f"call {part.get('id')}: {part.get('name')}({words(part.get('arguments'))})"
    if kind == "tool_call_response":
        marks = "".join(f" [{name}]" for name in ("synthetic", "is_error") if part.get(name))
        return f"result {part.get('id')}{marks}: {words(part.get('response'))}"
    content = part.get("content")
    if isinstance(content, str) and kind == "text":
        return content
    if isinstance(content, str) and kind == "reasoning":
        return f"[reasoning] {content}"
    return f"[{kind}] {words({name: value for name, value in part.items() if name != 'type'})}"


def summary(event: Event) -> str:
    """What an event says, on one line."""
    say = _SAY.get(event.type)
    return one_line(words(event.data) if say is None else say(event.data))


def _message(data: dict[str, Any]) -> str:
    return f"{data.get('role')}: {' '.join(map(part_text, data.get('parts', ())))}"


def _call(data: dict[str, Any]) -> str:
    return f"{data.get('call_id')}: {data.get('name')}({words(data.get('arguments'))})"


def _result(data: dict[str, Any]) -> str:
    answers = data.get("answers")
    marks = "".join(f" [{name}]" for name in ("synthetic", "is_error") if data.get(name))
    return f"{data.get('call_id')}{f' (version {answers})' if answers else ''}{marks}: {words(data.get('output'))}"


def _started(data: dict[str, Any]) -> str:
    continues = "" if data.get("continues") is None else f", continues {words(data['continues'])}"
    return f"sends {' '.join(map(str, data.get('sends', ()))) or 'nothing new'}{continues}"


def _named(*names: str) -> Callable[[dict[str, Any]], str]:
    """Says the fields of these names that there are."""
    return lambda data: ", ".join(f"{name} {words(data[name])}" for name in names if data.get(name) is not None)


_SAY: dict[str, Callable[[dict[str, Any]], str]] = {
    "run-started": _named("mode", "agent", "parent", "labels"),
    "run-resumed": _named("by"),
    "message-added": _message,
    "function-call": _call,
    "function-result": _result,
    "service-call-started": _started,
    "service-call-completed": _named("finish_reason", "model", "usage", "service"),
    "service-call-failed": _named("outcome", "error"),
    "approval-requested": _named("function_call", "by", "reason"),
    "approval-resolved": _named("function_call", "decision", "by", "reason"),
    "run-committed": _named("outcome", "usage"),
    "run-aborted": _named("reason", "error"),
    "history-rewound": _named("to"),
    "history-compacted": lambda data: f"through {data.get('through')}, messages {len(data.get('messages', ()))}",
    "conversation-annotated": _named("title", "labels"),
}
