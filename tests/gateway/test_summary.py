"""One line for each event."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog import Event, text, tool_call
from eventlog.events import DATA
from gateway.command.summary import WIDTH, clean, one_line, summary

SAID: list[tuple[str, dict[str, Any], str]] = [
    ("run-started", {"mode": "per-run", "agent": "a", "labels": {"x": "y"}}, 'mode per-run, agent a, labels {"x":"y"}'),
    ("run-resumed", {"by": "host:1", "fence": "secret"}, "by host:1"),
    (
        "message-added",
        {"role": "user", "parts": [text("a\nb"), {"type": "uri", "uri": "u"}]},
        'user: a b [uri] {"uri":"u"}',
    ),
    ("function-call", {"call_id": "t", "name": "f", "arguments": {"a": 1}}, 't: f({"a":1})'),
    (
        "function-result",
        {"call_id": "t", "output": [1], "answers": 4, "is_error": True},
        "t (version 4) [is_error]: [1]",
    ),
    (
        "service-call-started",
        {"sends": [1, 2], "continues": {"response": "r"}},
        'sends 1 2, continues {"response":"r"}',
    ),
    ("service-call-started", {"sends": []}, "sends nothing new"),
    ("service-call-completed", {"finish_reason": "stop", "model": "m"}, "finish_reason stop, model m"),
    ("service-call-failed", {"outcome": "unknown", "error": "timed out"}, "outcome unknown, error timed out"),
    ("approval-requested", {"function_call": 4, "by": "ann"}, "function_call 4, by ann"),
    ("approval-resolved", {"function_call": 4, "decision": "denied"}, "function_call 4, decision denied"),
    ("run-committed", {"outcome": "completed"}, "outcome completed"),
    ("run-aborted", {"reason": "failed", "error": None}, "reason failed"),
    ("history-rewound", {"to": 0}, "to 0"),
    ("history-compacted", {"through": 4, "messages": [{}, {}]}, "through 4, messages 2"),
    ("conversation-annotated", {"title": "Trip"}, "title Trip"),
    ("something-new", {"a": [1]}, '{"a":[1]}'),
]


def event(kind: str, data: dict[str, Any]) -> Event:
    return Event(1, 1, kind, "o.0", None, None, "", None, None, 1, data, None)


@pytest.mark.parametrize(("kind", "data", "said"), SAID)
def test_an_event_is_summed_up_on_one_line(kind: str, data: dict[str, Any], said: str) -> None:
    assert summary(event(kind, data)) == said


def test_every_known_type_has_its_words() -> None:
    assert {kind for kind, _, _ in SAID} == {*DATA, "something-new"}


def test_a_long_text_is_cut_with_a_mark() -> None:
    data = {"role": "user", "parts": [text("word " * 10_000), tool_call("t", "f", {})]}
    said = summary(event("message-added", data))
    assert (len(said), said[-1]) == (WIDTH, "…")
    assert one_line(" " * 5_000 + "far away", 10).endswith("…")


def test_what_a_terminal_would_obey_is_shown_by_its_number() -> None:
    assert clean("a\x1b[0m\r\x9b\u202e\ttab\nline é🌍") == "a\\x1b[0m\\r\\x9b\\u202e\ttab\nline é🌍"
