"""What an item of the OpenAI Agents SDK is: said to the model or by it, and what it belongs to. Pure."""

from __future__ import annotations

from eventlog.messages import Json

Item = dict[str, Json]
"""An input item of the SDK, as ``Session.add_items`` takes it."""

_CALL_OF = {"tool_search_output": "tool_search_call", "mcp_approval_response": "mcp_approval_request"}
"""The answers whose name does not lead to that of what they answer."""
_REFERENCES = frozenset({"item_reference"})


def is_output(item: Item) -> bool:
    """Whether the model said it. A message tells by its role, anything else by its type.

    What answers a call (``…_output``, ``…_response``) is an input, as the application sends it.
    """
    kind = item.get("type")
    if kind is None or kind == "message":
        return item.get("role") == "assistant"
    return isinstance(kind, str) and kind not in _REFERENCES and not _is_answer(kind)


def asks(item: Item) -> tuple[str, str] | None:
    """The key under which this item waits for its answer: the type and id of a call; None for other items."""
    kind = item.get("type")
    if not isinstance(kind, str) or _is_answer(kind):
        return None
    name = "id" if kind == "mcp_approval_request" else "call_id"
    return _key(kind, item.get(name))


def answers(item: Item) -> tuple[str, str] | None:
    """The key of what this item answers; None for other items."""
    kind = item.get("type")
    if not isinstance(kind, str) or not _is_answer(kind):
        return None
    name = "approval_request_id" if kind == "mcp_approval_response" else "call_id"
    return _key(_CALL_OF.get(kind, kind.removesuffix("_output")), item.get(name))


def leads_on(item: Item) -> bool:
    """Whether the service refuses this item without the one behind it, and that one without it: reasoning."""
    return item.get("type") == "reasoning"


def _is_answer(kind: str) -> bool:
    return kind.endswith(("_output", "_response"))


def _key(kind: str, identity: Json) -> tuple[str, str] | None:
    return (kind, identity) if isinstance(identity, str) and identity else None
