"""Whether a partition's feed names each append of its logs once, in order, without a gap. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from eventlog.store.port import DELETION
from eventlog.verify.fault import Fault, id_of, show
from eventlog.verify.log import LogCheck, Operation, check_path

_ALL = 1 << 63  # beyond every version


@dataclass(slots=True)
class _Named:
    """How far the feed has named one log's appends."""

    operations: Sequence[Operation]
    base: int
    last: int
    score: bytes | None = None
    next: int = 0


@dataclass(slots=True)
class FeedCheck:
    """Checks the feed of one partition against the logs that were added; ``take`` each entry, then ``end``.

    Entries up to sequence number ``strict`` were there before any log was read, so that each must be
    found. Those behind may name appends that came later.
    """

    partition: int
    partitions: int
    strict: int
    only: bytes | None = None
    """Compare the entries of this path alone; the order of all is checked all the same."""
    seq: int = 0
    base: int = 0
    """The number of the last trimmed entry."""
    _logs: dict[bytes, _Named] = field(default_factory=dict)

    def begin(self, base: int) -> None:
        """Entries up to this number were trimmed: the next one is the one behind."""
        self.base, self.seq = max(base, self.base), max(base, self.seq)

    def add(self, path: bytes, check: LogCheck) -> None:
        """A log whose entries have all been taken."""
        operations = [found for found in check.operations if found.first > check.base]
        self._logs[path] = _Named(operations, check.base, check.last, check.score)

    def pass_over(self, path: bytes) -> None:
        """A log that cannot be read: what the feed says of it is not compared."""
        self._logs[path] = _Named((), _ALL, _ALL)

    def knows(self, path: bytes) -> bool:
        """Whether this log was added, or is not asked for."""
        return path in self._logs or (self.only is not None and path != self.only)

    @property
    def is_done(self) -> bool:
        """Whether all that had to be named was named."""
        return self.seq >= self.strict and all(log.next >= len(log.operations) for log in self._logs.values())

    def take(self, entry_id: bytes, fields: Sequence[bytes]) -> Iterator[Fault]:
        """The faults of the next entry of the feed."""
        parsed = id_of(entry_id)
        if parsed is None or parsed[0]:
            yield Fault(f"entry {show(entry_id)}", "its id is not well formed", "it should be 0-<number>")
            return
        where, wanted = f"entry {entry_id.decode()}", self.seq + 1
        if parsed[1] <= self.base:
            yield Fault(where, f"entries up to 0-{self.base} were trimmed", "it should not be there")
            return
        if parsed[1] != wanted:
            yield Fault(where, f"the entry before is 0-{self.seq}", f"0-{wanted} should be between them")
        self.seq = parsed[1]
        values = dict(zip(fields[::2], fields[1::2], strict=False))
        first, count, stamp = (values.get(name, b"") for name in (b"f", b"n", b"s"))
        is_deletion = count == b"0" and values.get(b"k") == DELETION.encode()
        if list(fields[::2]) != [b"c", b"f", b"n", b"k", b"s"] or not all(
            re.fullmatch(rb"[1-9]\d{0,18}", value) for value in (first, b"1" if is_deletion else count, stamp)
        ):
            yield Fault(where, f"it holds {show(values)}", "it should hold c (a path), f, n, k and s of an append")
            return
        path = values[b"c"]
        problem = check_path(path, self.partition, self.partitions)
        if problem:
            yield Fault(where, f"its path is {show(path)}", f"it should name a log of this partition: {problem}")
        elif is_deletion:
            if path in self._logs and self._logs[path].base != _ALL and self.seq <= self.strict:
                yield Fault(where, f"it says that {show(path.decode())} was deleted", "its head should say so, too")
        elif path in self._logs:
            kinds = tuple(values[b"k"].decode(errors="backslashreplace").split(","))
            yield from self._match(where, path, Operation(int(first), int(count), int(stamp), kinds))

    def end(self) -> Iterator[tuple[bytes, Fault]]:
        """(path, fault) of each append that the feed does not name."""
        for path, log in self._logs.items():
            for missing in log.operations[log.next :]:
                if not self._may_be_trimmed(log):
                    yield path, _unnamed(missing)

    def _may_be_trimmed(self, log: _Named) -> bool:
        """Whether the feed may have named what it does not name of a log any more."""
        is_whole = re.fullmatch(rb"\d{1,16}", log.score or b"") and int(log.score or 0) > self.base
        return bool(self.base) and log.next == 0 and not is_whole

    def _match(self, where: str, path: bytes, named: Operation) -> Iterator[Fault]:
        log = self._logs[path]
        if named.first <= log.base or (named.first > log.last and self.seq > self.strict):
            return
        operations = log.operations
        index = bisect_left(operations, named.first, log.next, key=lambda operation: operation.first)
        what = f"it names version {named.first} of {show(path.decode())}"
        if index == len(operations) or operations[index].first != named.first:
            again = any(former.first == named.first for former in operations[: log.next])
            right = "each append should be named once, in order" if again else "an append should begin there"
            yield Fault(where, what, right)
            return
        for passed in () if self._may_be_trimmed(log) else operations[log.next : index]:
            yield _unnamed(passed)._replace(where=f"{where}, before version {named.first} of {show(path.decode())}")
        log.next = index + 1
        if named.first == 1 and log.score not in (None, b"", b"%d" % self.seq):
            wrong = f"it is the first of {show(path.decode())}, whose score in the set of conversations is"
            yield Fault(where, f"{wrong} {show(log.score)}", f"that should be {self.seq}, the number of this entry")
        if named != operations[index]:
            told = show(tuple(operations[index]))
            yield Fault(where, f"{what} as {show(tuple(named))}", f"it should say {told}, as the log does")


