"""The conversations of one partition on their way to the handler: each in order, one event at a time.

A lane hands over and says what came of it to the window and the backlog; it writes nothing itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from eventlog.backlog import Backlog, path_of
from eventlog.codec import decode
from eventlog.delivery import ACK, Delivery, Holder, Outcome, Verdict
from eventlog.errors import ConversationDeleted
from eventlog.events import Event
from eventlog.identity import LogId
from eventlog.parking import Failure, Parked
from eventlog.reader import Reader, Store, missing, read_checked
from eventlog.store.readers import NEVER, Waiting
from eventlog.window import Cell, Window
from eventlog.work import Work

_log = logging.getLogger("eventlog.groups")


def say_let_go(group: str, log: LogId, events: int, parked: int) -> None:
    """Tell the operator what a group will not deliver, because its conversation was deleted."""
    if events or parked:
        told = "group %r: conversation %r of %r was deleted: %d undelivered and %d parked events were let go"
        _log.warning(told, group, log.conversation, log.tenant, events, parked)


@dataclass(slots=True)
class Lane:
    """A conversation of which something is fetched, or being replayed. At most one task works on it."""

    log: LogId
    items: deque[tuple[Event, Cell]] = field(default_factory=deque)
    """Fetched from the feed, not yet handed over or still in hand."""
    task: asyncio.Task[None] | None = None
    delivery: Delivery | None = None
    """What its handler has in hand."""


class Lanes:
    """The lanes of one held partition."""

    def __init__(
        self,
        store: Store,
        reader: Reader,
        work: Work,
        backlog: Backlog,
        window: Window,
        written: Callable[[], Awaitable[None]],
        changed: Callable[[], None],
    ) -> None:
        self.stopping = False
        self.error: Exception | None = None
        """What went wrong in a lane: nothing more is handed over."""
        self._store = store
        self._reader = reader
        self._work = work
        self._backlog = backlog
        self._window = window
        self._written = written
        """Returns when what is about to be handed over has been written."""
        self._changed = changed
        self._cancelling = False
        self._lanes: dict[str, Lane] = {}
        self._holder = Holder(work.group, reader.hold.partition, reader.hold.fence, reader.generation)

    def put(self, log: LogId, loaded: list[tuple[Event, Cell]]) -> None:
        """Events that were fetched, to be handed over next; or to wait, when their conversation does by now."""
        if log.path in self._backlog.waiting:
            for _, cell in loaded:
                self._window.settle(cell)
            self._backlog.extend(log.path, loaded[-1][0].version, loaded[-1][0].stamp)
        else:
            self._lane(log).items.extend(loaded)

    def drop(self, log: LogId) -> int:
        """Hand no more over of what was fetched of this conversation, but for what is in hand; how many events."""
        lane, count = self._lanes.get(log.path), 0
        if lane is None:
            return 0
        while len(lane.items) > (lane.task is not None):
            self._window.settle(lane.items.pop()[1])
            count += 1
        if lane.task is None:
            del self._lanes[log.path]
        return count

    def start(self) -> None:
        """Set to work on all that may be handed over now."""
        if self._backlog.waiting:
            for key in self._backlog.due(self._reader.now_ms()):
                lane = self._lane(LogId.of_path(path_of(key)))
                if lane.task is None:
                    self._begin(lane, key)
        for lane in self._lanes.values():
            if lane.items and lane.task is None:
                self._begin(lane, None)

    def works_on(self, log: LogId) -> bool:
        """Whether something of this conversation is being handed over."""
        lane = self._lanes.get(log.path)
        return lane is not None and lane.task is not None

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """What is at work."""
        return [lane.task for lane in self._lanes.values() if lane.task is not None]

    def stop(self, *, cancel: bool) -> None:
        """Hand nothing more over; leave the handlers be, or cancel them."""
        self.stopping = True
        self._cancelling = self._cancelling or cancel
        for lane in self._lanes.values():
            if lane.task is not None and (cancel or lane.delivery is None):
                lane.task.cancel()

    def fence(self) -> None:
        """What is in hand is another's: its answers count no more."""
        for lane in self._lanes.values():
            if lane.delivery is not None:
                lane.delivery.fenced = True

    def set_rest_waiting(self) -> None:
        """What was fetched and not handed over waits for the next holder."""
        for lane in self._lanes.values():
            if lane.items:
                self._hold(lane, 0)

    def _lane(self, log: LogId) -> Lane:
        lane = self._lanes.get(log.path)
        if lane is None:
            lane = self._lanes[log.path] = Lane(log)
        return lane

    def _hold(self, lane: Lane, count: int) -> None:
        """What is in the lane waits from its first event on, which was delivered ``count`` times."""
        last = lane.items[-1][0]
        self._backlog.set(lane.log.path, Waiting(lane.items[0][0].version, last.version, last.stamp, count))
        for _, cell in lane.items:
            self._window.settle(cell)
        lane.items.clear()

    def _may_go_on(self) -> bool:
        return not self.stopping and not self._work.paused and self._reader.held and self.error is None

    def _begin(self, lane: Lane, key: str | None) -> None:
        def ended(_: object) -> None:  # also of a task that was cancelled before it began
            lane.task = None
            if not lane.items:
                self._lanes.pop(lane.log.path, None)
            self._changed()

        lane.task = asyncio.create_task(self._in_lane(lane, key))
        lane.task.add_done_callback(ended)

    async def _in_lane(self, lane: Lane, key: str | None) -> None:
        """Work on a lane while a slot is free for it."""
        try:
            async with self._work.slots:
                await (self._drain(lane) if key is None else self._redeliver(lane, key))
        except asyncio.CancelledError:
            pass  # it was stopped with nothing in hand
        except Exception as error:
            self.error = self.error or error

    async def _drain(self, lane: Lane) -> None:
        """Hand over what was fetched, in order, until something is to be delivered again."""
        while lane.items and self._may_go_on():
            event, cell = lane.items[0]
            await self._work.alone.enter(alone=False)
            try:
                outcome = await self._call(lane, event, 1)
            finally:
                self._work.alone.leave(alone=False)
            if outcome is ACK:
                lane.items.popleft()
                self._window.settle(cell)
            else:
                self._hold(lane, 1)
                self._answer(lane.log.path, lane.log, event, 1, outcome)
                return

    async def _redeliver(self, lane: Lane, key: str) -> None:
        """Hand over what waits, from the log; each event that is in doubt is named before, and goes alone."""
        backlog, events, checked = self._backlog, list[Event](), False
        while key in backlog.waiting and self._may_go_on():
            waiting = backlog.waiting[key]
            if waiting.due_ms == NEVER or waiting.due_ms > self._reader.now_ms():
                return
            if not events or events[0].version != waiting.version:  # a failed one is read again
                try:
                    events = await self._read_waiting(lane.log, waiting, check=not checked)
                except ConversationDeleted:
                    say_let_go(self._work.group, lane.log, backlog.let_go(lane.log.path), 0)
                    return
                checked = True
            event = events.pop(0)
            if waiting.version <= waiting.doubtful:
                await self._redeliver_named(lane, key, event)
                continue
            count = backlog.hand_over(key)
            try:
                if not waiting.busy:
                    await self._written()
                await self._work.alone.enter(alone=False)
            except asyncio.CancelledError:
                backlog.take_back(key)
                raise
            try:
                outcome = await self._call(lane, event, count)
            finally:
                self._work.alone.leave(alone=False)
            self._answer(key, lane.log, event, count, outcome)
        if key in backlog.waiting and backlog.waiting[key].busy:
            backlog.rest(key)

    async def _redeliver_named(self, lane: Lane, key: str, event: Event) -> None:
        """Hand over one event that is in doubt: nothing else runs from before it is named until its end is written.

        So when the process dies, it is this one that is found in hand, and no other.
        """
        await self._work.alone.enter(alone=True)
        try:
            count = self._backlog.hand_over(key)
            try:
                await self._written()
            except asyncio.CancelledError:
                self._backlog.take_back(key)
                raise
            outcome = await self._call(lane, event, count)
            self._answer(key, lane.log, event, count, outcome)
            if key in self._backlog.waiting:
                self._backlog.rest(key, self._backlog.waiting[key].due_ms)
            await self._written()
        finally:
            self._work.alone.leave(alone=True)

    def _answer(self, key: str, log: LogId, event: Event, count: int, outcome: Outcome) -> None:
        """What becomes of the next event of what waits."""
        backlog, verdict = self._backlog, outcome.verdict
        if verdict is Verdict.ACK:
            backlog.pass_one(key)
        elif verdict is Verdict.CANCELLED:
            backlog.rest(key)
        elif verdict is Verdict.PARK or count >= self._work.max_deliveries:
            _log.warning(
                "group %r parks version %d of %s: %s", self._work.group, event.version, log, outcome.failure.error
            )
            backlog.rest(key)
            backlog.park_waiting(key, self._parked(log, event, count, outcome.failure))
        else:
            backlog.rest(key, self._reader.now_ms() + self._work.pause_ms(count, outcome.after))

    async def _read_waiting(self, log: LogId, waiting: Waiting, *, check: bool) -> list[Event]:
        if check and waiting.stamp:
            found = await self._store.read(log, waiting.through, waiting.through, 1)
            if not found or found[0].stamp != waiting.stamp:
                raise await missing(self._store, log, waiting.through)
        last = min(waiting.through, waiting.version + self._work.batch - 1)
        return [decode(*entry) for entry in await read_checked(self._store, log, waiting.version, last)]

    async def _call(self, lane: Lane, event: Event, count: int) -> Outcome:
        """Hand one event over and learn what is said of it."""
        delivery = lane.delivery = Delivery(event, lane.log, count, self._holder)
        try:
            await self._work.handler(delivery)
        except asyncio.CancelledError as error:
            if delivery.outcome is None:
                ours = self._cancelling
                delivery.outcome = Outcome(Verdict.CANCELLED) if ours else Outcome(Verdict.RETRY, Failure.of(error))
        except Exception as error:
            if delivery.outcome is None:
                delivery.outcome = Outcome(Verdict.RETRY, Failure.of(error))
            else:
                _log.exception("group %r: a handler failed after it had answered", self._work.group)
        finally:
            lane.delivery = None
        return delivery.outcome or ACK

    def _parked(self, log: LogId, event: Event, count: int, failure: Failure) -> Parked:
        now = self._reader.now_ms()
        return Parked(*log, event.version, event.stamp, count, failure.error, failure.trace, now, self._work.waits)
