"""What the processes work on, and what can be done to it. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Protocol, Self

from chaos.raw import Raw
from chaos.schedule import Fault


class Stage(Protocol):
    """One server, or a cluster."""

    durability: str
    """What processes ask for when they open the log."""
    counts: Counter[str]
    """What was done to it: ``kills`` of servers; connections ``cut``, replies ``lost``, requests ``dropped``,
    slots ``moved``."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *error: object) -> None: ...

    def url(self, kind: str) -> str:
        """What a process of this kind opens."""
        ...

    def plan(self, seed: int, seconds: float) -> list[Fault]:
        """What goes wrong in so many seconds."""
        ...

    async def harm(self, fault: Fault) -> None:
        """Do it, and return when it is over. Not what is done to processes."""
        ...

    def mend(self) -> None:
        """From now on nothing goes wrong."""
        ...

    def read(self) -> Raw:
        """Every key."""
        ...

    async def read_again(self) -> tuple[str, Raw]:
        """Every key as another has it who was told of every write, and who that is."""
        ...
