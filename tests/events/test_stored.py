"""Stored bytes: those of schema 1 stay readable for ever, older forms are lifted, broken ones are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from eventlog.codec import Upcaster, decode, encode
from eventlog.errors import Unreadable
from eventlog.events import DATA, NEEDS_CALL, Draft
from eventlog.messages import text, tool_call, tool_result

FIXTURE = Path(__file__).parent / "schema-1.jsonl"
AT = "2026-01-02T03:04:05.000006Z"
OPERATION = 'an operation, "quoted" · ☂'

_SAID = {"author": "Ada", "extra": {"signature": "c2ln", "n": [1, 2.5, None, True]}}
_PARTS = [text("héllo\n"), {"type": "x-new", "deep": [{"a": 18446744073709551615}]}, {"type": "uri", "uri": "u:1"}]
EXAMPLES: dict[str, dict[str, Any]] = {
    "run-started": {
        "mode": "per-run",
        "agent": "helper",
        "parent": {"conversation": "c/1", "run": "r0"},
        "labels": {"team": "blue"},
    },
    "run-resumed": {"by": "host:7", "fence": "00ff00ff00ff00ff"},
    "message-added": {"message_id": "m1", "role": "user", "parts": _PARTS, **_SAID},
    "function-call": {
        "message_id": "m2",
        "call_id": "c1",
        "name": "look_up",
        "arguments": '{"q": 1}',
        **_SAID,
        "message_extra": {"a": 1},
        "part": {"index": 0},
    },
    "function-result": {
        "message_id": "m3",
        "call_id": "c1",
        "output": {"found": [text("x")]},
        "answers": 4,
        "is_error": True,
        "synthetic": False,
        **_SAID,
        "message_extra": None,
        "part": None,
    },
    "service-call-started": {
        "sends": [3, 2, 9007199254740991],
        "continues": {"response": "s1"},
        "model": "big",
        "instructions": "i",
        "tools": "t",
    },
    "service-call-completed": {
        "finish_reason": "stop",
        "model": "big-2",
        "usage": {"input_tokens": 5},
        "service": {"response": "s2", "conversation": "k"},
    },
    "service-call-failed": {
        "error": "timed out",
        "outcome": "unknown",
        "partial": [text("Once"), tool_call("c2", "look_up", {}), tool_result("c2", None, is_error=True)],
    },
    "approval-requested": {"function_call": 4, "by": "agent", "reason": "costs money"},
    "approval-resolved": {"function_call": 4, "decision": "denied", "by": "Ada", "reason": None},
    "run-committed": {"outcome": "max-iterations", "usage": {"total": 0.25}},
    "run-aborted": {"reason": "sealed", "error": "x"},
    "history-rewound": {"to": 0},
    "history-compacted": {"through": 5, "messages": [{"role": "system", "parts": [text("so far")], **_SAID}]},
    "conversation-annotated": {"title": "A talk", "labels": {"k": "v"}},
}


def drafts() -> list[Draft]:
    return [
        Draft(
            kind,
            {**data, "x-later": [kind]},
            run="run 1",
            call=3 if kind in NEEDS_CALL else None,
            actor="ada@example",
            causation="op0.2",
            meta={"trace": "00-1"},
        )
        for kind, data in EXAMPLES.items()
    ]


def test_every_type_is_in_the_stored_fixture() -> None:
    assert list(EXAMPLES) == list(DATA)
    assert [orjson.loads(line)["type"] for line in FIXTURE.read_bytes().splitlines()] == list(DATA)


def test_what_is_written_today_is_what_was_written_with_schema_1() -> None:
    assert list(encode(drafts(), OPERATION, AT).documents) == FIXTURE.read_bytes().splitlines()


def test_what_was_written_with_schema_1_is_read_today() -> None:
    lines = FIXTURE.read_bytes().splitlines()
    for index, (line, draft) in enumerate(zip(lines, drafts(), strict=True)):
        event = decode(index + 1, 99, line)
        assert (event.version, event.stamp, event.id) == (index + 1, 99, f"{OPERATION}.{index}")
        assert (event.type, event.data, event.run, event.call) == (draft.type, draft.data, draft.run, draft.call)
        assert (event.actor, event.causation, event.meta) == (draft.actor, draft.causation, draft.meta)
        assert (event.at, event.schema) == (AT, 1)


def _rename_speaker(data: dict[str, Any]) -> dict[str, Any]:
    return {("role" if name == "speaker" else name): value for name, value in data.items()}


def _wrap_words(data: dict[str, Any]) -> dict[str, Any]:
    words = data.pop("words")
    return {**data, "parts": [text(words)]}


INVENTED: dict[tuple[str, int], Upcaster] = {("x-said", 1): _rename_speaker, ("x-said", 2): _wrap_words}
OLD = b'{"id":"o.0","type":"x-said","at":"t","schema":%d,"data":%b}'
NOW = {"role": "user", "parts": [text("hi")], "x": 1}


@pytest.mark.parametrize(
    "stored",
    [
        OLD % (1, b'{"speaker":"user","words":"hi","x":1}'),
        OLD % (2, b'{"role":"user","words":"hi","x":1}'),
        OLD % (3, orjson.dumps(NOW)),
        b'{"id":"o.0","type":"x-said","at":"t","data":{"speaker":"user","words":"hi","x":1}}',
    ],
    ids=["the oldest form", "the second form", "the current form", "a form without a number is the oldest"],
)
def test_an_older_form_is_lifted_step_by_step(stored: bytes) -> None:
    event = decode(1, 1, stored, upcasters=INVENTED)
    assert (event.data, event.schema) == (NOW, 3)


def test_a_form_newer_than_what_is_known_is_passed_on_as_it_is() -> None:
    event = decode(1, 1, OLD % (9, b'{"later":true}'), upcasters=INVENTED)
    assert (event.data, event.schema) == ({"later": True}, 9)


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"{",
        b"null",
        b"5",
        b"[]",
        b'"text"',
        b"{}",
        b'{"id":"o.0","type":"x","at":"t"}',
        b'{"id":"o.0","at":"t","data":{}}',
        b'{"type":"x","at":"t","data":{}}',
        b'{"id":"o.0","type":"x","data":{}}',
        b"\xff\xfe",
        b'{"id":"o.0","type":"x","at":"t","data":5}',
        b'{"id":"o.0","type":"x","at":"t","data":null}',
        b'{"id":"o.0","type":"x","at":"t","data":[]}',
        b'{"id":"o.0","type":5,"at":"t","data":{}}',
        b'{"id":"o.0","type":[],"at":"t","data":{}}',
        b'{"id":7,"type":"x","at":"t","data":{}}',
        b'{"id":"o.0","type":"x","at":"t","data":{},"schema":[]}',
        OLD % (2, b'{"no words":1}'),
    ],
    ids=ascii,
)
def test_bytes_that_hold_no_event_are_told_with_their_version(document: bytes) -> None:
    with pytest.raises(Unreadable, match="version 41 "):
        decode(41, 1, document, upcasters=INVENTED)
