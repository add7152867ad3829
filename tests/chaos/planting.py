"""Ways to harm a copy of a run's keys and ledgers, each as one kind of fault would."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from chaos.checker.check import check
from chaos.checker.evidence import Evidence
from chaos.checker.filed import directory, open_calls
from chaos.checker.finding import Finding
from chaos.checker.state import Entry, State, parse
from chaos.ledger import Life, Line
from chaos.order import GROUP, NAMESPACE
from chaos.raw import Raw

KINDS = ("acked", "told", "view", "request", "saw", "begin", "end")
PROJECTIONS = ("directory", "history", "open_calls", "runs", "usage")


class Plot:
    """The copy, with handles on what is in it."""

    def __init__(self, raw: Raw, lives: list[Life]) -> None:
        self.raw = raw
        self.lives = lives

    @property
    def state(self) -> State:
        return parse(self.raw, NAMESPACE)

    def found(self) -> list[Finding]:
        return check(self.raw, self.lives, NAMESPACE)

    def properties(self) -> set[str]:
        return {finding.property for finding in self.found()}

    def fold(self, path: str) -> Any:
        return Evidence(self.state, self.lives).fold(path)

    def is_rich(self) -> bool:
        """Whether there is something of every kind to harm."""
        counts = Counter(line["do"] for line in self.each(*KINDS))
        told = all(counts[kind] > 20 for kind in KINDS) and self.taken_over() is not None
        calls = self.state.views["open_calls", self.state.live["open_calls"]].documents
        return told and any(calls.values()) and bool(self.state.deleted)

    def taken_over(self) -> Entry | None:
        """A take-over behind which its holder did something."""
        for path in sorted(self.state.logs):
            for entry in self.state.logs[path]:
                if entry.document["type"] == "run-resumed":
                    run = entry.document["run"]
                    later = [one for one in self.state.logs[path][entry.version :] if one.document.get("run") == run]
                    if later and later[0].document["type"] != "run-resumed":
                        return entry
        return None

    # keys

    def key(self, what: str, path: str) -> str:
        (found,) = [key for key in self.raw if key.endswith(f"}}:{what}:{path}")]
        return found

    def longest(self) -> str:
        """The path of the longest log."""
        logs = self.state.logs
        return max(logs, key=lambda path: len(logs[path]))

    def stream(self, path: str) -> list[Any]:
        found: list[Any] = self.raw[self.key("log", path)][1]
        return found

    def head(self, path: str) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = self.raw[self.key("head", path)][1]
        return found

    def feed(self, path: str) -> list[Any]:
        found: list[Any] = self.raw[f"{{{NAMESPACE}:{self.state.places[path]}}}:feed"][1]
        return found

    def change(self, path: str, version: int, change: Callable[[dict[str, Any]], object]) -> None:
        """Change a stored event's document."""
        entry, fields = self.stream(path)[version - 1]
        document = json.loads(fields[b"e"])
        change(document)
        self.stream(path)[version - 1] = entry, {b"e": json.dumps(document).encode()}

    def history(self) -> tuple[str, str, list[Any]]:
        """A key of the history view's rows that holds some, its path, and they."""
        for key, (_, value) in sorted(self.raw.items()):
            if f":{self.view('history')}:rows:" in key and len(value) > 3:
                return key, key.rpartition(":rows:")[2], value
        raise AssertionError("no history has rows")

    # ledgers

    def each(self, *kinds: str) -> list[Line]:
        return [line for life in self.lives for line in life.lines if line["do"] in kinds]

    def life_of(self, line: Line) -> Life:
        return next(life for life in self.lives if any(one is line for one in life.lines))

    def remove(self, wanted: Callable[[Line], bool]) -> int:
        """Forget lines; how many."""
        count = 0
        for life in self.lives:
            kept = [line for line in life.lines if not wanted(line)]
            count += len(life.lines) - len(kept)
            life.lines[:] = kept
        return count

    # a whole operation

    def last_operation(self, path: str) -> list[Entry]:
        entries = self.state.logs[path]
        return [entry for entry in entries if entry.operation == entries[-1].operation]

    def lose_end(self, path: str) -> str:
        """The last operation is lost everywhere, and its number in the feed; nobody saw it but who was told."""
        events = self.last_operation(path)
        first, operation = events[0].version, events[0].operation
        before = self.state.logs[path][first - 2]
        del self.stream(path)[first - 1 :]
        self.head(path)[b"last"] = f"{before.version}-{before.stamp}".encode()
        feed = self.feed(path)
        at = next(n for n, (_, f) in enumerate(feed) if f[b"c"].decode() == path and int(f[b"f"]) == first)
        del feed[at]
        for number, (_, fields) in enumerate(feed, 1):
            feed[number - 1] = f"0-{number}".encode(), fields
        self.settle(path)
        gone = ("saw", "begin", "end")
        self.remove(lambda line: line["do"] in gone and line["path"] == path and line["v"] >= first)
        self.remove(lambda line: line["do"] == "view" and line["path"] == path and line["version"] >= first)
        self.remove(lambda line: line["do"] == "request" and line["path"] == path and line["at"] >= first)
        return operation

    def settle(self, path: str) -> None:
        """Put the readers and views where they would stand."""
        state = self.state
        partition = state.places[path]
        end = state.feeds[partition][-1]
        for name, listed in self.listed(partition).items():
            firsts = [entry.seq for entry in state.feeds[partition] if entry.path == name.decode()]
            assert firsts, listed
            self.listed(partition)[name] = float(firsts[0])
        for key, (_, value) in self.raw.items():
            if key.startswith(f"{{{NAMESPACE}:{partition}}}:reader:") and b"mark" in value:
                value[b"mark"] = f"{end.seq}-{end.stamp}".encode()
        last = state.logs[path][-1]
        for projection in PROJECTIONS:
            kept = self.kept(projection, partition)
            state_bytes = kept[path.encode()].partition(b"|")[2]
            kept[path.encode()] = f"{last.version}-{last.stamp}|".encode() + state_bytes
        for name, fold in (("directory", directory), ("open_calls", open_calls)):
            documents = fold(state.logs[path], self.fold(path))
            for document in documents.values():
                # Of what may be told, the first.
                document |= {field: told[0] for field, told in document.items() if isinstance(told, tuple)}
            key = f"{{{NAMESPACE}:{partition}}}:{self.view(name)}:entries:{path}"
            self.raw[key] = "hash", {one.encode(): b"\0" + json.dumps(it).encode() for one, it in documents.items()}
        rows = self.raw.get(f"{{{NAMESPACE}:{partition}}}:{self.view('history')}:rows:{path}")
        if rows is not None:
            rows[1][:] = [_packed(row) for row in self.fold(path).views[-1] if row.versions]

    def view(self, projection: str) -> str:
        """What the keys of its live generation hold."""
        return f"view:{projection}:{self.state.live[projection]}"

    def kept(self, projection: str, partition: int) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = self.raw[f"{{{NAMESPACE}:{partition}}}:{self.view(projection)}:kept"][1]
        return found

    def listed(self, partition: int) -> dict[bytes, float]:
        found: dict[bytes, float] = self.raw[f"{{{NAMESPACE}:{partition}}}:conversations"][1]
        return found

    def mark(self, group: str = GROUP) -> dict[bytes, bytes]:
        """The first reader of the group that has a mark."""
        for key, (_, value) in sorted(self.raw.items()):
            if key.endswith(f":reader:{group}") and b"mark" in value:
                found: dict[bytes, bytes] = value
                return found
        raise AssertionError(group)


def _packed(row: Any) -> bytes:
    if row.summary:
        return json.dumps({"summary": row.summary}).encode()
    if len(row.inputs) == 1 and not row.outputs and row.inputs[0] == row.entered:
        return json.dumps(row.inputs[0]).encode()
    return json.dumps([row.inputs, row.outputs]).encode()
