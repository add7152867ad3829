"""Closing open calls, so that a service takes the history. Pure and deterministic."""

from __future__ import annotations

from dataclasses import replace

from eventlog.messages import Json, Message
from projections.view import View

NO_RESULT = "No result: the run that made this call ended before the call was answered."


def repair(view: View) -> View:
    """The view with a marked synthetic result for each open call of a finished run.

    A call that waits for approval, or whose run is open, is left alone. Results without a call are
    taken out; one that entered before its call (another run had carried it) is put behind it. What
    is put in stands behind the results that follow the call's message.
    """
    position = {version: index for index, message in enumerate(view.messages) for version in message.versions}
    answers = {
        call.version: _no_result(call.call_id)
        for call in view.open_calls
        if not call.run_open and not call.awaits_approval and call.version in position
    }
    closed = frozenset(answers)
    early = {
        result: call
        for result, call in view.pairs.items()
        if result in position and call in position and position[result] < position[call]
    }
    for result, call in early.items():
        message = view.messages[position[result]]
        answers[call] = message.parts[message.versions.index(result)]
    gone = early.keys() | set(view.stray_results)
    messages: list[Message] = []
    pending: list[dict[str, Json]] = []
    for shown in view.messages:
        message = _without(shown, gone) if gone.intersection(shown.versions) else shown
        if shown.parts and not message.parts:
            continue
        if message.role != "tool":
            _close(messages, pending)
            pending = [answers[version] for version in message.versions if version in answers]
        messages.append(message)
    _close(messages, pending)
    left = tuple(call for call in view.open_calls if call.version not in closed)
    pairs = {result: call for result, call in view.pairs.items() if result not in early}
    return replace(view, messages=tuple(messages), open_calls=left, stray_results=(), pairs=pairs)


def _no_result(call_id: str) -> dict[str, Json]:
    return {
        "type": "tool_call_response",
        "id": call_id,
        "response": NO_RESULT,
        "is_error": True,
        "synthetic": True,
    }


def _close(messages: list[Message], results: list[dict[str, Json]]) -> None:
    if results:
        messages.append(Message("tool", list(results)))


def _without(message: Message, versions: set[int]) -> Message:
    """A message of results without those of these events: each of its events is one part."""
    kept = [
        (part, version)
        for part, version in zip(message.parts, message.versions, strict=True)
        if version not in versions
    ]
    return replace(message, parts=[part for part, _ in kept], versions=tuple(version for _, version in kept))
