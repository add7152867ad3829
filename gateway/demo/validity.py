"""What a model service asks of the messages it is sent: each call answered at once, no result without a call. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from eventlog.messages import Message


def problems(messages: Sequence[Message]) -> list[str]:
    """What a service would refuse, for people to read; empty when the request is valid."""
    found: list[str] = []
    waiting: list[str] = []
    for message in messages:
        if message.role != "tool":
            found += [f"call {call_id} has no result before the next message" for call_id in waiting]
            waiting = []
        for part in message.parts:
            if part.get("type") == "tool_call":
                waiting.append(part["id"])
            elif part.get("type") == "tool_call_response":
                if part["id"] in waiting:
                    waiting.remove(part["id"])
                else:
                    found.append(f"result {part['id']} answers no call before it")
    found += [f"call {call_id} has no result" for call_id in waiting]
    if not messages or messages[-1].role not in ("user", "tool"):
        found.append("nothing to reply to")
    return found
