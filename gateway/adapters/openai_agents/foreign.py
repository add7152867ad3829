"""Messages that others recorded, as items of the SDK. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from eventlog.messages import Json
from gateway.adapters.openai_agents.kinds import Item

_ROLES = frozenset({"user", "assistant", "system", "developer"})


def item_of_message(role: str, parts: Sequence[dict[str, Json]]) -> list[Item]:
    """A message, with the calls and results in it as items of their own.

    Text stands as text; a part of any other type as its JSON, so that nothing is hidden.
    """
    items: list[Item] = []
    texts: list[str] = []

    def flush() -> None:
        if texts:
            items.append({"role": role if role in _ROLES else "user", "content": "\n".join(texts)})
            texts.clear()

    for part in parts:
        kind = part.get("type")
        if kind == "tool_call":
            flush()
            arguments = part.get("arguments")
            items.append(
                {
                    "type": "function_call",
                    "call_id": part.get("id"),
                    "name": part.get("name"),
                    "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments or {}),
                }
            )
        elif kind == "tool_call_response":
            flush()
            response = part.get("response")
            output = response if isinstance(response, str) else json.dumps(response)
            items.append({"type": "function_call_output", "call_id": part.get("id"), "output": output})
        elif kind in ("text", "reasoning"):
            texts.append(str(part.get("content", "")))
        else:
            texts.append(json.dumps(part))
    if not items and not texts:
        texts.append("")
    flush()
    return items
