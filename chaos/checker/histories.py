"""What was read of histories, and what the history view keeps, against the checker's own fold. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaos.checker.evidence import Evidence
from chaos.checker.finding import Finding


def reads(evidence: Evidence) -> Iterator[Finding]:
    """Every history that was read is the fold of the log up to the version it tells."""
    for line in evidence.lines("view"):
        path, version = line["path"], line["version"]
        if path in evidence.broken or path in evidence.state.deleted:
            continue
        where = f"{path} as of {version} by {line['source']}"
        fold = evidence.fold(path)
        if version >= len(fold.views):
            yield Finding("reads", where, f"the log ends at {len(fold.views) - 1}")
            continue
        if version and evidence.state.logs[path][version - 1].stamp != line["stamp"]:
            yield Finding("reads", where, f"another event stands at {version}")
            continue
        wanted, found = fold.messages(version), line["messages"]
        if line["source"] == "last":
            wanted = wanted[len(wanted) - len(found) :]
        if wanted != found:
            yield Finding("reads", where, _difference(wanted, found))
        elif line["open"] not in (None, fold.open_calls(version)):
            yield Finding("reads", where, f"open are {fold.open_calls(version)}, told {line['open']}")


def requests(evidence: Evidence) -> Iterator[Finding]:
    """What a service call was to send is the view at its start, its run's own units, and its inputs."""
    for line in evidence.lines("request"):
        path = line["path"]
        if path in evidence.broken or path in evidence.state.deleted:
            continue
        fold, at = evidence.fold(path), line["at"]
        where = f"{path} call started at {at}"
        if at >= len(fold.views):
            yield Finding("requests", where, f"the log ends at {len(fold.views) - 1}")
            continue
        found = [version for _, versions, _ in line["messages"] for version in versions]
        wanted = fold.request(at, line["run"], line["sends"]) if not line["continues"] else line["sends"]
        if _summarised(wanted, fold.documents) != found:
            yield Finding("requests", where, f"to be sent is {wanted}, told {found}")


def _summarised(wanted: list[int], documents: dict[int, Any]) -> list[int]:
    """A compaction stands for as many messages as it holds."""
    found: list[int] = []
    for version in wanted:
        data = documents[version]["data"]
        many = len(data["messages"]) if documents[version]["type"] == "history-compacted" else 1
        found += [version] * many
    return found


def kept(evidence: Evidence) -> Iterator[Finding]:
    """The rows of the history view that is live are those of the fold."""
    generation = evidence.state.live.get("history")
    if generation is None:
        yield Finding("kept", "history", "there is no such view")
        return
    view = evidence.state.views["history", generation]
    for path in evidence.sound():
        if view.kept.get(path, (0, 0))[0] != len(evidence.state.logs[path]):
            continue  # it has not come to the end: ``lag`` says so
        wanted = [(row.inputs, row.outputs, row.summary) for row in evidence.fold(path).views[-1] if row.versions]
        found = [_row(row) for row in view.rows.get(path, [])]
        if wanted != found:
            at = next((n for n, pair in enumerate(zip(wanted, found, strict=False)) if pair[0] != pair[1]), None)
            at = min(len(wanted), len(found)) if at is None else at
            yield Finding("kept", f"{path} row {at}", f"to be {wanted[at : at + 1]}, there is {found[at : at + 1]}")


def _row(packed: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Inputs, outputs and summary of a packed row; what its entering closed is left out."""
    if type(packed) is int:
        return (packed,), (), 0
    if type(packed) is dict:
        return (), (), packed["summary"]
    if type(packed[0]) is int:
        return (packed[0],), (), 0
    return tuple(packed[0]), tuple(packed[1]), 0


def verified(evidence: Evidence) -> Iterator[Finding]:
    """The product's own verification of all its views found nothing."""
    for line in evidence.lines("differs"):
        yield Finding("verified", "views", line["told"])


def _difference(wanted: list[Any], found: list[Any]) -> str:
    for number, (one, other) in enumerate(zip([*wanted, None], [*found, None], strict=False)):
        if one != other:
            return f"message {number} of {len(wanted)} is {str(one)[:300]}, told {str(other)[:300]}"
    return "they differ"
