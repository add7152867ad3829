"""What a run says of itself. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chaos.checker.finding import Finding
from chaos.ledger import Life

_SHOWN = 40


@dataclass
class Report:
    """One run."""

    seed: int
    seconds: float
    home: str
    """Where its ledgers and the raw keys are, when they are kept."""
    on_cluster: bool = False
    faults: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    lines: Counter[str] = field(default_factory=Counter)
    """How many lines of each kind were written down."""
    lives: int = 0
    left: int = 0
    """Lives that ended because the server was away for too long."""
    stage: Counter[str] = field(default_factory=Counter)
    """What was done to the servers and the ways to them, as ``Stage`` counts it."""
    events: int = 0
    operations: int = 0
    settled: float | None = None
    """Seconds until nothing lagged any more; None: it did not settle."""
    lagged: str = ""
    """What settled last."""
    findings: list[Finding] = field(default_factory=list)

    def count(self, lives: Sequence[Life], state: Any) -> None:
        """Count what was written down and what is there."""
        self.lines = Counter(line["do"] for life in lives for line in life.lines)
        self.events = sum(map(len, state.logs.values()))
        self.operations = sum(map(len, state.feeds.values()))

    def text(self) -> str:
        """For people."""
        head = [
            f"seed {self.seed}, {self.seconds:g} s of faults, settled after "
            + ("too long" if self.settled is None else f"{self.settled:.1f} s"),
            f"  settled last: {self.lagged or 'nothing was lagging'}"[:400],
            f"  {self.operations} operations, {self.events} events; {self.lines['acked']} acknowledged, "
            f"{self.lines['unknown']} unknown, {self.lines['refused']} refused",
            f"  {self.lives} lives; killed: {_counts(self.kills)}; {self.left} left for want of a server",
            f"  faults: {_counts(self.faults)}; {self.stage['cut']} connections cut, "
            f"{self.stage['lost']} replies lost, {self.stage['dropped']} requests dropped, "
            f"{self.stage['moved']} slots moved",
            f"  {self.lines['view']} histories and {self.lines['request']} requests read, "
            f"{self.lines['saw']} events followed, {self.lines['end']} handled",
        ]
        if not self.findings:
            return "\n".join([*head, "  nothing found"])
        kinds = Counter(finding.property for finding in self.findings)
        where = "CHAOS_CLUSTER=1 " if self.on_cluster else ""
        shown = [f"  {str(finding)[:1500]}" for finding in self.findings[:_SHOWN]]
        return "\n".join(
            [
                *head,
                f"  FOUND {len(self.findings)}: {_counts(kinds)}",
                *shown,
                f"  ledgers and keys: {self.home}",
                f"  again: {where}CHAOS_SEED={self.seed} CHAOS_SECONDS={self.seconds:g} make chaos (the seed gives "
                "the schedule of faults and the agents' scripts; what meets what is decided by real time, so it may "
                "take several)",
            ]
        )


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"
