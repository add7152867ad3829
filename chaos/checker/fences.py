"""Who held each run when its events were written. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.checker.evidence import Evidence
from chaos.checker.finding import Finding


def fences(evidence: Evidence) -> Iterator[Finding]:
    """After a take-over no event of a run was written under an earlier fence.

    Who ends a run that is another's (aborts, seals) writes under a fence of its own, and nothing follows.
    """
    sent = evidence.sent()
    for path in evidence.sound():
        holders: dict[str, str] = {}
        for entry in evidence.state.logs[path]:
            document = entry.document
            run = document.get("run")
            lines = [line for line in sent.get(entry.operation, ()) if line["run"] == run and line["fence"]]
            if run is None or not lines:
                continue
            used = {line["fence"] for line in lines}
            steps = {line["step"] for line in lines}
            where = f"{path} {entry.version} of run {run}"
            if document["type"] == "run-resumed":
                if used != {document["data"]["fence"]}:
                    yield Finding("fences", where, f"says fence {document['data']['fence']}, was sent under {used}")
                holders[run] = document["data"]["fence"]
            elif document["type"] == "run-started":
                holders[run] = next(iter(used))
            elif steps == {"go-on"} and used != {holders.get(run)}:
                yield Finding("fences", where, f"{document['type']} under {used}; the holder's is {holders.get(run)}")


def alone(evidence: Evidence) -> Iterator[Finding]:
    """While an exclusive run is open, no other one is started."""
    exclusive = {line["op"]: line["exclusive"] for line in evidence.lines("sent") if line.get("step") == "start"}
    for path in evidence.sound():
        opened: set[str] = set()
        for entry in evidence.state.logs[path]:
            run, kind = entry.document.get("run"), entry.document["type"]
            if kind == "run-started":
                if opened and (exclusive.get(run, True) or any(exclusive.get(one, True) for one in opened)):
                    yield Finding("alone", f"{path} {entry.version}", f"run {run} was started beside {sorted(opened)}")
                opened.add(str(run))
            elif kind in ("run-committed", "run-aborted"):
                opened.discard(str(run))
            elif kind == "history-rewound" and opened:
                yield Finding("alone", f"{path} {entry.version}", f"rewound beside {sorted(opened)}")
