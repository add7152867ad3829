"""How rows are shown and kept: the table that is printed, the one of the README, and JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from rich.table import Table

from benchmarks.ratio import Ratio

_COLUMNS = ("work", "contender", "against", "ratio", "target", "met", "median", "spread")


class About(NamedTuple):
    """Where and when rows were measured."""

    date: str
    machine: str
    """Cores and architecture."""
    server: str
    versions: dict[str, str]
    """Of the packages that were compared, and of Python."""
    rounds: int
    seconds: float
    """How long the whole run took."""
    load: float
    """Programs that waited for a core when the run began; much more than 0: the machine was busy."""

    def title(self) -> str:
        return f"{self.date}, {self.machine}, {self.server}"

    def line(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return f"{versions}; {self.rounds} rounds in {self.seconds / 60:.0f} min; load at the start {self.load:.1f}."


def table(rows: Sequence[Ratio], title: str) -> Table:
    """The table to print; a missed target is marked."""
    made = Table(title=title)
    for column in _COLUMNS:
        made.add_column(column, justify="right" if column in ("ratio", "median") else "left")
    for row in rows:
        met = {True: "yes", False: "[bold red]MISSED[/]", None: ""}[row.met]
        low, high = row.spread
        made.add_row(
            row.name,
            row.contender,
            row.against,
            _times(row.ratio),
            row.target,
            met,
            f"{row.median:,.0f}",
            f"{_times(low)}–{_times(high)}",
        )
    return made


def markdown(rows: Sequence[Ratio], about: About) -> str:
    """The dated section of the README."""
    lines = [
        f"## {about.title()}",
        "",
        about.line(),
        "",
        f"| {' | '.join(_COLUMNS)} |",
        f"|{'---|' * len(_COLUMNS)}",
    ]
    for row in rows:
        met = {True: "yes", False: "**missed**", None: ""}[row.met]
        low, high = row.spread
        cells = (
            row.name,
            row.contender,
            row.against,
            _times(row.ratio),
            row.target,
            met,
            f"{row.median:,.0f}",
            f"{_times(low)}–{_times(high)}",
        )
        lines.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
    return "\n".join([*lines, "", summary(rows), ""])


def summary(rows: Sequence[Ratio]) -> str:
    """How many targets were met, and what was missed."""
    targets = [row for row in rows if row.met is not None]
    missed = [row for row in targets if not row.met]
    said = f"{len(targets) - len(missed)} of {len(targets)} targets met."
    names = "; ".join(f"{row.name}, {row.contender} {_times(row.ratio)} ({row.target})" for row in missed)
    return f"{said} Missed: {names}." if missed else said


def to_json(rows: Sequence[Ratio]) -> str:
    """A list of objects with the fields of a row."""
    return json.dumps([row._asdict() for row in rows], indent=1, ensure_ascii=False) + "\n"


def from_json(document: str) -> list[Ratio]:
    """The rows of such a list."""
    return [Ratio(**{**row, "spread": tuple(row["spread"])}) for row in json.loads(document)]


def _times(value: float) -> str:
    """Three figures, so that 0.008 is not 0.01."""
    return f"{value:.2f}×" if value >= 0.1 else f"{value:.3f}×"
