"""What the views of usage and runs say, counted once more from the logs: sums tell what was applied twice. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from chaos.checker.evidence import Evidence
from chaos.checker.finding import Finding
from chaos.checker.state import Document, View


def counted(evidence: Evidence) -> Iterator[Finding]:
    """Tokens and service calls are those of the completed calls, and each run is in the state its log tells."""
    if evidence.broken or evidence.state.live.keys() < {"usage", "runs"}:
        return
    usage, runs = (evidence.state.views[name, evidence.state.live[name]] for name in ("usage", "runs"))
    if _lags(evidence, usage) or _lags(evidence, runs):
        return  # ``lag`` says so
    yield from _usage(evidence, usage)
    for path in evidence.sound():
        wanted = _states([entry.document for entry in evidence.state.logs[path]])
        found = {document["run"]: _state(document) for document in runs.documents.get(path, {}).values()}
        for run in sorted({*wanted, *found}):
            if wanted.get(run) != found.get(run):
                yield Finding("counted", f"run {run} of {path}", f"is {wanted.get(run)}, told {found.get(run)}")


def _lags(evidence: Evidence, view: View) -> bool:
    return any(view.kept.get(path, (0, 0))[0] != len(entries) for path, entries in evidence.state.logs.items())


def _usage(evidence: Evidence, view: View) -> Iterator[Finding]:
    wanted: Counter[tuple[str, int, str]] = Counter()
    for path, entries in evidence.state.logs.items():
        where = path.partition("/")[0], evidence.state.places[path]
        for entry in entries:
            if entry.document["type"] == "service-call-completed":
                wanted[*where, "service_calls"] += 1
                for name, amount in (entry.document["data"].get("usage") or {}).items():
                    wanted[*where, name] += amount
    found: Counter[tuple[str, int, str]] = Counter()
    for where, totals in view.totals.items():
        for name, total in totals.items():
            found[*where, json.loads(name)[-1]] += total
    for name in sorted({*wanted, *found}):
        if wanted[name] != found[name]:
            yield Finding(
                "counted", f"{name[2]} of tenant {name[0]}, partition {name[1]}", f"{wanted[name]}, told {found[name]}"
            )


def _states(documents: list[Document]) -> dict[str, tuple[str, int, int, int]]:
    """Run -> its state, and how many calls completed and failed, and how often it was taken over."""
    found: dict[str, tuple[str, int, int, int]] = {}
    for document in documents:
        run = document.get("run")
        if run is None:
            continue
        state, completed, failed, resumed = found.get(run, ("open", 0, 0, 0))
        match document["type"]:
            case "run-committed":
                state = "committed"
            case "run-aborted":
                state = "aborted"
            case "run-resumed":
                resumed += 1
            case "service-call-completed":
                completed += 1
            case "service-call-failed":
                failed += 1
        found[run] = state, completed, failed, resumed
    return found


def _state(document: Document) -> tuple[str, int, int, int]:
    return document["state"], document["completed"], document["failed"], document["resumed"]
