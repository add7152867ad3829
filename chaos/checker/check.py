"""All properties, in order: what others build on comes first. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chaos.checker.counted import counted
from chaos.checker.deleted import deleted
from chaos.checker.evidence import Evidence, Life
from chaos.checker.fences import alone, fences
from chaos.checker.filed import filed
from chaos.checker.finding import Finding
from chaos.checker.followed import followed
from chaos.checker.handled import handled, in_order
from chaos.checker.histories import kept, reads, requests, verified
from chaos.checker.lags import lag
from chaos.checker.logs import feed, keys, operations, runs, versions
from chaos.checker.state import parse
from chaos.checker.told import acknowledged, order, refused, unasked

PROPERTIES: tuple[Callable[[Evidence], Iterator[Finding]], ...] = (
    keys,
    versions,
    operations,
    feed,
    runs,
    acknowledged,
    refused,
    unasked,
    order,
    fences,
    alone,
    reads,
    requests,
    kept,
    counted,
    filed,
    verified,
    followed,
    handled,
    in_order,
    lag,
    deleted,
)


def check(raw: dict[str, tuple[str, Any]], lives: Sequence[Life], namespace: str) -> list[Finding]:
    """All that does not hold."""
    evidence = Evidence(parse(raw, namespace), lives)
    found = [finding for one in PROPERTIES for finding in one(evidence)]
    return found + [
        Finding("strange", f"{life.name}", line["error"])
        for life in lives
        for line in life.lines
        if line["do"] == "strange"
    ]
