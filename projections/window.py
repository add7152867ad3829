"""The newest messages of a view, without cutting what belongs together. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eventlog.messages import Message
from projections.view import Window


def newest(
    messages: Sequence[Message],
    n: int,
    outputs_of: Sequence[int | None],
    pairs: Mapping[int, int],
    *,
    whole: bool = True,
) -> tuple[int, Window] | None:
    """Where the newest ``n`` messages begin, moved to the nearest place that cuts nothing.

    Not cut are one unit's outputs (``outputs_of`` tells of which unit a message is an output) and
    a call from its result (``pairs``: result -> call, by version). The window grows to at most
    2n, else shrinks, but never to nothing. Where the messages are not the ``whole`` history but its
    end, it may be that they do not suffice to tell: None.
    """
    total = len(messages)
    if n >= total:
        return (0, Window(n, total, "whole")) if whole else None
    allowed = _allowed(messages, outputs_of, pairs)
    wanted = total - n
    if allowed[wanted]:
        return wanted, Window(n, n, "exact")
    for start in range(wanted - 1, max(total - 2 * n, 0) - 1, -1):
        if allowed[start]:
            return start, Window(n, total - start, "grown")
    if total < 2 * n and not whole:
        return None
    for start in range(wanted + 1, total):
        if allowed[start]:
            return start, Window(n, total - start, "shrunk")
    for start in range(max(total - 2 * n, 0), -1, -1):
        if allowed[start]:
            return start, Window(n, total - start, "grown")
    return None


def _allowed(messages: Sequence[Message], outputs_of: Sequence[int | None], pairs: Mapping[int, int]) -> list[bool]:
    """For each index, whether the view may be cut before that message."""
    position = {version: index for index, message in enumerate(messages) for version in message.versions}
    ends = [(position.get(call, -1), position.get(result, -1)) for result, call in pairs.items()]
    spans = [(min(pair), max(pair)) for pair in ends if max(pair) >= 0]
    spans += _summary_spans(messages)
    first: dict[int, int] = {}
    for index, unit in enumerate(outputs_of):
        if unit is not None:
            spans.append((first.setdefault(unit, index), index))
    change = [0] * (len(messages) + 1)
    for start, end in spans:
        change[start + 1] += 1
        change[end + 1] -= 1
    allowed, crossing = [], 0
    for delta in change[:-1]:
        crossing += delta
        allowed.append(crossing == 0)
    return allowed


def _summary_spans(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """The calls and results that stand in the messages of one compaction, which all have its version."""
    spans: list[tuple[int, int]] = []
    waiting: dict[tuple[tuple[int, ...], str], int] = {}
    for index, message in enumerate(messages):
        for part in message.parts:
            key = (message.versions, str(part.get("id")))
            if part.get("type") == "tool_call":
                waiting[key] = index
            elif part.get("type") == "tool_call_response" and key in waiting:
                spans.append((waiting.pop(key), index))
    return spans