def check_feed_base(fields: Mapping[bytes, bytes], end: int) -> Iterator[Fault]:
    """The faults of what a partition keeps of the trimming of its feed, whose last entry has the number ``end``."""
    numbers = {name: fields.get(name, b"0") for name in (b"seq", b"stamp", b"announced")}
    for name, value in numbers.items():
        if not re.fullmatch(rb"0|[1-9]\d{0,18}", value):
            yield Fault(f"field {name.decode()!r}", f"it is {show(value)}", "it should be a whole number")
    for name in fields.keys() - numbers.keys():
        yield Fault(f"field {show(name)}", "nobody writes it", "it should not be there")
    if feed_base(fields)[0] >= max(end, 1):
        yield Fault(
            "field 'seq'", f"it is {show(fields[b'seq'])}", f"the feed, which ends with {end}, should go on behind"
        )


def feed_base(fields: Mapping[bytes, bytes]) -> tuple[int, int]:
    """Number and stamp of the last trimmed entry, as they are kept; 0 for what is no number."""
    seq, stamp = (fields.get(name, b"0") for name in (b"seq", b"stamp"))
    return (int(seq), int(stamp)) if re.fullmatch(rb"\d{1,19}", seq) and re.fullmatch(rb"\d{1,19}", stamp) else (0, 0)


def check_mark(mark: bytes, base: tuple[int, int]) -> Iterator[Fault]:
    """The faults of a reader's mark, of a feed that is trimmed up to ``base``."""
    parsed = id_of(mark)
    if parsed is None:
        yield Fault("field 'mark'", f"it is {show(mark)}", "it should be <number>-<stamp> of a feed entry")
    elif parsed[0] < base[0]:
        told = f"it is entry {parsed[0]}, and the feed was trimmed up to entry {base[0]}"
        yield Fault("field 'mark'", told, "no feed should be trimmed beyond a reader's mark: remove the reader")
    elif parsed[0] == base[0] and base[0] and parsed != base:
        told = f"it is {show(mark.decode())}, and the last trimmed entry had the stamp {base[1]}"
        yield Fault("field 'mark'", told, "they should be the same")


def _unnamed(missing: Operation) -> Fault:
    return Fault(f"version {missing.first}", "the feed does not name this append", "it should be named once, in order")
