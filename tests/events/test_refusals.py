"""A malformed event is refused with the path of what is wrong, before anything is sent."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.codec import encode
from eventlog.errors import InvalidEvent
from eventlog.events import DATA, Draft
from eventlog.messages import text
from tests.events import strategies
from tests.events.test_stored import EXAMPLES

AT = "2026-01-02T03:04:05.000006Z"
GONE = object()

# type, field (or path to it), value put there (GONE: taken out), path told, words of the message
CASES: list[tuple[str, tuple[str | int, ...], Any, str, str]] = [
    ("run-started", ("mode",), "per-day", "mode", "per-service-call"),
    ("run-started", ("mode",), GONE, "mode", "required"),
    ("run-started", ("mode",), None, "mode", "None"),
    ("run-started", ("agent",), 5, "agent", "string"),
    ("run-started", ("parent", "run"), GONE, "parent.run", "required"),
    ("run-started", ("parent", "conversation"), 1, "parent.conversation", "string"),
    ("run-started", ("parent",), "c", "parent", "dict"),
    ("run-started", ("labels", "team"), 3, "labels.team", "string"),
    ("run-resumed", ("by",), GONE, "by", "required"),
    ("run-resumed", ("fence",), 17, "fence", "string"),
    ("message-added", ("message_id",), GONE, "message_id", "required"),
    ("message-added", ("role",), "", "role", "1 character"),
    ("message-added", ("role",), 5, "role", "string"),
    ("message-added", ("parts",), "hi", "parts", "list"),
    ("message-added", ("parts",), {}, "parts", "list"),
    ("message-added", ("parts", 0), "hi", "parts[0]", "dict"),
    ("message-added", ("parts", 0), {}, "parts[0].type", "required"),
    ("message-added", ("parts", 0), {"type": 5}, "parts[0].type", "string"),
    ("message-added", ("parts", 0), {"type": None}, "parts[0].type", "string"),
    ("message-added", ("parts", 0), {"type": "text"}, "parts[0].content", "required"),
    ("message-added", ("parts", 1), {"type": "text", "content": 5}, "parts[1].content", "string"),
    ("message-added", ("parts", 1), {"type": "reasoning", "content": None}, "parts[1].content", "string"),
    ("message-added", ("parts", 2), {"type": "blob"}, "parts[2].content", "required"),
    ("message-added", ("parts", 0), {"type": "blob", "content": "", "modality": 1}, "parts[0].modality", "string"),
    ("message-added", ("parts", 0), {"type": "blob", "content": "", "mime_type": 1}, "parts[0].mime_type", "string"),
    ("message-added", ("parts", 0), {"type": "file"}, "parts[0].file_id", "required"),
    ("message-added", ("parts", 0), {"type": "file", "file_id": 1}, "parts[0].file_id", "string"),
    ("message-added", ("parts", 0), {"type": "uri", "url": "x"}, "parts[0].uri", "required"),
    ("message-added", ("parts", 0), {"type": "tool_call", "id": "a"}, "parts[0].name", "required"),
    ("message-added", ("parts", 0), {"type": "tool_call", "name": "a"}, "parts[0].id", "required"),
    ("message-added", ("parts", 0), {"type": "tool_call_response", "id": "a"}, "parts[0].response", "required"),
    ("message-added", ("author",), [], "author", "string"),
    ("message-added", ("extra",), "x", "extra", "dict"),
    ("function-call", ("call_id",), GONE, "call_id", "required"),
    ("function-call", ("call_id",), 5, "call_id", "string"),
    ("function-call", ("name",), None, "name", "string"),
    ("function-call", ("message_id",), None, "message_id", "string"),
    ("function-call", ("part",), [], "part", "dict"),
    ("function-call", ("extra",), [], "extra", "dict"),
    ("function-call", ("message_extra",), 1, "message_extra", "dict"),
    ("function-result", ("output",), GONE, "output", "required"),
    ("function-result", ("call_id",), None, "call_id", "string"),
    ("function-result", ("answers",), 0, "answers", "greater than or equal to 1"),
    ("function-result", ("answers",), -1, "answers", "greater than or equal to 1"),
    ("function-result", ("answers",), 1 << 53, "answers", "less than"),
    ("function-result", ("answers",), "4", "answers", "integer"),
    ("function-result", ("answers",), 4.0, "answers", "integer"),
    ("function-result", ("answers",), True, "answers", "integer"),
    ("function-result", ("is_error",), 1, "is_error", "boolean"),
    ("function-result", ("synthetic",), None, "synthetic", "boolean"),
    ("service-call-started", ("sends",), GONE, "sends", "required"),
    ("service-call-started", ("sends",), "x", "sends", "list"),
    ("service-call-started", ("sends",), [1, 0], "sends[1]", "greater than or equal to 1"),
    ("service-call-started", ("sends",), [1, 2, "3"], "sends[2]", "integer"),
    ("service-call-started", ("sends",), [True], "sends[0]", "integer"),
    ("service-call-started", ("continues",), "s1", "continues", "dict"),
    ("service-call-started", ("model",), 1, "model", "string"),
    ("service-call-completed", ("usage",), 5, "usage", "dict"),
    ("service-call-completed", ("service",), "s", "service", "dict"),
    ("service-call-completed", ("finish_reason",), 5, "finish_reason", "string"),
    ("service-call-failed", ("outcome",), "maybe", "outcome", "refused"),
    ("service-call-failed", ("outcome",), GONE, "outcome", "required"),
    ("service-call-failed", ("error",), None, "error", "string"),
    ("service-call-failed", ("partial", 0, "content"), 5, "partial[0].content", "string"),
    ("service-call-failed", ("partial", 1, "name"), GONE, "partial[1].name", "required"),
    ("approval-requested", ("function_call",), "c1", "function_call", "integer"),
    ("approval-requested", ("function_call",), GONE, "function_call", "required"),
    ("approval-requested", ("by",), 1, "by", "string"),
    ("approval-resolved", ("decision",), "perhaps", "decision", "approved"),
    ("approval-resolved", ("function_call",), None, "function_call", "integer"),
    ("run-committed", ("outcome",), "done", "outcome", "completed"),
    ("run-committed", ("usage",), [], "usage", "dict"),
    ("run-aborted", ("reason",), "bored", "reason", "cancelled"),
    ("run-aborted", ("error",), 5, "error", "string"),
    ("history-rewound", ("to",), -1, "to", "greater than or equal to 0"),
    ("history-rewound", ("to",), None, "to", "integer"),
    ("history-rewound", ("to",), GONE, "to", "required"),
    ("history-rewound", ("to",), 1 << 53, "to", "less than"),
    ("history-compacted", ("through",), 0, "through", "greater than or equal to 1"),
    ("history-compacted", ("messages",), None, "messages", "list"),
    ("history-compacted", ("messages", 0), "x", "messages[0]", "dict"),
    ("history-compacted", ("messages", 0, "role"), "", "messages[0].role", "1 character"),
    ("history-compacted", ("messages", 0, "parts"), GONE, "messages[0].parts", "required"),
    (
        "history-compacted",
        ("messages", 0, "parts", 0),
        {"type": "text"},
        "messages[0].parts[0].content",
        "required",
    ),
    ("conversation-annotated", ("title",), 5, "title", "string"),
    ("conversation-annotated", ("labels",), [], "labels", "dict"),
    ("conversation-annotated", ("labels", "k"), None, "labels.k", "string"),
]


def refused(draft: Draft) -> InvalidEvent:
    """The error that this draft, as the third event of an operation, is refused with."""
    good = Draft("x-good", {})
    with pytest.raises(InvalidEvent) as caught:
        encode([good, good, draft], "op", AT)
    return caught.value


def test_every_type_has_a_case() -> None:
    assert {case[0] for case in CASES} == set(DATA)


@pytest.mark.parametrize("kind", sorted(DATA))
def test_what_the_cases_start_from_is_well_formed(kind: str) -> None:
    encode([Draft(kind, EXAMPLES[kind], run="r", call=1)], "op", AT)


@pytest.mark.parametrize(
    ("kind", "field", "value", "path", "words"), CASES, ids=[f"{case[0]}-{case[3]}-{i}" for i, case in enumerate(CASES)]
)
def test_a_malformed_known_event_is_refused_with_the_path(
    kind: str, field: tuple[str | int, ...], value: Any, path: str, words: str
) -> None:
    data = copy.deepcopy(EXAMPLES[kind])
    inner: Any = data
    for step in field[:-1]:
        inner = inner[step]
    if value is GONE:
        del inner[field[-1]]
    else:
        inner[field[-1]] = value
    error = refused(Draft(kind, data, run="r", call=1))
    assert error.path == f"events[2].data.{path}"
    assert words in error.problem
    assert str(error) == f"{error.path}: {error.problem}"


@pytest.mark.parametrize(
    ("draft", "path"),
    [
        (Draft("", {}), "type"),
        (Draft("x y", {}), "type"),
        (Draft('x"', {}), "type"),
        (Draft("x\n", {}), "type"),
        (Draft("é", {}), "type"),
        (Draft("x" * 65, {}), "type"),
        (Draft(5, {}), "type"),  # type: ignore[arg-type]
        (Draft("x", None), "data"),  # type: ignore[arg-type]
        (Draft("x", []), "data"),  # type: ignore[arg-type]
        (Draft("x", "{}"), "data"),  # type: ignore[arg-type]
        (Draft("run-started", EXAMPLES["run-started"]), "run"),
        (Draft("run-resumed", EXAMPLES["run-resumed"]), "run"),
        (Draft("run-committed", EXAMPLES["run-committed"]), "run"),
        (Draft("run-aborted", EXAMPLES["run-aborted"]), "run"),
        (Draft("service-call-started", EXAMPLES["service-call-started"], call=1), "run"),
        (Draft("service-call-started", EXAMPLES["service-call-started"], run="r"), "call"),
        (Draft("service-call-completed", {}, run="r"), "call"),
        (Draft("service-call-failed", EXAMPLES["service-call-failed"], run="r"), "call"),
        (Draft("message-added", EXAMPLES["message-added"], call=1), "run"),
        (Draft("x", {}, run=""), "run"),
        (Draft("x", {}, run="x" * 1001), "run"),
        (Draft("x", {}, run=5), "run"),  # type: ignore[arg-type]
        (Draft("x", {}, run="\ud800"), "run"),
        (Draft("x", {}, run="r", call=0), "call"),
        (Draft("x", {}, run="r", call=-1), "call"),
        (Draft("x", {}, run="r", call=True), "call"),
        (Draft("x", {}, run="r", call=1.0), "call"),  # type: ignore[arg-type]
        (Draft("x", {}, run="r", call="1"), "call"),  # type: ignore[arg-type]
        (Draft("x", {}, run="r", call=1 << 53), "call"),
        (Draft("x", {}, actor=""), "actor"),
        (Draft("x", {}, actor=b"ada"), "actor"),  # type: ignore[arg-type]
        (Draft("x", {}, causation="\udfff"), "causation"),
        (Draft("x", {}, meta=[]), "meta"),  # type: ignore[arg-type]
        (Draft("x", {}, meta="m"), "meta"),  # type: ignore[arg-type]
    ],
    ids=lambda value: None if isinstance(value, str) else ascii(value)[:60],
)
def test_a_malformed_envelope_is_refused_with_the_path(draft: Draft, path: str) -> None:
    assert refused(draft).path == f"events[2].{path}"


KNOWN_PARTS = ("text", "reasoning", "blob", "file", "uri", "tool_call", "tool_call_response")


@pytest.mark.parametrize("kind", KNOWN_PARTS)
@given(st.dictionaries(strategies.TEXT, strategies.JSON, max_size=3))
def test_a_malformed_known_part_never_slips_through_as_another(kind: str, rest: dict[str, Any]) -> None:
    """None of the needed fields is there, whatever else is."""
    needed = {"content", "file_id", "uri", "id", "name", "response", "type"}
    part = {"type": kind, **{name: value for name, value in rest.items() if name not in needed}}
    error = refused(Draft("message-added", {"message_id": "m", "role": "user", "parts": [text("ok"), part]}))
    assert error.path.startswith("events[2].data.parts[1].")
    error = refused(Draft("service-call-failed", {"error": "e", "outcome": "unknown", "partial": [part]}, "r", 1))
    assert error.path.startswith("events[2].data.partial[0].")


@given(strategies.OTHER_PART)
def test_an_unknown_part_passes_through_whole(part: dict[str, Any]) -> None:
    encode([Draft("message-added", {"message_id": "m", "role": "user", "parts": [part]})], "op", AT)


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": "tool_call", "id": "c", "name": "look"}, "function-call"),
        ({"type": "tool_call_response", "id": "c", "response": 1}, "function-result"),
    ],
)
def test_a_call_is_no_part_of_a_recorded_message_for_nobody_would_answer_it(part: dict[str, Any], kind: str) -> None:
    error = refused(Draft("message-added", {"message_id": "m", "role": "user", "parts": [text("ok"), part]}))
    assert error.path == "events[2].data.parts[1].type"
    assert f"is recorded as a {kind} event" in str(error)


def test_one_bad_event_refuses_the_whole_operation() -> None:
    good = Draft("x", {})
    with pytest.raises(InvalidEvent) as caught:
        encode([good, Draft("history-rewound", {}), good], "op", AT)
    assert caught.value.path == "events[1].data.to"
