"""A service call as it goes out: what its options say, and the call while it is on its way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from eventlog import ServiceCall

LOCAL_CONVERSATION = "agent_framework_local_history_persistence"
"""What stands for a conversation of the service's while the framework keeps the history; no service knows it."""


class Request(NamedTuple):
    """What a service call is about to carry, besides its messages."""

    model: str | None = None
    instructions: str | None = None
    tools: str | None = None
    continues: str | None = None
    """The service's conversation that it goes on with."""


@dataclass(slots=True)
class OpenCall:
    """A service call on its way, and what leaves its block."""

    call: ServiceCall
    leaving: AsyncExitStack
    carried: frozenset[int] = frozenset()


def request_of(options: Mapping[str, Any]) -> Request:
    """What the framework's options say of the request."""
    conversation = options.get("conversation_id")
    if not isinstance(conversation, str) or conversation == LOCAL_CONVERSATION:
        conversation = None
    model, instructions = options.get("model"), options.get("instructions")
    tools = options.get("tools") or ()
    listed = tools if isinstance(tools, Sequence) and not isinstance(tools, str) else [tools]
    names = [str(getattr(tool, "name", type(tool).__name__)) for tool in listed]
    return Request(
        model if isinstance(model, str) else None,
        blake2b(instructions.encode(), digest_size=8).hexdigest() if isinstance(instructions, str) else None,
        ",".join(names) or None,
        conversation,
    )
