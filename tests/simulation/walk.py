"""A random walk of writers, holders of a run and readers over a server that loses things; and what must hold.

The network drops requests and replies, delays and reorders them. One thing is assumed of it: the first
transmission of an append does not arrive after a window of other operations. The server restarts without loss,
or goes on from any state it ever had: an older file, a stale replica, a former primary that comes back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from tests.simulation.protocol import START, WINDOW, Append, Cursor, Event, Reply, Rules, Server, State, Step

REFUSALS = ("closed", "fenced", "busy", "conflict")


class Violation(Exception):
    """Something that must never happen did."""


def must(holds: bool, what: str) -> None:
    if not holds:
        raise Violation(what)


@dataclass(eq=False)
class Call:
    """One append as its caller sees it: sent at least once, until it has an outcome or is given up."""

    handle: Handle
    append: Append
    known: frozenset[Event]
    """What the handle had been given when it was first sent."""
    expected: Event | None
    """The event that an exact expectation truly means."""
    born: int
    """How many transmissions the server had run when the operation was made."""


@dataclass(eq=False)
class Handle:
    """A writer's hold on the log, and perhaps on its run."""

    cursors: frozenset[Cursor] = frozenset()
    known: frozenset[Event] = frozenset()
    """What it was given since it was opened."""
    waiting: list[Call] = field(default_factory=list)
    given_up: list[Call] = field(default_factory=list)
    run: str = ""
    fence: int = 0
    tenure: int = 0


@dataclass
class Reader:
    cursor: Cursor = START
    event: Event | None = None
    is_checked: bool = False
    """Only without the rule that checking and reading are one command: it has checked, and is yet to read."""


