"""Closing open calls, so that a service takes the history. Pure and deterministic."""

from __future__ import annotations

from dataclasses import replace

from eventlog.messages import Json, Message
from projections.view import View

NO_RESULT = "No result: the run that made this call ended before the call was answered."


def repair(view: View) -> View:
    """The view with a marked synthetic result for each open call of a finished run.

    A call that waits for approval, or whose run is open, is left alone. Results without a call are
    taken out. The synthetic results stand behind the results that follow the call's message.
    """
    shown = {version for message in view.messages for version in message.versions}
    closing = {
        call.version: call
        for call in view.open_calls
        if not call.run_open and not call.awaits_approval and call.version in shown
    }
    strays = set(view.stray_results)
    messages: list[Message] = []
    pending: list[dict[str, Json]] = []
    for shown_message in view.messages:
        message = _without(shown_message, strays) if strays.intersection(shown_message.versions) else shown_message
        if shown_message.parts and not message.parts:
            continue
        if message.role != "tool":
            _close(messages, pending)
            pending = [
                {
                    "type": "tool_call_response",
                    "id": closing[version].call_id,
                    "response": NO_RESULT,
                    "is_error": True,
                    "synthetic": True,
                }
                for version in message.versions
                if version in closing
            ]
        messages.append(message)
    _close(messages, pending)
    left = tuple(call for call in view.open_calls if call.version not in closing)
    return replace(view, messages=tuple(messages), open_calls=left, stray_results=())


def _close(messages: list[Message], results: list[dict[str, Json]]) -> None:
    if results:
        messages.append(Message("tool", list(results)))


def _without(message: Message, versions: set[int]) -> Message:
    """The message without the results of these events. In a tool message each event is one part."""
    kept = [
        (part, version)
        for part, version in zip(message.parts, message.versions, strict=True)
        if version not in versions
    ]
    return replace(message, parts=[part for part, _ in kept], versions=tuple(version for _, version in kept))
