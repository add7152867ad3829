"""Whether the keys of one conversation hold what this product writes, and agree. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eventlog.codec import decode
from eventlog.events import Event
from eventlog.identity import LogId, partition_of
from eventlog.store.port import LAYOUT
from eventlog.verify.document import check_document
from eventlog.verify.events import EventRules, RunSeen
from eventlog.verify.fault import Fault, id_of, show
from eventlog.verify.tombstone import check_tombstone

_NUMBER = re.compile(rb"0|[1-9][0-9]{0,15}")
_RECORD = re.compile(rb"([1-9][0-9]{0,15}):([1-9][0-9]{0,15}):([1-9][0-9]{0,18}):[0-9a-f]{40}")
_RUN = re.compile(rb"([^|]*)\|([01])\|(\d{1,16})\|(\d{1,16})\|(\d{1,16})\|(\d{1,16})\|([0-9a-f]*)\|(.*)", re.DOTALL)
_ANSWER = re.compile(rb"answer:([1-9][0-9]{0,15}):(.+)", re.DOTALL)
_NUMBERS = (b"updated", b"evicted", b"rotated", b"open")


class Operation(NamedTuple):
    """One append as the log's entries tell it."""

    first: int
    events: int
    stamp: int
    kinds: tuple[str, ...]
    """The distinct event types in order of appearance."""


@dataclass(frozen=True, slots=True)
class LogSnapshot:
    """What the keys of one conversation held at one moment, as the server gave it."""

    path: bytes
    head: Mapping[bytes, bytes]
    ops: Mapping[bytes, bytes]
    old_ops: Mapping[bytes, bytes]
    first_id: bytes | None
    last_id: bytes | None
    """The ids of the log's first and last entry; None: it has none."""
    score: bytes | None
    """The number of its first feed entry, from the set of conversations.

    None: it is not there; empty: the set cannot be read.
    """
    unlike: Sequence[tuple[str, str, str]] = ()
    """(key, its type, the type it should have), of keys of another type."""


def check_meta(meta: Mapping[bytes, bytes]) -> Iterator[Fault]:
    """The faults of the namespace's own key."""
    layout, partitions = meta.get(b"layout"), meta.get(b"partitions")
    if layout != b"%d" % LAYOUT:
        yield Fault("field 'layout'", f"it is {show(layout)}", f"it should be {LAYOUT}")
    if partitions is None or not _NUMBER.fullmatch(partitions) or not 1 <= int(partitions) <= 16_384:
        yield Fault("field 'partitions'", f"it is {show(partitions)}", "it should be a number from 1 to 16384")
    for name in meta.keys() - {b"layout", b"partitions"}:
        yield Fault(f"field {show(name)}", "nobody writes it", "it should not be there")


def check_path(path: bytes, partition: int, partitions: int) -> str | None:
    """What is wrong with a path in a key or an index of this partition, or None."""
    try:
        text = path.decode("ascii")
        if "/" not in text or LogId.of_path(text).path != text or text.startswith("/") or text.endswith("/"):
            return "it is not <tenant>/<conversation>, each percent-encoded"
    except ValueError:
        return "it is not <tenant>/<conversation>, each percent-encoded"
    right = partition_of(text, partitions)
    return None if right == partition else f"it belongs to partition {right}"


