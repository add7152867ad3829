"""What the directory and the view of open calls say of each conversation, folded once more from its log. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from chaos.checker.evidence import Evidence
from chaos.checker.finding import Finding
from chaos.checker.fold import Fold
from chaos.checker.state import Document, Entry

_CUT = 250
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_SILENT = ("service-call-started", "service-call-completed")
"""They stand between the events of a message and do not end it."""


def filed(evidence: Evidence) -> Iterator[Finding]:
    """Both hold the documents that the logs tell, and no others."""
    for name, fold in (("directory", directory), ("open_calls", open_calls)):
        generation = evidence.state.live.get(name)
        if generation is None:
            continue  # ``lag`` says so
        view = evidence.state.views[name, generation]
        for path in evidence.sound():
            entries = evidence.state.logs[path]
            if view.kept.get(path, (0, 0))[0] != len(entries):
                continue  # and so it does here
            wanted, found = fold(entries, evidence.fold(path)), view.documents.get(path, {})
            for key in sorted({*wanted, *found}):
                told = _difference(wanted.get(key), found.get(key))
                if told:
                    yield Finding("filed", f"{name} of {path}, {key}", told)


def _difference(wanted: Document | None, found: Document | None) -> str:
    """What of them differs; a field whose wanted value is a tuple may have any of its values."""
    if wanted is None or found is None:
        return f"is {wanted}, told {found}"
    for field in sorted({*wanted, *found}):
        value, told = wanted.get(field), found.get(field)
        if told not in value if isinstance(value, tuple) else told != value:
            return f"{field} is {value}, told {told}"
    return ""


def directory(entries: list[Entry], _: Fold) -> dict[str, Document]:
    """Each conversation's only document."""
    times = [_ms(entry.document) for entry in entries]
    titles: list[Any] = [None]
    labels: dict[str, str] = {}
    agents: dict[str, None] = {}
    spoken: list[tuple[str, str]] = []
    """Of each message, its role and what its text parts say."""
    before: Any = None
    runs = 0
    for entry in entries:
        kind, data = entry.document["type"], entry.document["data"]
        if kind in _SILENT:
            continue
        if kind not in ("message-added", "function-call", "function-result"):
            before = None
        if kind == "run-started":
            runs += 1
            agents |= {data["agent"]: None} if data.get("agent") else {}
        elif kind == "conversation-annotated":
            titles += [data["title"]] if "title" in data else []
            labels = {**{k: v for k, v in labels.items() if k not in data.get("labels", {})}, **data.get("labels", {})}
        elif kind in ("message-added", "function-call", "function-result"):
            role = {"function-call": "assistant", "function-result": "tool"}.get(kind) or data["role"]
            this = data["message_id"], role, kind == "function-result"
            if this != before:
                spoken.append((role, ""))
            before = this
            if kind == "message-added":
                said = "".join(part["content"] for part in data["parts"] if part["type"] == "text")
                spoken[-1] = role, spoken[-1][1] + said
    of_user = [said[:_CUT] for role, said in spoken if role == "user" and said]
    return {
        "conversation": {
            "title": titles[-1],
            "labels": labels,
            "agents": list(agents)[:20],
            "messages": len(spoken),
            "runs": runs,
            "first_text": of_user[0] if of_user else None,
            "last_text": of_user[-1] if of_user else None,
            "created_ms": times[0],
            "active_ms": max(times),
        }
    }


def open_calls(entries: list[Entry], fold: Fold) -> dict[str, Document]:
    """A document for each call that is open in the view, or would be if its run were committed."""
    agents = {
        entry.document["run"]: entry.document["data"].get("agent")
        for entry in entries
        if entry.document["type"] == "run-started"
    }
    results = [entry for entry in entries if entry.document["type"] == "function-result"]
    seen, carried = fold.seen(), fold.waiting_inputs()
    loose = [entry for entry in results if entry.version not in seen]
    uncarried = [entry for entry in loose if entry.version not in carried]
    found: dict[str, Document] = {}
    in_view = fold.open_calls(len(entries))
    for version in [*in_view, *fold.pending_calls()]:
        document = fold.documents[version]
        data, run = document["data"], document.get("run")
        found[str(version)] = {
            "version": version,
            "call_id": data["call_id"],
            "name": data["name"][:_CUT],
            "run": run,
            "agent": agents.get(run),
            "since_ms": _ms(document),
            "in_open_run": fold.is_open(run),
            "result": _results(version, data["call_id"], loose if version in in_view else uncarried),
            "awaits_since_ms": None,
        }
    return found


def _results(call: int, call_id: str, loose: list[Entry]) -> tuple[int | None, ...]:
    """What may be told to be its result: one that says so; else one that gives its id, or none."""
    later = [(entry.version, entry.document["data"]) for entry in loose if entry.version > call]
    answers = [version for version, data in later if data.get("answers") == call]
    same = [version for version, data in later if data.get("answers") is None and data["call_id"] == call_id]
    return (*answers, *same) if answers else (*same, None)


def _ms(document: Document) -> int:
    at = datetime.fromisoformat(document["at"]).astimezone(UTC)
    return max(0, (at - _BEGIN) // timedelta(milliseconds=1))
