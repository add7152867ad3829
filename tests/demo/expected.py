"""What the rules of history make of the demo's conversation, written out by hand."""

from __future__ import annotations

from typing import Any

Messages = list[tuple[str, list[dict[str, Any]]]]


def _text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


FIRST_TURN: Messages = [
    ("user", [_text("Can we hike to Larch Hut on Saturday?")]),
    (
        "assistant",
        [
            {"type": "tool_call", "id": "call_1", "name": "forecast", "arguments": {"day": "Saturday"}},
            {"type": "tool_call", "id": "call_2", "name": "free_beds", "arguments": {"day": "Saturday"}},
        ],
    ),
    ("tool", [{"type": "tool_call_response", "id": "call_2", "response": {"day": "Saturday", "free": 4}}]),
    (
        "tool",
        [{"type": "tool_call_response", "id": "call_1", "response": {"day": "Saturday", "sky": "dry until evening"}}],
    ),
    ("assistant", [_text("Yes: Saturday is dry until evening, and the hut has 4 free beds.")]),
]
KILLED_TURN: Messages = [
    ("user", [_text("Which bus takes us to the trailhead?")]),
    ("assistant", [{"type": "tool_call", "id": "call_3", "name": "next_bus", "arguments": {"day": "Saturday"}}]),
]
CARRIED: Messages = [
    ("tool", [{"type": "tool_call_response", "id": "call_3", "response": {"day": "Saturday", "leaves": "07:15"}}])
]
LAST_QUESTION: Messages = [("user", [_text("Fine. Book us two beds for Saturday night.")])]
BOOKING = {"type": "tool_call", "id": "call_4", "name": "book_beds", "arguments": {"beds": 2}}

HISTORY: dict[str, Messages] = {
    "per-service-call": [
        *FIRST_TURN,
        *KILLED_TURN,
        *CARRIED,
        *LAST_QUESTION,
        ("assistant", [_text("The 07:15 bus is in time. I book the beds."), BOOKING]),
    ],
    "per-run": [
        *FIRST_TURN,
        *LAST_QUESTION,
        ("assistant", [_text("I book the beds."), BOOKING]),
    ],
}
HISTORY_WHEN_KILLED: dict[str, Messages] = {
    "per-service-call": [*FIRST_TURN, *KILLED_TURN],
    "per-run": FIRST_TURN,
}

NOT_IN_HISTORY = {
    "per-service-call": {10: "failed-call", 28: "trailing-result"},
    "per-run": {10: "failed-call", 16: "aborted-run", 18: "aborted-run", 20: "aborted-run", 28: "trailing-result"},
}
NOT_IN_HISTORY_WHEN_KILLED = {
    "per-service-call": {10: "failed-call", 20: "trailing-result"},
    "per-run": {10: "failed-call", 16: "uncommitted-run", 18: "uncommitted-run", 20: "uncommitted-run"},
}

EVENTS = [
    "run-started",
    "message-added",
    "service-call-started",
    "function-call",
    "function-call",
    "service-call-completed",
    "function-result",
    "function-result",
    "service-call-started",
    "service-call-failed",
    "service-call-started",
    "message-added",
    "service-call-completed",
    "run-committed",
    "run-started",
    "message-added",
    "service-call-started",
    "function-call",
    "service-call-completed",
    "function-result",
    "run-aborted",
    "run-started",
    "message-added",
    "service-call-started",
    "message-added",
    "function-call",
    "service-call-completed",
    "function-result",
    "run-committed",
]

COMPARISON = {
    "in history": [8, 12, 6, 9],
    "failed-call": [1, 1, 1, 1],
    "uncommitted-run": [0, 0, 3, 0],
    "aborted-run": [0, 0, 0, 3],
    "trailing-result": [1, 1, 0, 1],
    "recorded": [10, 14, 10, 14],
}
"""Per service call when the process was killed and at the end, then per run."""
