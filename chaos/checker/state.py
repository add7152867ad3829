"""The raw keys of a namespace as logs, heads, feeds, readers and views. Pure."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_KEY = re.compile(r"\{(?P<ns>[^:]+):(?P<p>\d+)\}:(?P<what>.+)", re.DOTALL)

Document = dict[str, Any]


class Entry(NamedTuple):
    """A stored event."""

    version: int
    stamp: int
    document: Document

    @property
    def operation(self) -> str:
        """The operation that its id names."""
        return str(self.document["id"]).rpartition(".")[0]

    @property
    def place(self) -> int:
        """Its place in that operation, from 0 on."""
        return int(str(self.document["id"]).rpartition(".")[2])


class Named(NamedTuple):
    """An entry of a feed."""

    partition: int
    seq: int
    path: str
    first: int
    events: int
    kinds: str
    stamp: int


@dataclass
class View:
    """One generation of a view, over all partitions."""

    kept: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Path -> version and stamp of the event applied last."""
    rows: dict[str, list[Any]] = field(default_factory=dict)
    documents: dict[str, dict[str, Document]] = field(default_factory=dict)
    """Path -> key -> what is filed under it."""
    totals: dict[tuple[str, int], dict[str, int]] = field(default_factory=dict)
    """Tenant and partition -> name -> sum."""


@dataclass
class State:
    """All that a namespace holds."""

    partitions: int = 0
    logs: dict[str, list[Entry]] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    """Path -> the partition its log lies in."""
    heads: dict[str, dict[str, str]] = field(default_factory=dict)
    feeds: dict[int, list[Named]] = field(default_factory=dict)
    listed: dict[int, dict[str, int]] = field(default_factory=dict)
    """Partition -> path -> the number of its first feed entry."""
    deleted: dict[str, int] = field(default_factory=dict)
    """Path of a deleted conversation -> its last version."""
    left: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Path -> what else is kept beside its log."""
    trimmed: dict[int, int] = field(default_factory=dict)
    """Partition -> the number of the last entry that was trimmed from its feed."""
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Name -> settings."""
    marks: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    """Group and partition -> number and stamp."""
    waiting: dict[tuple[str, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    parked: dict[tuple[str, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    live: dict[str, int] = field(default_factory=dict)
    """Projection -> the generation that is read."""
    generations: dict[str, dict[int, str]] = field(default_factory=dict)
    """Projection -> generation -> ``building`` or ``ready``."""
    views: dict[tuple[str, int], View] = field(default_factory=lambda: defaultdict(View))
    """By projection and generation."""
    faults: list[tuple[str, str]] = field(default_factory=list)
    """Keys that are not what they should be, and why."""


def parse(raw: dict[str, tuple[str, Any]], namespace: str) -> State:
    """What the keys say. A key that cannot be read is a fault."""
    state = State()
    for key, (kind, value) in raw.items():
        try:
            if kind == "on two nodes":
                raise ValueError(kind)
            if key == f"{namespace}:meta":
                state.partitions = int(value[b"partitions"])
                continue
            match = _KEY.fullmatch(key)
            if match is None or match["ns"] != namespace:
                raise ValueError("no key of this namespace")
            _take(state, int(match["p"]), match["what"], value)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            state.faults.append((key, repr(error)))
    return state


def _take(state: State, partition: int, what: str, value: Any) -> None:
    kind, _, rest = what.partition(":")
    match kind:
        case "log":
            if rest in state.places:
                raise ValueError(f"a second log of this conversation, the first lies in {state.places[rest]}")
            state.logs[rest] = [_entry(one) for one in value]
            state.places[rest] = partition
        case "head":
            head = {name.decode(): text.decode() for name, text in value.items()}
            if head.get("state") == "deleted":
                state.deleted[rest] = int(head["last"].partition("-")[0])
            else:
                state.heads[rest] = head
        case "ops" | "old-ops":
            state.left[rest].add(what)
        case "feed-base":
            state.trimmed[partition] = int(value.get(b"seq", 0))
        case "feed":
            state.feeds[partition] = [_named(partition, one) for one in value]
        case "conversations":
            state.listed[partition] = {path.decode(): int(score) for path, score in value.items()}
        case "reader":
            _reader(state, partition, rest, value)
        case "group":
            state.groups[rest] = json.loads(value[b"settings"])
        case "groups":
            pass
        case "views":
            for name, record in value.items():
                known = json.loads(record.partition(b"|")[2])
                state.live[name.decode()] = known["live"]
                state.generations[name.decode()] = {number: how for number, _, how, _ in known["generations"]}
        case "view":
            _view(state, partition, rest, value)
        case _:
            raise ValueError("no key that is known")


def _entry(one: tuple[bytes, dict[bytes, bytes]]) -> Entry:
    version, _, stamp = one[0].decode().partition("-")
    if set(one[1]) != {b"e"}:
        raise ValueError(f"entry {one[0]!r} has fields {sorted(one[1])}")
    return Entry(int(version), int(stamp), json.loads(one[1][b"e"]))


def _named(partition: int, one: tuple[bytes, dict[bytes, bytes]]) -> Named:
    zero, _, seq = one[0].decode().partition("-")
    if zero != "0":
        raise ValueError(f"feed entry {one[0]!r}")
    fields = {name.decode(): text.decode() for name, text in one[1].items()}
    return Named(partition, int(seq), fields["c"], int(fields["f"]), int(fields["n"]), fields["k"], int(fields["s"]))


def _reader(state: State, partition: int, rest: str, value: Any) -> None:
    group, _, part = rest.partition(":")  # names are percent-encoded: no colon in them
    match part:
        case "":
            if b"mark" in value:
                seq, _, stamp = value[b"mark"].decode().partition("-")
                state.marks[group, partition] = int(seq), int(stamp)
        case "waiting":
            state.waiting[group, partition] |= {path.decode() for path in value}
        case "parked":
            state.parked[group, partition] |= {name.decode() for name in value}


def _view(state: State, partition: int, rest: str, value: Any) -> None:
    projection, generation, part, *path = rest.split(":", 3)
    view = state.views[projection, int(generation)]
    if part == "kept":
        for name, packed in value.items():
            version, _, stamp = packed.partition(b"|")[0].decode().partition("-")
            view.kept[name.decode()] = int(version), int(stamp)
    elif part == "rows":
        view.rows[path[0]] = [json.loads(row) for row in value]
    elif part == "entries":
        filed = {key.decode(): packed.partition(b"\0")[2] for key, packed in value.items()}
        view.documents[path[0]] = {key: json.loads(document) for key, document in filed.items()}
    elif part == "totals":
        view.totals[path[0], partition] = {name.decode(): int(total) for name, total in value.items()}
