"""The rules of history, written down once more: naive and slow, a list of rows for each version. Pure.

A row is what entered together: the version at which it entered, the versions of its inputs, those of its
outputs, and, for the messages of a compaction, the version of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

Document = dict[str, Any]
_SPOKEN = ("message-added", "function-call", "function-result")


class Stored(Protocol):
    """An entry of a log."""

    @property
    def version(self) -> int:
        """1, 2, 3 …."""
        ...

    @property
    def document(self) -> Document:
        """The event."""
        ...


class Row(NamedTuple):
    """What entered together."""

    entered: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...] = ()
    summary: int = 0

    @property
    def versions(self) -> tuple[int, ...]:
        """All of them, in order."""
        return (self.summary,) if self.summary else self.inputs + self.outputs


@dataclass
class Call:
    """A service call."""

    number: int
    sends: list[int]
    outputs: list[int] = field(default_factory=list)


@dataclass
class Run:
    """An open run."""

    per_run: bool
    calls: dict[int, Call] = field(default_factory=dict)
    """Those that are neither completed nor failed."""
    units: list[Call] = field(default_factory=list)
    """Completed, and to enter when the run is committed."""


View = tuple[Row, ...]


class Fold:
    """A log's history at each of its versions."""

    def __init__(self, entries: Iterable[Stored]) -> None:
        self.documents: dict[int, Document] = {}
        self.views: list[View] = [()]
        """By version."""
        self._runs: dict[str, Run] = {}
        self._waiting: dict[tuple[int, str], list[Call]] = {}
        """Start of a service call and its run -> the run's units that wait for its commit."""
        for entry in entries:
            self.documents[entry.version] = entry.document
            self.views.append(self._after(entry.version, entry.document, self.views[-1]))

    def request(self, at: int, run: str, sends: Sequence[int]) -> list[int]:
        """What a service call sends that started at this version: view, own units not in it, its inputs."""
        seen = [version for row in self.views[at] for version in row.versions]
        for unit in self._waiting.get((at, run), ()):
            seen += [version for version in _once(unit.sends) if version not in seen and self._is_spoken(version)]
            seen += unit.outputs
        return seen + [version for version in _once(sends) if version not in seen and self._is_spoken(version)]

    def open_calls(self, at: int) -> list[int]:
        """The versions of the calls in the view at that version which no result in it answers, as they entered."""
        return self._open_in(self.views[at])

    def pending_calls(self) -> list[int]:
        """The calls that open per-run runs would leave open in the view, each committed by itself at the end."""
        found: list[int] = []
        for run in self._runs.values():
            view = self.views[-1]
            for unit in sorted(run.units, key=lambda unit: unit.number):
                view = self._entered(view, len(self.views), unit)
            new = {version for row in view[len(self.views[-1]) :] for version in row.versions}
            found += [version for version in self._open_in(view) if version in new]
        return found

    def seen(self) -> set[int]:
        """The versions that are in the view in the end."""
        return {version for row in self.views[-1] for version in row.versions}

    def waiting_inputs(self) -> set[int]:
        """The versions that completed calls carried which enter with the commits of their runs."""
        return {version for run in self._runs.values() for unit in run.units for version in unit.sends}

    def is_open(self, run: str | None) -> bool:
        """Whether this run is open in the end."""
        return run in self._runs

    def _open_in(self, view: View) -> list[int]:
        still: list[int] = []
        early: dict[int, int] = {}
        for version in (version for row in view if not row.summary for version in row.versions):
            document = self.documents[version]
            if document["type"] == "function-call":
                if version in early:
                    del early[version]
                else:
                    still.append(version)
            elif document["type"] == "function-result":
                closed = self._closes(document, still)
                if closed is not None:
                    still.remove(closed)
                elif document["data"].get("answers") is not None:
                    early.setdefault(document["data"]["answers"], version)
        return still

    def messages(self, at: int) -> list[list[Any]]:
        """The view as messages: role, versions, parts."""
        found: list[list[Any]] = []
        loose: list[int] = []
        for row in self.views[at]:
            alone = len(row.versions) == 1 and row.versions[0] == row.entered and not row.summary
            if alone and "run" not in self.documents[row.entered]:
                operation = _operation(self.documents[row.entered])
                if loose and _operation(self.documents[loose[-1]]) != operation:
                    found += self._grouped(loose)
                    loose = []
                loose.append(row.entered)
                continue
            found += self._grouped(loose) + self._grouped(row.inputs) + self._grouped(row.outputs)
            loose = []
            for message in self.documents[row.summary]["data"]["messages"] if row.summary else ():
                found.append([message["role"], [row.summary], message["parts"]])
        return found + self._grouped(loose)

    def _after(self, version: int, document: Document, view: View) -> View:
        data, name, number = document["data"], document.get("run"), document.get("call")
        run = self._runs.get(name) if name is not None else None
        match document["type"]:
            case "message-added" | "function-call" if name is None:
                return (*view, Row(version, (version,)))
            case "message-added" | "function-call" | "function-result" if run and number in run.calls:
                run.calls[number].outputs.append(version)
            case "run-started" if name is not None:
                self._runs[name] = Run(data["mode"] == "per-run")
            case "service-call-started" if run and number is not None:
                run.calls[number] = Call(number, data["sends"])
                self._waiting[version, str(name)] = list(run.units)
            case "service-call-completed" if run and number in run.calls:
                unit = run.calls.pop(number)
                if not run.per_run:
                    return self._entered(view, version, unit)
                run.units.append(unit)
            case "service-call-failed" if run and number in run.calls:
                del run.calls[number]
            case "run-committed" if run and name is not None:
                for unit in sorted(run.units, key=lambda unit: unit.number):
                    view = self._entered(view, version, unit)
                del self._runs[name]
            case "run-aborted" if run and name is not None:
                del self._runs[name]
            case "history-rewound":
                to: int = data["to"]
                return self.views[to]
            case "history-compacted":
                stays = [row for row in view if row.entered > data["through"]]
                return (Row(data["through"], (), (), version), *stays)
        return view

    def _entered(self, view: View, at: int, unit: Call) -> View:
        there = {version for row in view for version in row.versions}
        inputs = [version for version in _once(unit.sends) if version not in there and self._is_spoken(version)]
        return (*view, Row(at, tuple(inputs), tuple(unit.outputs)))

    def _is_spoken(self, version: int) -> bool:
        return version in self.documents and self.documents[version]["type"] in _SPOKEN

    def _closes(self, result: Document, still: list[int]) -> int | None:
        """The open call that a result closes: the one it answers; else by its id, in its own run first."""
        answers = result["data"].get("answers")
        if answers is not None:
            return answers if answers in still else None
        same = [one for one in still if self.documents[one]["data"]["call_id"] == result["data"]["call_id"]]
        own = [one for one in same if "run" in result and self.documents[one].get("run") == result["run"]]
        return own[0] if own else same[-1] if same else None

    def _grouped(self, versions: Sequence[int]) -> list[list[Any]]:
        found: list[list[Any]] = []
        before: Any = None
        for version in versions:
            document = self.documents[version]
            data, is_result = document["data"], document["type"] == "function-result"
            role, parts = _said(document)
            this = (data["message_id"], role, is_result)
            if this == before:
                found[-1][1].append(version)
                found[-1][2].extend(parts)
            else:
                found.append([role, [version], list(parts)])
            before = this
        return found


def _once(versions: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(versions))


def _operation(document: Document) -> str:
    return str(document["id"]).rpartition(".")[0]


def _said(document: Document) -> tuple[str, list[Document]]:
    data = document["data"]
    kept: tuple[str, ...]
    if document["type"] == "message-added":
        return data["role"], data["parts"]
    if document["type"] == "function-call":
        part = {"type": "tool_call", "id": data["call_id"], "name": data["name"]}
        kept, role = ("arguments", "extra"), "assistant"
    else:
        part = {"type": "tool_call_response", "id": data["call_id"], "response": data["output"]}
        kept, role = ("is_error", "synthetic", "extra"), "tool"
    return role, [{**part, **{name: data[name] for name in kept if name in data}}]
