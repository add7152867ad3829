"""How far the scan of a partition's logs is. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eventlog.errors import Unreadable


@dataclass(frozen=True, slots=True)
class Scan:
    """Conversations are scanned by the number of the feed entry that named them first."""

    after: int = 0
    """The number of the last one scanned."""
    conversations: int = 0
    """How many were scanned."""
    checks: bool = False
    """Something was lost: what is kept of conversations that are gone goes, too."""
    done: bool = False

    def past(self, number: int, conversations: int) -> Scan:
        """So many more are scanned, up to this one."""
        return replace(self, after=number, conversations=self.conversations + conversations)

    def ended(self) -> Scan:
        """All are scanned."""
        return replace(self, done=True)

    def __str__(self) -> str:
        state = "done" if self.done else "check" if self.checks else "scan"
        return f"{state} {self.after} {self.conversations}"

    @classmethod
    def parse(cls, text: str | None) -> Scan:
        """The inverse of ``str``; of None, the beginning. Raises ``Unreadable``."""
        if text is None:
            return cls()
        state, _, rest = text.partition(" ")
        after, _, conversations = rest.partition(" ")
        try:
            return cls(int(after), int(conversations), state == "check", state == "done")
        except ValueError as error:
            raise Unreadable(f"the progress of a view does not hold what it should: {text!r:.80}") from error
