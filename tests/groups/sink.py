"""Where the members of a test write what they handle: one SQLite file that all processes share."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from pathlib import Path

from eventlog.delivery import Delivery

_SCHEMA = """
CREATE TABLE IF NOT EXISTS holders (partition INTEGER PRIMARY KEY, generation INTEGER, fence TEXT);
CREATE TABLE IF NOT EXISTS steps (
    step INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT, conversation TEXT, version INTEGER, count INTEGER,
    partition INTEGER, generation INTEGER, fence TEXT
);
"""


class Refused(Exception):
    """A former holder came to the sink."""


class Sink:
    """Takes a step only from the newest holder of a partition, and keeps all steps in order."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, timeout=30, isolation_level=None)
        self._connection.execute("PRAGMA synchronous=OFF")
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.executescript(_SCHEMA)

    def take(self, what: str, delivery: Delivery) -> None:
        """Note a step. Raises ``Refused`` when another holds the partition by now."""
        holder = delivery.holder
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            known = run("SELECT generation, fence FROM holders WHERE partition = ?", [holder.partition]).fetchone()
            if known is not None and (
                known[0] > holder.generation or (known[0] == holder.generation and known[1] != holder.fence)
            ):
                what = "refused"
            elif known is None or known[0] < holder.generation:
                run(
                    "INSERT OR REPLACE INTO holders VALUES (?, ?, ?)",
                    [holder.partition, holder.generation, holder.fence],
                )
            run(
                "INSERT INTO steps (what, conversation, version, count, partition, generation, fence)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    what,
                    delivery.conversation.conversation,
                    delivery.version,
                    delivery.count,
                    holder.partition,
                    holder.generation,
                    holder.fence,
                ],
            )
        finally:
            run("COMMIT")
        if what == "refused":
            raise Refused

    def steps(self) -> list[tuple[str, str, int, int, str]]:
        """What, conversation, version, count and fence of each step, in order."""
        return self._connection.execute(
            "SELECT what, conversation, version, count, fence FROM steps ORDER BY step"
        ).fetchall()

    def close(self) -> None:
        self._connection.close()


class Story:
    """What the steps tell, checked as they are read."""

    def __init__(self, sink: Sink) -> None:
        self.handled: dict[tuple[str, int], int] = defaultdict(int)
        self.begun: dict[tuple[str, int], list[int]] = defaultdict(list)
        self.refused = 0
        in_hand: dict[str, dict[str, int]] = defaultdict(dict)
        overtaken: set[tuple[str, str]] = set()
        """Holders that had a conversation in hand when another began one of its events."""
        for what, conversation, version, count, fence in sink.steps():
            if what == "refused":
                self.refused += 1
            elif what == "begin":
                before = version == 1 or self.handled[conversation, version - 1]
                assert before, f"{conversation} {version} before {version - 1}"
                self.begun[conversation, version].append(count)
                others = [other for other in in_hand[conversation] if other != fence]
                overtaken.update((conversation, other) for other in others)
                assert fence not in in_hand[conversation], f"{conversation}: two events at once of one holder"
                in_hand[conversation] = {fence: version}
            else:
                assert (conversation, fence) not in overtaken, f"{conversation} {version} was handled by two at once"
                in_hand[conversation].pop(fence, None)
                self.handled[conversation, version] += 1

    @property
    def redelivered(self) -> int:
        """How many events were handed over more than once."""
        return sum(len(counts) > 1 for counts in self.begun.values())
