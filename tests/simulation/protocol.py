"""A model of one log on a server, and of the append protocol. Pure; shares no code with the stores.

An event is its version and stamp, the cursor, and the operation it is of. ``uid`` and ``tenure`` are what no
server knows: which write it truly was, and whose turn at the run it truly belongs to. Invariants use them.
``Rules`` names every rule of the protocol, so that one at a time can be left out.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

WINDOW = 3
"""Records of operations in one generation; small, so that short walks leave it behind."""


@dataclass(frozen=True)
class Rules:
    """What the protocol asks for."""

    record: bool = True
    """The operation's record is looked up."""
    following: bool = True
    """For an exact expectation, the event behind it is looked at, too."""
    recognised_first: bool = True
    """A retry is recognised before anything refuses it."""
    cursor: bool = True
    """An append is refused when an event its writer was given is gone."""
    cursor_of_retries: bool = True
    """So is one that is recognised as a retry."""
    evicted: bool = True
    """A retry without a record is refused when the record may have been evicted."""
    fence: bool = True
    """Who holds the run is checked."""
    random_fence: bool = True
    """A fence is random, not a counter."""
    exact_cursor: bool = True
    """An exact expectation is a cursor, not a version."""
    checks_first: bool = True
    """What could fail in the middle of writing is checked before the first write."""
    fresh_stamp: bool = True
    """Each transmission has a stamp of its own, not each operation."""
    opened_cursor: bool = True
    """A handle reads its cursor when it is opened."""
    moving_cursor: bool = True
    """A handle moves to what it was given."""
    every_cursor: bool = True
    """A handle with several appends in the air stands at each one's outcome until a later append proved it."""
    remembered: bool = True
    """An append repeated because its outcome is unknown is sent as the retry that it is, as of its first try."""
    read_cursor: bool = True
    """A reader checks that the event it stands at is there."""
    read_at_once: bool = True
    """It does so by the very command that reads on."""


class Cursor(NamedTuple):
    version: int
    stamp: int


START = Cursor(0, 0)


class Event(NamedTuple):
    cursor: Cursor
    operation: str
    uid: int
    tenure: int = 0
    opens: bool = False


Step = Literal["", "start", "take-over", "go-on", "close"]


@dataclass(frozen=True)
class Append:
    """One transmission of an append."""

    operation: str
    events: int
    cursors: frozenset[Cursor]
    expected: Cursor | None
    """None: any. Version 0: none yet."""
    stamp: int
    retry: bool = False
    step: Step = ""
    run: str = ""
    fence: int = 0
    tenure: int = 0


Outcome = Literal["done", "lost", "unknown", "closed", "fenced", "busy", "conflict", "error"]


class Reply(NamedTuple):
    outcome: Outcome
    event: Event | None = None
    """The operation's last event, when it is done."""
    fence: int = 0
    duplicate: bool = False


class Record(NamedTuple):
    last: int
    fence: int


@dataclass
class State:
    """All that a server keeps. A copy is a snapshot: nothing in it changes in place."""

    log: tuple[Event, ...] = ()
    last: Cursor = START
    feed: tuple[Cursor, ...] = ()
    records: dict[str, Record] = field(default_factory=dict)
    old_records: dict[str, Record] = field(default_factory=dict)
    rotated: int = 0
    evicted: int = 0
    run: str = ""
    fence: int = 0
    fences: int = 0
    """What a fence that is a counter counts on from."""


class Server:
    """Runs one append at a time, as a script does: whole, unless it fails in the middle of writing."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.state = State()
        self.feed_is_broken = False
        self._uids = 0

    def snapshot(self) -> State:
        return copy(self.state)

    def restore(self, snapshot: State) -> None:
        """Lose, or get back, whatever the snapshot does not, or does, hold."""
        self.state = copy(snapshot)

    def holds(self, cursor: Cursor) -> bool:
        log = self.state.log
        return cursor.version == 0 or (cursor.version <= len(log) and log[cursor.version - 1].cursor == cursor)

    def append(self, append: Append) -> Reply:
        rules, state = self.rules, self.state
        missing = rules.cursor and not all(map(self.holds, append.cursors))
        if rules.recognised_first and (found := self._recognise(append)):
            return Reply("lost") if missing and rules.cursor_of_retries else found
        if missing:
            return Reply("lost")
        newest = max((cursor.version for cursor in append.cursors), default=0)
        if append.retry and rules.evicted and state.evicted > newest:
            return Reply("unknown")
        refusal = self._refuse_run(append) or self._refuse_expectation(append)
        if refusal:
            return Reply(refusal)
        if not rules.recognised_first and (found := self._recognise(append)):
            return found
        if rules.checks_first and self.feed_is_broken:
            return Reply("error")
        return self._write(append)

    def _recognise(self, append: Append) -> Reply | None:
        state, expected = self.state, append.expected
        record = state.records.get(append.operation) or state.old_records.get(append.operation)
        if record and self.rules.record:
            return Reply("done", state.log[record.last - 1], record.fence, True)
        if expected is not None and self.rules.following and len(state.log) > expected.version:
            mine = [event for event in state.log[expected.version :] if event.operation == append.operation]
            if state.log[expected.version].operation == append.operation:
                return Reply("done", mine[-1], append.fence, True)
        return None

    def _refuse_run(self, append: Append) -> Outcome | None:
        if append.step == "start":
            return "busy" if self.state.run else None
        if append.step and (not self.state.run or self.state.run != append.run):
            return "closed"
        ours = append.step == "take-over" or append.fence == self.state.fence
        return "fenced" if append.step and self.rules.fence and not ours else None

    def _refuse_expectation(self, append: Append) -> Outcome | None:
        if append.expected is None:
            return None
        last, wanted = self.state.last, append.expected
        as_expected = last == wanted if self.rules.exact_cursor else last.version == wanted.version
        return None if as_expected else "conflict"

    def _write(self, append: Append) -> Reply:
        state = self.state
        first = len(state.log) + 1
        for version in range(first, first + append.events):
            self._uids += 1
            opens = append.step in ("start", "take-over")
            event = Event(Cursor(version, append.stamp), append.operation, self._uids, append.tenure, opens)
            state.log = (*state.log, event)
        fence = append.fence
        if append.step in ("start", "take-over"):
            state.fences += 1
            fence = append.fence if self.rules.random_fence else state.fences
            state.run, state.fence = append.run, fence
        elif append.step == "close":
            state.run = ""
        if len(state.records) >= WINDOW:
            state.old_records, state.records = state.records, {}
            state.evicted, state.rotated = state.rotated, first - 1
        state.records = {**state.records, append.operation: Record(len(state.log), fence)}
        if self.feed_is_broken:
            return Reply("error")
        state.last = state.log[-1].cursor
        state.feed = (*state.feed, state.last)
        return Reply("done", state.log[-1], fence)
