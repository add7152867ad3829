"""What the checker says. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """A property that does not hold somewhere."""

    property: str
    where: str
    told: str

    def __str__(self) -> str:
        return f"{self.property}: {self.where}: {self.told}"
