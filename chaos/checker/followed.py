"""What followers saw. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from chaos.checker.evidence import Evidence
from chaos.checker.finding import Finding


def followed(evidence: Evidence) -> Iterator[Finding]:
    """Every follower saw each event once, in order, from where it began to the end, whatever killed it in between."""
    begun: dict[str, Any] = {}
    saw: dict[str, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for line in evidence.lines("began", "saw"):
        if line["do"] == "began":
            begun.setdefault(line["who"], line["at"])
        else:
            saw[line["who"]][line["path"]].append((line["v"], line["s"]))
    for who, at in sorted(begun.items()):
        for path in _wanted(evidence, who, set(saw[who])):
            after = 0 if at == "start" else at
            yield from _gapless(evidence, who, path, after, saw[who][path])


def _wanted(evidence: Evidence, who: str, seen: set[str]) -> list[str]:
    """The conversations that a follower follows: ``NAME tenant TENANT``, or ``NAME PATH from …``."""
    what = who.split(" ", 1)[1]
    if not what.startswith("tenant "):
        return [what.rpartition(" from ")[0]]
    tenant = what.removeprefix("tenant ").replace("/", "%2F")
    return sorted(seen | {path for path in evidence.sound() if path.partition("/")[0] == tenant})


def _gapless(evidence: Evidence, who: str, path: str, after: int, seen: list[tuple[int, int]]) -> Iterator[Finding]:
    if path in evidence.broken:
        return
    if path in evidence.state.deleted:
        found = [version for version, _ in seen]
        if found != list(range(1, len(found) + 1)) or len(found) > evidence.state.deleted[path]:
            yield Finding("followed", f"{who} {path}", f"of a deleted conversation was seen {found}")
        return
    wanted = [(entry.version, entry.stamp) for entry in evidence.state.logs.get(path, [])[after:]]
    if seen == wanted:
        return
    at = next((n for n, (one, other) in enumerate(zip(wanted, seen, strict=False)) if one != other), None)
    if at is None and len(seen) < len(wanted):
        yield Finding("followed", f"{who} {path}", f"stopped after {after + len(seen)} of {after + len(wanted)}")
    else:
        at = min(len(seen), len(wanted)) if at is None else at
        yield Finding("followed", f"{who} {path}", f"to see was {wanted[at : at + 1]}, seen {seen[at : at + 3]}")
