"""What doctor found, in words, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from eventlog.messages import Json
from gateway.command.summary import clean, plain, words
from gateway.doctor import Examination


def told(found: Examination) -> Iterator[str]:
    """The facts, a line each, then the findings, each with the line to change."""
    for topic, facts in found.facts.items():
        for name, value in facts.items() if isinstance(facts, dict) else [("", facts)]:
            label, say = _FACTS.get((topic, name), (f"{topic} {name}".strip(), words))
            yield f"{label}: {'unknown' if value is None else _line(say(value))}"
    for finding in found.findings:
        yield f"{finding.level}: {plain(finding.text)}"
        if finding.change:
            yield f"  change: {finding.change}"
    if not found.findings:
        yield "all is well"


def _line(text: str) -> str:
    return clean(text).replace("\n", "\\n")


def _yes(value: Json) -> str:
    return "yes" if value else "no"


def _number(value: Json) -> str:
    return f"{value:,}" if isinstance(value, int) else words(value)


def _bytes(value: Json) -> str:
    return f"{_number(value)} bytes"


def _limit(value: Json) -> str:
    return _bytes(value) if value else "none"


def _notes(value: Json) -> str:
    return "; ".join(map(words, value)) if isinstance(value, list) and value else "nothing"


_FACTS: dict[tuple[str, str], tuple[str, Callable[[Json], str]]] = {
    ("server", "name"): ("server", words),
    ("server", "version"): ("server version", words),
    ("server", "role"): ("server role", words),
    ("server", "appendonly"): ("append-only file", _yes),
    ("server", "appendfsync"): ("append-only file reaches the disk", words),
    ("server", "maxmemory"): ("memory limit", _limit),
    ("server", "maxmemory_policy"): ("when the memory is full", words),
    ("server", "used_memory"): ("memory used", _bytes),
    ("server", "connected_replicas"): ("connected replicas", _number),
    ("latency_us", ""): ("round trip", lambda value: f"{_number(value)} µs"),
    ("clock_ahead_ms", ""): ("server's clock ahead of this machine's", lambda value: f"{_number(value)} ms"),
    ("namespace", "name"): ("namespace", words),
    ("namespace", "is_laid_out"): ("namespace in use", _yes),
    ("namespace", "layout"): ("layout of the namespace", words),
    ("namespace", "partitions"): ("partitions", _number),
    ("namespace", "conversations"): ("conversations", _number),
    ("namespace", "heads_read"): ("conversations looked at for open runs", _number),
    ("namespace", "open_runs"): ("open runs", _number),
    ("namespace", "expired_runs"): ("expired runs", _number),
    ("embedded", "data"): ("embedded server's data directory", words),
    ("embedded", "pid"): ("embedded server's process", words),
    ("embedded", "notes"): ("repaired when it started", _notes),
}
