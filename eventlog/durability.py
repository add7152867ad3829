"""What an acknowledged append survives. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from eventlog.errors import InvalidInput

_REPLICATED = re.compile(r"replicated\(([1-9][0-9]?)\)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Durability:
    """``memory``, ``everysec``, ``always`` or ``replicated(n)``; ``str`` and ``parse`` are inverse."""

    name: str
    """What the server must do: ``memory`` nothing, ``everysec`` and ``always`` as its appendfsync."""
    replicas: int = 0
    """How many replicas must hold an append before it is acknowledged."""

    def __str__(self) -> str:
        return f"replicated({self.replicas})" if self.replicas else self.name

    @classmethod
    def parse(cls, text: str) -> Durability:
        """Read one from its text, or raise ``InvalidInput``."""
        if text in ("memory", "everysec", "always"):
            return cls(text)
        match = _REPLICATED.fullmatch(text)
        if match is None:
            raise InvalidInput(
                f"{text[:80]!r} is not a durability: choose memory (lost with the server), everysec (a power cut loses "
                "about a second), always (nothing), or replicated(n) (nothing while n replicas live)"
            )
        return cls("replicated", int(match[1]))


def replicated(replicas: int) -> Durability:
    """Acknowledge an append when this many replicas hold it, 1 to 99."""
    return Durability.parse(f"replicated({replicas})")


MEMORY = Durability("memory")
EVERYSEC = Durability("everysec")
ALWAYS = Durability("always")
