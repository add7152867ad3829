"""The reference: a store of logs in this process's memory, for tests and to read the rules in.

It is the smallest true implementation of the port, and lasts as long as the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import anyio

from eventlog.identity import Cursor, LogId, new_stamp, partition_of
from eventlog.store import refusals
from eventlog.store.port import (
    ANY,
    DELETION,
    EXISTS,
    NONE,
    OPERATION_WINDOW,
    Append,
    Appended,
    Entry,
    FeedBase,
    FeedEntry,
    Head,
    Limits,
    OpenRun,
    RunClaim,
    Step,
)


@dataclass(slots=True)
class _Run:
    open: OpenRun
    fence: str
    answers: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Log:
    entries: list[Entry] = field(default_factory=list)
    base: Cursor | None = None
    operations: dict[str, tuple[Appended, str]] = field(default_factory=dict)
    old_operations: dict[str, tuple[Appended, str]] = field(default_factory=dict)
    rotated: int = 0
    """The last version when the older generation of operations became that."""
    evicted: int = 0
    """Up to which version records of operations are gone."""
    runs: dict[str, _Run] = field(default_factory=dict)
    updated_ms: int = 0
    deleted: bool = False
    why: str = ""
    deleted_ms: int = 0
    ended: Cursor | None = None
    """The last event that a deleted log had."""


def _server_ms() -> int:
    return time.time_ns() // 1_000_000


class MemoryStore:
    """A ``LogStore`` in memory. ``clock`` gives milliseconds since 1970."""

    def __init__(
        self, *, partitions: int = 16, limits: Limits | None = None, clock: Callable[[], int] = _server_ms
    ) -> None:
        self.partitions = partitions
        self.companions: dict[str, object] = {}
        self.feeds: list[list[FeedEntry]] = [[] for _ in range(partitions)]
        """An entry's number is its place, counted from 1: those up to the base stay, and are not shown."""
        self._bases = [FeedBase() for _ in range(partitions)]
        self._appended = anyio.Event()
        self._limits = limits or Limits()
        self._clock = clock
        self._logs: dict[str, _Log] = {}
        self._conversations: list[dict[str, int]] = [{} for _ in range(partitions)]

    async def append(self, request: Append) -> Appended:
        log = self._logs.get(request.log.path) or _Log()
        last = self._last(request.log, log)
        first_outcome = self._recognise(request, log)
        if first_outcome is not None:
            return first_outcome
        if log.deleted:
            raise refusals.deleted(request)
        self._check_cursor(request, log, last)
        self._check_runs(request, log)
        expected = request.expected
        if (
            (expected is NONE and last.version > 0)
            or (expected is EXISTS and last.version == 0)
            or (isinstance(expected, Cursor) and expected != last)
        ):
            raise refusals.conflict(request, last)
        too_large = self._limits.exceeded_by(request.encoded.documents)
        if too_large:
            raise refusals.limit(request, too_large)
        return self._write(request, log, last)

    async def renew(self, log: LogId, run: str, fence: str, lease_ms: int) -> None:
        kept = self._logs.get(log.path, _Log())
        found = kept.runs.get(run)
        if found is None:
            raise refusals.gone(log) if kept.deleted else refusals.closed(log, run)
        if found.fence != fence:
            raise refusals.fenced(log, run, found.open.holder, found.open.since_ms)
        found.open = replace(found.open, lease_ms=self._clock() + lease_ms)

    async def read(self, log: LogId, first: int, last: int | None, count: int, *, reverse: bool = False) -> list[Entry]:
        kept = self._logs.get(log.path, _Log())
        start = max(first - 1 - self._base(log, kept).version, 0)
        stop = len(kept.entries) if last is None else max(last - self._base(log, kept).version, 0)
        found = kept.entries[start:stop]
        return found[::-1][:count] if reverse else found[:count]

    async def pick(self, log: LogId, versions: Sequence[int]) -> list[Entry]:
        kept = self._logs.get(log.path, _Log())
        base = self._base(log, kept).version
        return [kept.entries[v - 1 - base] for v in versions if 0 <= v - 1 - base < len(kept.entries)]

    async def head(self, log: LogId) -> Head:
        kept = self._logs.get(log.path, _Log())
        runs = tuple(run.open for run in kept.runs.values())
        return Head(
            self._last(log, kept), self._base(log, kept), kept.updated_ms, kept.deleted, runs, kept.why, kept.deleted_ms
        )

    async def now_ms(self) -> int:
        return self._clock()

    async def conversations(self, partition: int, offset: int, count: int) -> list[LogId]:
        paths = list(self._conversations[partition])[offset : offset + count]
        return [LogId.of_path(path) for path in paths]

    async def conversations_after(self, partition: int, after: int, count: int) -> list[tuple[int, LogId]]:
        found = [(seq, LogId.of_path(path)) for path, seq in self._conversations[partition].items() if seq > after]
        page = found[: max(count, 0)]
        return page + [one for one in found[len(page) :] if page and one[0] == page[-1][0]]

    async def delete(
        self, log: LogId, *, force: bool = False, idle_since_ms: int | None = None, why: str = "deleted"
    ) -> bool:
        kept = self._logs.get(log.path)
        if kept is None or kept.deleted:
            return kept is not None
        now, last = self._clock(), self._last(log, kept)
        if idle_since_ms is not None and (kept.runs or kept.updated_ms >= idle_since_ms):
            return False
        if kept.runs and not force:
            run = next(iter(kept.runs.values())).open
            raise refusals.in_use(log, run.run, run.holder, run.since_ms, run.lease_ms, now)
        self._logs[log.path] = _Log(deleted=True, why=why, deleted_ms=now, ended=last)
        partition = partition_of(log.path, self.partitions)
        del self._conversations[partition][log.path]
        self._name(log, last.version + 1, 0, DELETION, new_stamp())
        return True

    async def feed_ends(self) -> list[int]:
        return [len(feed) for feed in self.feeds]

    async def read_feed(self, partition: int, first: int, count: int) -> list[FeedEntry]:
        return self.feeds[partition][max(first - 1, self._bases[partition].seq) :][: max(count, 0)]

    async def feed_base(self, partition: int) -> FeedBase:
        return self._bases[partition]

    async def announce_trim(self, partition: int, below: int) -> None:
        base = self._bases[partition]
        self._bases[partition] = base._replace(announced=max(below, base.announced))

    async def trim_feed(self, partition: int, below: int) -> int:
        base, feed = self._bases[partition], self.feeds[partition]
        last = min(below, len(feed)) - 1
        if last <= base.seq:
            return 0
        self._bases[partition] = FeedBase(last, feed[last - 1].stamp, max(last + 1, base.announced))
        return last - base.seq

    async def wait_feeds(self, after: Sequence[int], seconds: float, count: int) -> list[FeedEntry]:
        with anyio.move_on_after(seconds):
            while True:
                found = [
                    entry
                    for feed, seq, base in zip(self.feeds, after, self._bases, strict=True)
                    for entry in feed[max(seq, base.seq) :][:count]
                ]
                if found:
                    return found
                await self._appended.wait()
        return []

    async def close(self) -> None:
        """Nothing is held open."""

    async def mark_deleted(self, log: LogId) -> None:
        """Take no more appends to this log. For tests of the order of checks."""
        self._logs.setdefault(log.path, _Log()).deleted = True

    async def trim(self, log: LogId, version: int) -> None:
        """Forget the events up to ``version``. For tests of what is said of a gap."""
        kept = self._logs[log.path]
        cut = version - self._base(log, kept).version
        kept.base = log.cursor(version, kept.entries[cut - 1].stamp)
        del kept.entries[:cut]

    def _last(self, log: LogId, kept: _Log) -> Cursor:
        if kept.entries:
            return log.cursor(kept.entries[-1].version, kept.entries[-1].stamp)
        return kept.ended or self._base(log, kept)

    def _base(self, log: LogId, kept: _Log) -> Cursor:
        return kept.base or log.cursor(0, 0)

    def _recognise(self, request: Append, log: _Log) -> Appended | None:
        record = log.operations.get(request.operation_id) or log.old_operations.get(request.operation_id)
        if record is not None and record[1] == request.encoded.digest:
            return record[0]._replace(duplicate=True, before=None)
        first = None
        if record is not None:
            first = record[0].first
        elif request.expected not in (ANY, EXISTS):
            after = request.expected.version if isinstance(request.expected, Cursor) else 0
            found = self._slice(request.log, log, after + 1, 1)
            if found and found[0].document.startswith(request.encoded.id_prefix):
                first = after + 1
        if first is None and request.claim and request.claim.step is Step.START and request.operation_id in log.runs:
            first = log.runs[request.operation_id].open.first
        if first is None:
            return None
        return refusals.retried(
            request, first, self._slice(request.log, log, first, len(request.encoded.documents) + 1)
        )

    def _slice(self, log: LogId, kept: _Log, first: int, count: int) -> list[Entry]:
        start = first - 1 - self._base(log, kept).version
        return kept.entries[start : start + count] if start >= 0 else []

    def _check_cursor(self, request: Append, log: _Log, last: Cursor) -> None:
        cursor, base = request.cursor, self._base(request.log, log)
        if request.retry and log.evicted > cursor.version:
            raise refusals.unknown(request)
        if cursor.version == 0 or cursor in (last, base):
            return
        if cursor.version <= base.version:
            raise refusals.truncated(request, base)
        found = self._slice(request.log, log, cursor.version, 1)
        if not found or found[0].stamp != cursor.stamp:
            raise refusals.lost(request, last)

    def _check_runs(self, request: Append, log: _Log) -> None:
        claim, now = request.claim, self._clock()
        run = log.runs.get(claim.run) if claim is not None else None
        if claim is not None and claim.step is not Step.START:
            if run is None:
                raise refusals.closed(request.log, claim.run)
            if claim.step is Step.GO_ON and run.fence != claim.fence:
                raise refusals.fenced(request.log, claim.run, run.open.holder, run.open.since_ms)
            if claim.step is Step.RESUME and run.open.lease_ms > now:
                raise self._busy(request, run, now)
        for other in log.runs.values():
            if other.open.run not in request.supersedes and _clash(request, other.open):
                raise self._busy(request, other, now)
        if claim is not None and run is not None:
            for call in claim.answers:
                if call in run.answers:
                    raise refusals.answered(request, claim.run, call, run.answers[call])

    @staticmethod
    def _busy(request: Append, run: _Run, now: int) -> Exception:
        return refusals.busy(request, run.open.run, run.open.holder, run.open.since_ms, run.open.lease_ms, now)

    def _write(self, request: Append, log: _Log, last: Cursor) -> Appended:
        stamp, now = new_stamp(), self._clock()
        first = last.version + 1
        path = request.log.path
        partition = partition_of(path, self.partitions)
        self._logs[path] = log
        self._conversations[partition].setdefault(path, len(self.feeds[partition]) + 1)
        for index, document in enumerate(request.encoded.documents):
            log.entries.append(Entry(first + index, stamp, document))
        log.updated_ms = now
        for superseded in request.supersedes:
            log.runs.pop(superseded, None)
        if request.claim is not None:
            self._move_run(request.claim, log, first, now)
        cursor = request.log.cursor(first + len(request.encoded.documents) - 1, stamp)
        outcome = Appended(cursor, first, request.operation_id, False, last)
        if len(log.operations) >= OPERATION_WINDOW:
            log.old_operations, log.operations = log.operations, {}
            log.rotated, log.evicted = last.version, log.rotated
        log.operations[request.operation_id] = (outcome, request.encoded.digest)
        self._name(request.log, first, len(outcome.versions), request.encoded.kinds, stamp)
        return outcome

    def _name(self, log: LogId, first: int, events: int, kinds: str, stamp: int) -> None:
        """Name it in the feed of its partition."""
        partition = partition_of(log.path, self.partitions)
        feed = self.feeds[partition]
        feed.append(FeedEntry(partition, len(feed) + 1, log, first, events, kinds, stamp))
        self._appended.set()
        self._appended = anyio.Event()

    @staticmethod
    def _move_run(claim: RunClaim, log: _Log, first: int, now: int) -> None:
        if claim.step is Step.START:
            opened = OpenRun(
                claim.run, claim.mode, claim.exclusive, first, claim.last_call, now, now + claim.lease_ms, claim.holder
            )
            log.runs[claim.run] = _Run(opened, claim.fence)
        run = log.runs[claim.run]
        if claim.step in (Step.RESUME, Step.FORCE):
            run.fence = claim.fence
            run.open = replace(run.open, holder=claim.holder, since_ms=now)
        run.open = replace(run.open, lease_ms=now + claim.lease_ms, last_call=max(run.open.last_call, claim.last_call))
        for call in claim.answers:
            run.answers[call] = first
        if claim.closes:
            del log.runs[claim.run]


def _clash(request: Append, other: OpenRun) -> bool:
    """Whether an open run stands in the way of what the append starts, or does alone."""
    claim = request.claim
    starts = claim is not None and claim.step is Step.START
    return request.alone or (starts and (claim.exclusive or other.exclusive))  # type: ignore[union-attr]
