"""The history from the view that a projector keeps: the rows and the log behind them, in one step; then the bodies.

Whatever the view cannot tell is told by folding the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson

from eventlog.codec import decode
from eventlog.conversation import Conversation
from eventlog.errors import InvalidInput, ServerUnfit
from eventlog.events import Event
from eventlog.identity import Cursor, LogId
from eventlog.messages import Message
from eventlog.store.port import Entry, LogStore
from eventlog.store.views import PAGE
from projections.assembly import view_messages
from projections.live import Live
from projections.reference import Reference
from projections.sending import sending
from projections.showing import show
from projections.standing import Standing
from projections.view import View
from projections.views.history import HISTORY


@dataclass(slots=True)
class Maintained:
    """A conversation's history as of ``cursor``: what stands, its rows, and their events."""

    standing: Standing
    rows: list[Reference]
    whole: bool
    """The rows are all there are, and not the newest ones only."""
    cursor: Cursor
    events: dict[int, Event]

    def keep(self, newest: int) -> None:
        """Let go of all rows but those at the end that hold so many events."""
        total = 0
        for index in range(len(self.rows) - 1, -1, -1):
            total += len(self.rows[index].versions)
            if total >= newest and index:
                del self.rows[:index]
                self.whole = False
                return


async def load(conversation: Conversation, last: int | None) -> View | None:
    """The service view as of now; None when no view is kept that can tell it."""
    newest = None if last is None else last + 8
    while True:
        found = await _maintained(conversation, newest)
        if found is None or (chain := found.standing.chain) is None:
            return None
        rows = found.rows if found.whole else _from_a_boundary(found.rows, found.events)
        messages, outputs_of = view_messages(rows, found.events, conversation.log.tag)
        pairs = {result: call for row in rows for result, call in row.pairs}
        view = show(
            found.standing,
            chain,
            found.cursor,
            found.events,
            messages,
            outputs_of,
            pairs,
            last=last,
            whole=found.whole,
        )
        if view is not None or newest is None:
            return view
        newest *= 4


async def for_call(conversation: Conversation, run: str, sends: Sequence[int], started: Cursor) -> list[Message] | None:
    """What a service call sends that continues nothing; None when no view is kept that can tell it."""
    found = await _maintained(conversation, None, started, sends)
    if found is None:
        return None
    open_run = found.standing.state.runs.get(run)
    units = open_run.units if open_run else ()
    return sending(found.rows, units, sends, found.events, conversation.log.tag)


async def _maintained(
    conversation: Conversation, newest: int | None, until: Cursor | None = None, also: Sequence[int] = ()
) -> Maintained | None:
    """The rows of the ``newest`` events (all when None) as of ``until`` (now when None), and their events.

    The events at ``also`` are read, too.
    """
    store, log = conversation.store, conversation.log
    try:
        live = Live.of(store)
    except InvalidInput:
        return None
    view = await live.find(HISTORY)
    if view is None:
        return None
    try:
        snapshot = await live.views.read(view, log, newest)
    except ServerUnfit:
        return None  # a user may be allowed to read the log, and no view
    if not snapshot.present:
        live.forget(HISTORY.name)
    if snapshot.kept is None or (until is not None and snapshot.kept.cursor.version > until.version):
        return None
    rows = [Reference.unpack(row) for row in orjson.loads(b"[%b]" % b",".join(snapshot.rows))]
    whole = len(rows) == snapshot.total
    found = Maintained(Standing.unpack(snapshot.kept.state), rows, whole, snapshot.kept.cursor, {})
    if not await _apply_behind(store, log, found, snapshot.behind, until):
        return None
    if newest is not None:
        found.keep(newest)
    wanted = {version for row in found.rows for version in row.versions}
    wanted.update(call.version for call in found.standing.state.calls.open)
    if until is not None:
        wanted.update(version for version in also if version <= until.version)
        for run in found.standing.state.runs.values():
            for unit in run.units:
                wanted.update(version for version in unit.sends if version <= until.version)
                wanted.update(item.version for item in unit.outputs)
    there = await _read(store, log, wanted.difference(found.events), found.cursor, found.events)
    return found if there and (until is None or found.cursor == until) else None


async def _apply_behind(
    store: LogStore, log: LogId, found: Maintained, behind: Sequence[Entry], until: Cursor | None
) -> bool:
    """Fold the log behind the view. False: only the whole log tells."""
    while True:
        cursor = found.cursor
        if not behind or (behind[0].version, behind[0].stamp) != (cursor.version, cursor.stamp):
            return False  # the log lost what was applied, or was deleted: folding it says so
        for version, entry in enumerate(behind[1:], cursor.version + 1):
            if until is not None and version > until.version:
                return True
            if entry.version != version:
                return False
            event = found.events[version] = decode(*entry)
            entered = found.standing.apply(event)
            if entered is None:
                return False
            found.rows += [row for row in entered if row.versions]
            found.cursor = log.cursor(version, entry.stamp)
        if len(behind) <= PAGE:
            return True
        behind = await store.read(log, found.cursor.version, None, PAGE + 1)


async def _read(store: LogStore, log: LogId, versions: Iterable[int], cursor: Cursor, events: dict[int, Event]) -> bool:
    """Read the events at these versions. False: they, or the event at the cursor, are not there any more."""
    wanted = sorted(versions)
    entries = await store.pick(log, wanted)
    edge = await store.read(log, cursor.version, cursor.version, 1)  # while that is there, so is what was read before
    if not edge or edge[0].stamp != cursor.stamp or len(entries) != len(wanted):
        return False
    for entry in entries:
        events[entry[0]] = decode(*entry)
    return True


def _from_a_boundary(rows: list[Reference], events: dict[int, Event]) -> list[Reference]:
    """Without the first rows that may form one message with a row that was not read."""
    operation = events[rows[0].inputs[0]].operation_id if rows and rows[0].is_loose else None
    for index, row in enumerate(rows):
        if not row.is_loose or events[row.inputs[0]].operation_id != operation:
            return rows[index:]
    return []
