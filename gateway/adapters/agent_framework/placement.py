"""Which event of an append records which content. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from agent_framework import Content

from gateway.adapters.agent_framework.contents import Part


def placed(contents: Sequence[Content], parts: Sequence[Part], versions: list[int]) -> list[tuple[Content, Part, int]]:
    """Each content with its part and the version of its event. Takes the versions from the front of the list.

    Calls and results are events of their own, plain parts that stand next to each other share one.
    """
    found = []
    together: int | None = None
    for content, part in zip(contents, parts, strict=True):
        if part["type"] in ("tool_call", "tool_call_response"):
            found.append((content, part, versions.pop(0)))
            together = None
            continue
        if together is None:
            together = versions.pop(0)
        found.append((content, part, together))
    if not parts:
        versions.pop(0)
    return found
