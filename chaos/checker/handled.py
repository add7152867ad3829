"""What the consumer group handled. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from chaos.checker.evidence import Evidence
from chaos.checker.finding import Finding


def handled(evidence: Evidence) -> Iterator[Finding]:
    """Every event was handled at least once, and none that is not there was handed over."""
    ends: dict[str, set[int]] = defaultdict(set)
    for line in evidence.lines("end"):
        ends[line["path"]].add(line["v"])
    stamps: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for line in evidence.lines("begin"):
        stamps[line["path"]][line["v"]].add(line["s"])
    for path in evidence.sound():
        entries = evidence.state.logs[path]
        missing = [entry.version for entry in entries if entry.version not in ends[path]]
        if missing:
            yield Finding("handled", path, f"{len(missing)} were not handled, the first is {missing[0]}")
        there = {entry.version: {entry.stamp} for entry in entries}
        for version, found in sorted(stamps[path].items()):
            if there.get(version) != found:
                yield Finding(
                    "handled", f"{path} {version}", f"handed over with stamps {found}, is {there.get(version)}"
                )
                break


def in_order(evidence: Evidence) -> Iterator[Finding]:
    """No event was handed over before the one before it had been handled."""
    begun: dict[tuple[str, int], int] = {}
    ended: dict[tuple[str, int], int] = {}
    for line in evidence.lines("begin", "end"):
        first = begun if line["do"] == "begin" else ended
        place = line["path"], line["v"]
        first[place] = min(first.get(place, line["t"]), line["t"])
    for (path, version), at in sorted(begun.items()):
        if version > 1 and path not in evidence.broken:
            before = ended.get((path, version - 1))
            if before is None or before > at:
                yield Finding("in-order", f"{path} {version}", "handed over before the one before it was handled")