class LogCheck:
    """Checks one conversation: ``take`` each entry up to the snapshot's last, then ``end``."""

    def __init__(self, snapshot: LogSnapshot) -> None:
        self._snapshot = snapshot
        self._base = id_of(snapshot.head.get(b"base", b"0-0")) or (0, 0)
        # A base that is beyond what is there is itself the fault: the log is then read from its first entry.
        first = id_of(snapshot.first_id or b"") or (0, 0)
        self.base = min(self._base[0], first[0] - 1) if first[0] else self._base[0]
        self.operations: list[Operation] = []
        self.last = self.base
        self._last_id = b"%d-%d" % self._base
        self._rules = EventRules(self.base)
        self._names: dict[str, Operation] = {}
        self._current: tuple[str, int, int, int] | None = None  # id, first version, events so far, stamp
        self._kinds: dict[str, None] = {}

    @property
    def is_deleted(self) -> bool:
        """Whether the head says that the conversation was deleted: its log is then gone."""
        return self._snapshot.head.get(b"state") == b"deleted"

    @property
    def score(self) -> bytes | None:
        """Where the set of conversations places it."""
        return self._snapshot.score

    def take(self, entry_id: bytes, fields: Sequence[bytes]) -> Iterator[Fault]:
        """The faults of the next entry of the log."""
        parsed = id_of(entry_id)
        if parsed is None or not 0 < parsed[1] < 1 << 63 or not parsed[0]:
            yield Fault(f"entry {show(entry_id)}", "its id is not well formed", "it should be <version>-<stamp>")
            return
        version, stamp = parsed
        where = f"version {version}"
        if version == self.last and self._current is not None:
            yield Fault(where, "two entries have this version", "there should be one")
            return
        if version > self.last + 1:
            missing = f"version {self.last + 1}" + (f" to {version - 1}" if version > self.last + 2 else "")
            yield Fault(missing, "it is missing", f"the entry after version {self.last} should be {self.last + 1}")
        self.last, self._last_id = version, entry_id
        if len(fields) != 2 or fields[0] != b"e":
            names = [bytes(name) for name in fields[::2]]
            yield Fault(where, f"the entry has the fields {show(names)}", "it should have one, 'e'")
            return
        document = bytes(fields[1])
        faults = [Fault(where, wrong, right) for wrong, right in check_document(document)]
        yield from faults
        if not faults:
            yield from self._take(decode(version, stamp, document, upcasters={}))

    def end(self) -> Iterator[Fault]:
        """What is wrong with the keys beside the log, now that its entries are known."""
        self._close()
        yield from self._rules.end_of_operation()
        snapshot = self._snapshot
        for key, found, wanted in snapshot.unlike:
            yield Fault(f"key {key!r}", f"it is a {found}", f"it should be a {wanted}")
        if self.is_deleted:
            yield from check_tombstone(snapshot.head, snapshot.ops, snapshot.old_ops, snapshot.last_id, snapshot.score)
        elif not snapshot.unlike:
            yield from self._head()
            yield from self._records()

    def _take(self, event: Event) -> Iterator[Fault]:
        where = f"version {event.version}"
        operation, _, digits = event.id.rpartition(".")
        index = int(digits)
        current = self._current
        goes_on = current is not None and current[0] == operation
        if current is not None and goes_on:
            first, count, stamp = current[1:]
            if index != count or event.version != first + count:
                yield Fault(where, f"the event id is {show(event.id)}", f"it should be {operation}.{count}")
                return
            if event.stamp != stamp:
                yield Fault(where, f"its stamp is {event.stamp}", f"it should be {stamp}, as of its whole operation")
            self._current = (operation, first, count + 1, stamp)
        else:
            self._close()
            trimmed = self.base and event.version == self.base + 1  # a trim may end within an operation
            if operation in self._names:
                used = self._names[operation].first
                yield Fault(where, f"operation {operation!r} was used at version {used}", "an id should be used once")
            elif index and not trimmed:
                yield Fault(where, f"the event id is {show(event.id)}", f"it should be {operation}.0")
            self._current = (operation, event.version - index, index + 1, event.stamp)
        self._kinds[event.type] = None
        yield from self._rules.take(event, self._current[1])

    def _close(self) -> None:
        """The current operation is whole: note it."""
        if self._current is None:
            return
        name, first, count, stamp = self._current
        found = Operation(first, count, stamp, tuple(self._kinds))
        self.operations.append(found)
        self._names.setdefault(name, found)
        self._current, self._kinds = None, {}

    def _head(self) -> Iterator[Fault]:
        head, snapshot = self._snapshot.head, self._snapshot
        base = head.get(b"base", b"0-0")
        if id_of(base) is None:
            yield _field(b"base", base, "it should be <version>-<stamp>")
        elif self.base != self._base[0]:
            yield _field(b"base", base, f"the log begins at version {self.base + 1}: it should name {self.base}")
        if head.get(b"last", base) != self._last_id:
            yield _field(b"last", head.get(b"last"), f"it should be {self._last_id.decode()}, the log's last entry")
        if b"state" in head:
            yield _field(b"state", head[b"state"], "it should be 'deleted', or not be there")
        for name in _NUMBERS:
            if name in head and not _NUMBER.fullmatch(head[name]):
                yield _field(name, head[name], "it should be a whole number")
        if self.last and b"updated" not in head:
            yield _field(b"updated", None, "it should be the time of the last append, in ms")
        if self.last and snapshot.score is None:
            yield Fault("the set of conversations", "its path is not there", "it should be: there is a log")
        elif snapshot.score and not self.last:
            yield Fault("the set of conversations", "its path is there", "it should not be: there is no log")
        elif snapshot.score is not None and not re.fullmatch(rb"([1-9]\d{0,15})?", snapshot.score):
            yield Fault(
                "the set of conversations",
                f"its score is {show(snapshot.score)}",
                "it should be the number of its first feed entry",
            )
        known = {b"last", b"base", b"state", b"confirmed", *_NUMBERS}
        for name in head.keys() - known:
            if not name.startswith(b"run:") and not _ANSWER.fullmatch(name):
                yield _field(name, head[name], "nobody writes such a field: it should not be there")
        yield from self._runs(head)

    def _runs(self, head: Mapping[bytes, bytes]) -> Iterator[Fault]:
        opened = {b"run:" + name.encode(): run for name, run in self._rules.open.items()}
        stored = {name: value for name, value in head.items() if name.startswith(b"run:")}
        told = head.get(b"open", b"0")
        if _NUMBER.fullmatch(told) and int(told) != len(stored):
            yield _field(b"open", told, f"it should be {len(stored)}, the number of its runs")
        exclusive = [name for name, value in stored.items() if value.split(b"|")[1:2] == [b"1"]]
        if exclusive and len(stored) > 1:
            yield _field(exclusive[0], stored[exclusive[0]], "an exclusive run should be the only one open")
        for name, run in opened.items():
            if name not in stored and run.first:
                yield _field(name, None, f"the run of version {run.first} is open: it should have its field")
        for name, value in stored.items():
            run_seen = opened.get(name)
            if run_seen is None and self.base and _RUN.fullmatch(value):
                continue  # all its events may have been trimmed
            if run_seen is None:
                yield _field(name, value, "no such run is open: it should not be there")
            else:
                yield from _run_field(name, value, run_seen)
        yield from self._answers(head, opened)

    def _answers(self, head: Mapping[bytes, bytes], opened: Mapping[bytes, RunSeen]) -> Iterator[Fault]:
        wanted = {
            b"answer:%d:%b" % (call, name[4:]): first
            for name, run in opened.items()
            for call, first in run.answers.items()
        }
        for name, value in head.items():
            if not _ANSWER.fullmatch(name):
                continue
            if name in wanted:
                if value != b"%d" % wanted[name]:
                    yield _field(name, value, f"it should be {wanted[name]}, where its operation begins")
            elif not (self.base and _NUMBER.fullmatch(value) and int(value) <= self.base):
                yield _field(name, value, "no open run has such a result: it should not be there")
        for name in wanted.keys() - head.keys():
            yield _field(name, None, f"it should be {wanted[name]}: an open run has that result")

    def _records(self) -> Iterator[Fault]:
        snapshot, head = self._snapshot, self._snapshot.head
        rotated, evicted = (_number(head.get(name, b"0")) for name in (b"rotated", b"evicted"))
        if rotated > self.last or evicted > rotated:
            yield _field(b"rotated", head.get(b"rotated"), f"it should lie between evicted ({evicted}) and the last")
        for what, stored, low, high in (
            ("the operations", snapshot.ops, rotated, self.last),
            ("the old operations", snapshot.old_ops, evicted, rotated),
        ):
            wanted = {name: found for name, found in self._names.items() if low < found.first <= high}
            for name, value in stored.items():
                text = name.decode(errors="backslashreplace")
                yield from self._record(f"record {text!r} of {what}", value, wanted.pop(text, None))
            for text, found in wanted.items():
                if found.first > self.base:
                    yield Fault(f"record {text!r} of {what}", "it is missing", f"it should name version {found.first}")

    def _record(self, where: str, value: bytes, found: Operation | None) -> Iterator[Fault]:
        match = _RECORD.fullmatch(value)
        if match is None:
            yield Fault(where, f"it is {show(value)}", "it should be first:count:stamp:digest")
            return
        first, count, stamp = (int(group) for group in match.groups())
        if first + count - 1 > self.last:
            wrong = f"it names versions {first} to {first + count - 1}"
            yield Fault(where, wrong, f"the log should have them; it ends at version {self.last}")
        elif found is None:
            if first > self.base:
                yield Fault(where, f"it names version {first}", "an operation of that id and age should be in the log")
        elif (first, count, stamp) != found[:3]:
            wanted = ":".join(map(str, found[:3]))
            yield Fault(where, f"it says {first}:{count}:{stamp}", f"it should say {wanted}, as the log does")


def _number(value: bytes) -> int:
    return int(value) if _NUMBER.fullmatch(value) else 0


def _field(name: bytes, value: bytes | None, right: str) -> Fault:
    wrong = "it is missing" if value is None else f"it is {show(value)}"
    return Fault(f"field {name.decode(errors='backslashreplace')!r} of the head", wrong, right)


def _run_field(name: bytes, value: bytes, run: RunSeen) -> Iterator[Fault]:
    match = _RUN.fullmatch(value)
    if match is None:
        yield _field(name, value, "it should be mode|exclusive|first|call|since|lease|fence|holder")
        return
    mode, first, call, fence = match[1], int(match[3]), int(match[4]), match[7].decode()
    if run.first and (mode != run.mode.encode() or first != run.first):
        yield _field(name, value, f"it should say {run.mode} and version {run.first}, as its run-started")
    if (run.calls and call != run.last_call) or (run.first and not run.calls and call):
        yield _field(name, value, f"its last call should be {run.last_call}")
    if run.fence is not None and fence != run.fence:
        yield _field(name, value, f"its fence should be {run.fence}, as its last run-resumed")
