"""What a process is told when it is started. Pure."""

from __future__ import annotations

import json
from typing import NamedTuple

NAMESPACE = "chaos"
PARTITIONS = 4
GROUP = "workers"
TENANTS = ("blue", "a/b")
NAMES = ("one", "two/2", "drei ä", "{4}", "5%2F", "six:6")
CONVERSATIONS = tuple((tenant, name) for tenant in TENANTS for name in NAMES)


class Order(NamedTuple):
    """For one life of one process."""

    name: str
    """As ``agent-1``."""
    life: int
    seed: int
    url: str
    home: str
    """Where the ledgers are, and ``stop`` appears when agents shall end."""
    parent: int = 0
    """The process id of the run."""
    durability: str = "always"
    """What it asks for when it opens the log."""
    shift: float = 0.0
    """Seconds by which its clock is wrong."""
    jump: float = 0.0
    """Seconds by which its clock jumps to and fro."""

    @property
    def number(self) -> int:
        """Its number among those of its kind."""
        return int(self.name.rpartition("-")[2])

    def write(self) -> str:
        """As an argument."""
        return json.dumps(list(self))

    @classmethod
    def read(cls, text: str) -> Order:
        """The inverse of ``write``."""
        return cls(*json.loads(text))
