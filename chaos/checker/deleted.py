"""What is left of deleted conversations. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.checker.evidence import Evidence
from chaos.checker.finding import Finding


def deleted(evidence: Evidence) -> Iterator[Finding]:
    """A conversation that was said to be deleted is, by somebody's wish; of it stays how far it came, and no more.

    Nothing was acknowledged behind that, its feed ends with its deletion, and no view holds anything of it.
    """
    state = evidence.state
    wished = {line["path"] for line in evidence.lines("delete")}
    last: dict[str, int] = {}
    for line in evidence.lines("acked", "told"):
        last[line["path"]] = max(last.get(line["path"], 0), line["last"])
    for path in sorted({line["path"] for line in evidence.lines("deleted")} - set(state.deleted)):
        yield Finding("deleted", path, "was said to be deleted, and is not")
    for path, version in sorted(state.deleted.items()):
        if path not in wished:
            yield Finding("deleted", path, "nobody deleted it")
        if last.get(path, 0) > version:
            yield Finding("deleted", path, f"ends at {version}, acknowledged was up to {last[path]}")
        left = sorted(_left(evidence, path))
        if left:
            yield Finding("deleted", path, f"there still is {', '.join(left)}")
        yield from _feed(evidence, path, version)


def _left(evidence: Evidence, path: str) -> Iterator[str]:
    state = evidence.state
    yield from state.left.get(path, ())
    if path in state.logs:
        yield "its log"
    if any(path in listed for listed in state.listed.values()):
        yield "its place in the list of conversations"
    for (name, number), view in state.views.items():
        held = path in view.kept or path in view.rows or path in view.documents
        if held and state.generations.get(name, {}).get(number) == "ready":
            yield f"something in generation {number} of the view {name}"


def _feed(evidence: Evidence, path: str, version: int) -> Iterator[Finding]:
    """Its entries follow one another up to the deletion, which is the last; the first ones may have been trimmed."""
    state = evidence.state
    for partition, entries in state.feeds.items():
        of_it = [entry for entry in entries if entry.path == path]
        if not of_it:
            continue
        first = 1 if not state.trimmed.get(partition) else of_it[0].first
        for entry in of_it:
            if entry.first != first:
                yield Finding("deleted", path, f"its feed names {entry.first} where {first} is next")
            first = entry.first + entry.events
        if (of_it[-1].first, of_it[-1].kinds) != (version + 1, "conversation-deleted"):
            yield Finding("deleted", path, f"its feed ends with {of_it[-1]}")