class Walk:
    """``run`` raises ``Violation`` when an invariant breaks. The same seed walks the same way."""

    def __init__(self, seed: int, rules: Rules) -> None:
        self.random = Random(seed)
        self.rules = rules
        self.server = Server(rules)
        self.handles = [Handle() for _ in range(3)]
        self.readers = [Reader() for _ in range(2)]
        self.requests: list[tuple[Call, Append]] = []
        self.replies: list[tuple[Call, Reply]] = []
        self.snapshots: list[State] = []
        self.done = 0
        self.outcomes: set[str] = set()
        self._numbers = 0

    def run(self, steps: int) -> None:
        actions = {
            self.send: 26,
            self.deliver_request: 34,
            self.deliver_reply: 26,
            self.send_again: 10,
            self.give_up: 3,
            self.repeat: 3,
            self.read: 14,
            self.keep_snapshot: 6,
            self.lose: 3,
            self.restart: 2,
            self.reopen: 2,
            self.break_or_mend_the_feed: 1,
        }
        for handle in self.handles:
            self._open(handle)
        for action in self.random.choices(list(actions), list(actions.values()), k=steps):
            action()

    # what may happen

    def send(self) -> None:
        handle = self.random.choice(self.handles)
        step: Step = ""
        if self.random.random() < 0.4:
            step = self.random.choice(("start", "take-over", "take-over", "go-on", "go-on", "go-on", "close"))
        append = self._append(handle, step)
        expected = None
        if not step and self.random.random() < 0.4:
            # What a caller decides on need not be what its handle was last given.
            at = self.random.choice([*(reader.event for reader in self.readers), *sorted(handle.known)])
            expected, append = at, replace(append, expected=at.cursor if at else START)
        call = Call(handle, append, handle.known, expected, self.done)
        self._transmit(call)
        other = self.random.choice(self.handles)
        if not step and other is not handle and self.random.random() < 0.15:  # the same operation, by two at once
            twin = replace(append, cursors=other.cursors)
            self._transmit(Call(other, twin, other.known, expected, self.done))

    def deliver_request(self) -> None:
        if self.requests:
            call, append = self.requests.pop(self.random.randrange(len(self.requests)))
            late = not append.retry and self.done - call.born >= WINDOW
            if late or self.random.random() < 0.1:
                return
            before = self.server.state.log
            reply = self.server.append(append)
            self.done += 1
            self._check(call, append, before, reply)
            if self.random.random() < 0.75:
                self.replies.append((call, reply))

    def deliver_reply(self) -> None:
        if self.replies:
            call, reply = self.replies.pop(self.random.randrange(len(self.replies)))
            handle = call.handle
            if call in handle.waiting:
                handle.waiting.remove(call)
                self._learn(call, reply)

    def send_again(self) -> None:
        waiting = [call for handle in self.handles for call in handle.waiting]
        if waiting:
            call = self.random.choice(waiting)
            self._transmit(call, retry=True)

    def give_up(self) -> None:
        handle = self.random.choice(self.handles)
        if handle.waiting:
            handle.given_up.append(handle.waiting.pop())

    def repeat(self) -> None:
        """Append again what was given up, to learn its outcome."""
        handle = self.random.choice(self.handles)
        if handle.given_up:
            call = handle.given_up.pop()
            if self.rules.remembered:
                self._transmit(call, retry=True)
            else:
                append = replace(call.append, cursors=handle.cursors)
                self._transmit(replace(call, append=append, known=handle.known, born=self.done))

    def read(self) -> None:
        reader, log = self.random.choice(self.readers), self.server.state.log
        is_there = reader.event is None or self._is_there(reader.event)
        checks = self.rules.read_cursor and not reader.is_checked
        if checks and not self.rules.read_at_once and self.server.holds(reader.cursor):
            reader.is_checked = True
            return
        reader.is_checked = False
        if checks and not self.server.holds(reader.cursor):
            must(not is_there, "a reader before the loss was disturbed")
            reader.cursor, reader.event = START, None
        elif len(log) > reader.cursor.version:
            must(is_there, "a reader beyond the loss read on and was not told")
            reader.event = log[self.random.randrange(reader.cursor.version, len(log))]
            reader.cursor = reader.event.cursor

    def keep_snapshot(self) -> None:
        self.snapshots.append(self.server.snapshot())

    def lose(self) -> None:
        if self.snapshots:
            self.snapshots.append(self.server.snapshot())  # a former primary may come back
            self.server.restore(self.random.choice(self.snapshots[-6:]))

    def restart(self) -> None:
        """Nothing is lost but what was on the wire."""
        self.requests.clear()
        self.replies.clear()

    def reopen(self) -> None:
        self._open(self.random.choice(self.handles))

    def break_or_mend_the_feed(self) -> None:
        self.server.feed_is_broken = not self.server.feed_is_broken

    # what a writer does

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _append(self, handle: Handle, step: Step) -> Append:
        append = Append(f"op-{self._number()}", self.random.randint(1, 2), handle.cursors, None, 0, step=step)
        if step == "start":
            return replace(append, run=append.operation, fence=self._number(), tenure=self._number())
        if step == "take-over":
            return replace(append, run=self.server.state.run, fence=self._number(), tenure=self._number())
        if step:
            return replace(append, run=handle.run, fence=handle.fence, tenure=handle.tenure)
        return append

    def _transmit(self, call: Call, *, retry: bool = False) -> None:
        number = self._number()
        stamp = number if self.rules.fresh_stamp else int(call.append.operation.removeprefix("op-"))
        self.requests.append((call, replace(call.append, stamp=stamp, retry=retry)))
        if call not in call.handle.waiting:
            call.handle.waiting.append(call)

    def _open(self, handle: Handle) -> None:
        log = self.server.state.log
        handle.known = frozenset(log[-1:])
        handle.cursors = frozenset(event.cursor for event in handle.known if self.rules.opened_cursor)

    def _learn(self, call: Call, reply: Reply) -> None:
        handle = call.handle
        if reply.outcome == "lost":
            self._open(handle)  # it was told; it looks at what is there, and goes on with the run if it may
        if reply.event is None:
            return
        handle.known |= {reply.event}
        given = reply.event.cursor
        if self.rules.every_cursor:
            moved = (handle.cursors - call.append.cursors) | {max(given, *call.append.cursors, START)}
        else:
            moved = frozenset({max(given, *handle.cursors, START)})
        if self.rules.moving_cursor:
            handle.cursors = moved
        if call.append.step in ("start", "take-over"):
            handle.run, handle.fence, handle.tenure = call.append.run, reply.fence, call.append.tenure

    # what must hold

    def _is_there(self, event: Event) -> bool:
        log = self.server.state.log
        return event.cursor.version <= len(log) and log[event.cursor.version - 1].uid == event.uid

    def _check(self, call: Call, append: Append, before: tuple[Event, ...], reply: Reply) -> None:
        self.outcomes.add(("duplicate " if reply.duplicate else "") + reply.outcome)
        log = self.server.state.log
        lost = not all(map(self._is_there, call.known))
        mine = [event for event in log if event.operation == append.operation]
        self._check_agreement()
        must(len({event.cursor.stamp for event in mine}) <= 1, "an operation was appended twice")
        must(len(mine) in (0, append.events), "an operation is not whole")
        match reply.outcome:
            case "lost":
                must(lost, "a writer before the loss was disturbed")
            case "done":
                must(reply.event == mine[-1], "an outcome names another event than the operation's last")
                if log != before:
                    must(not lost, "a writer beyond the loss appended and was not told")
                    self._check_place(call, append, before)
            case "unknown":
                newest = max((event.cursor.version for event in call.known if self._is_there(event)), default=0)
                since = {event.operation for event in log[newest:]}
                must(append.retry and len(since) >= WINDOW, "an outcome within the window was called unknown")
                must(append.expected is None or not mine, "an exact append was not recognised after the window")
            case "error":
                must(not mine, "an append that failed left something behind")
            case _:
                must(reply.outcome in REFUSALS, "there is no other outcome")
                must(not mine, "an append was refused that stands in the log")

    def _check_place(self, call: Call, append: Append, before: tuple[Event, ...]) -> None:
        if append.expected is not None:
            last = before[-1] if before else None
            must(last == call.expected, "an exact append does not follow the event it expects")
        if append.step in ("go-on", "close"):
            turn = next(event.tenure for event in reversed(before) if event.opens)
            must(turn == append.tenure, "a former holder appended after a take-over")

    def _check_agreement(self) -> None:
        state = self.server.state
        last = state.log[-1].cursor if state.log else START
        must(state.last == last, "the head and the log do not agree")
        whole = [
            event.cursor
            for event, after in zip(state.log, (*state.log, None)[1:], strict=True)
            if after is None or after.operation != event.operation
        ]
        must(list(state.feed) == whole, "the feed and the log do not agree")
        versions = [event.cursor.version for event in state.log]
        must(versions == list(range(1, len(versions) + 1)), "the log has a gap")
