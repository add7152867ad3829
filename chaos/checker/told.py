"""What callers were told of their appends, against what is there. Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

from chaos.checker.evidence import Evidence, Line
from chaos.checker.finding import Finding
from chaos.checker.state import Entry


def acknowledged(evidence: Evidence) -> Iterator[Finding]:
    """Every acknowledged operation is where its caller was told, whole, and says what the caller said."""
    for line in evidence.lines("acked", "told"):
        path, operation = line["path"], line["op"]
        if path in evidence.broken or path in evidence.state.deleted:
            continue
        events = evidence.state.logs.get(path, [])[line["first"] - 1 : line["last"]]
        where = f"{path} {operation} at {line['first']}"
        if len(events) != line["last"] - line["first"] + 1 or {event.operation for event in events} != {operation}:
            yield Finding("acknowledged", where, f"there is {[event.document['id'] for event in events]}")
        elif events[-1].stamp != line["stamp"]:
            yield Finding("acknowledged", where, f"told stamp {line['stamp']}, there is {events[-1].stamp}")
        else:
            told = _content(events, line)
            if told:
                yield Finding("acknowledged", where, told)


def _content(events: list[Entry], line: Line) -> str:
    marks = line.get("marks")
    if marks is None:
        return ""
    if len(marks) != len(events):
        return f"{len(marks)} events were given, {len(events)} are there"
    for event, mark in zip(events, marks, strict=True):
        if mark not in json.dumps(event.document):
            return f"event {event.version} does not say {mark!r}"
    return ""


def refused(evidence: Evidence) -> Iterator[Finding]:
    """What was refused is not there; unless it was sent again, or had been, and then not refused."""
    there = _places(evidence)
    otherwise: set[str] = {line["op"] for line in evidence.lines("acked", "unknown")}
    attempts: dict[str, int] = defaultdict(int)
    for line in evidence.lines("sent"):
        attempts[line["op"]] += 1
    for line in evidence.lines("refused"):
        operation = line["op"]
        attempts[operation] -= 1
        if operation in there and operation not in otherwise and not attempts[operation]:
            path, version = there[operation]
            yield Finding("refused", f"{path} {operation}", f"{line['error']}, and it is there at {version}")


def unasked(evidence: Evidence) -> Iterator[Finding]:
    """Every operation that is there was sent by somebody, to that conversation."""
    sent = evidence.sent()
    for operation, (path, version) in _places(evidence).items():
        if path not in {line["path"] for line in sent.get(operation, ())}:
            yield Finding("unasked", f"{path} {operation} at {version}", "nobody sent it")


def order(evidence: Evidence) -> Iterator[Finding]:
    """What a process sent after it was told of something else stands behind that."""
    there = _places(evidence)
    for life in evidence.lives:
        newest: dict[str, tuple[int, str]] = {}
        begun: dict[str, tuple[int, str]] = {}
        for line in life.lines:
            if line["do"] == "sent" and line["op"] not in begun:
                begun[line["op"]] = newest.get(line["path"], (0, ""))
            elif line["do"] == "acked" and line["op"] in there and not line["duplicate"]:
                version, before = line["first"], begun.get(line["op"], (0, ""))
                if version <= before[0]:
                    yield Finding(
                        "order",
                        f"{line['path']} {life.name}",
                        f"{line['op']} at {version} was sent after {before[1]} at {before[0]} had been acknowledged",
                    )
                newest[line["path"]] = max(newest.get(line["path"], (0, "")), (version, line["op"]))


def _places(evidence: Evidence) -> dict[str, tuple[str, int]]:
    """Operation -> where it is, in logs whose structure holds."""
    found: dict[str, tuple[str, int]] = {}
    for path in evidence.sound():
        for entry in evidence.state.logs[path]:
            found.setdefault(entry.operation, (path, entry.version))
    return found
