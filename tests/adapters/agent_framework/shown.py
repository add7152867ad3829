"""Logs and histories in words short enough to write out."""

from __future__ import annotations

from typing import Any

from eventlog import Conversation
from projections import history


async def events(conversation: Conversation) -> list[str]:
    """Each event: its type, and what tells it from others."""
    return [_event(event.type, event.data) async for event in conversation.read()]


def _event(kind: str, data: dict[str, Any]) -> str:
    if kind == "message-added":
        texts = [str(part.get("content", part["type"])) for part in data["parts"]]
        return f"{data['role']}: {' '.join(texts)}"
    if kind == "function-call":
        return f"call {data['call_id']} {data['name']}"
    if kind == "function-result":
        marks = "".join(f" ({name})" for name in ("is_error", "synthetic") if data.get(name))
        return f"result {data['call_id']} -> {data['output']}, answers {data.get('answers')}{marks}"
    if kind == "service-call-started":
        continues = f", continues {data['continues']['conversation']}" if data.get("continues") else ""
        return f"sends {data['sends']}{continues}"
    if kind == "service-call-completed":
        conversation = (data.get("service") or {}).get("conversation")
        return "completed" if conversation is None else f"completed in {conversation}"
    if kind == "service-call-failed":
        partial = " ".join(str(part.get("content", part["type"])) for part in data.get("partial", ()))
        return f"failed, {data['outcome']}" + (f", after: {partial}" if partial else "")
    told = [str(data[name]) for name in ("mode", "outcome", "reason", "decision", "function_call") if name in data]
    return " ".join([kind, *told])


async def view(conversation: Conversation) -> list[str]:
    """Each part of the service view."""
    shown = []
    for message in (await history.load(conversation)).messages:
        for part in message.parts:
            if part["type"] == "tool_call":
                shown.append(f"call {part['id']} {part['name']}")
            elif part["type"] == "tool_call_response":
                shown.append(f"result {part['id']} -> {part['response']}")
            else:
                shown.append(f"{message.role}: {part.get('content', part['type'])}")
    return shown
