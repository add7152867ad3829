"""Reading one log in pages, and saying every gap.

Reading begins at the cursor, included, and checks that its event is still there; from then on each
version must follow the one before. What was trimmed is ``Truncated``, what the server lost is
``LogLost``, and of a conversation that was deleted ``ConversationDeleted``: a gap is never skipped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from eventlog.codec import decode
from eventlog.errors import Gap, LogLost, Truncated
from eventlog.events import Event
from eventlog.identity import Cursor, LogId
from eventlog.store import refusals
from eventlog.store.port import Entry, Head, LogStore

PAGE = 500
"""Events a page: pages of 500 to 1,000 were measured to be fastest."""


async def pages(
    store: LogStore, log: LogId, *, after: Cursor | None = None, first: int = 1, until: int | None = None
) -> AsyncIterator[list[Event]]:
    """The events after the cursor, or from version ``first`` on, up to ``until``, in pages of up to 500."""
    edge = after if after is not None and after.version > 0 else None
    version = max(edge.version if edge else 0, first - 1)
    while edge is not None or until is None or version < until:
        entries = await _behind(store, log, edge, version, until)
        if not entries:
            await _check_end(store, log, version, until)
            return
        await _check_dense(store, log, entries, version + 1, 1)
        yield [decode(*entry) for entry in entries]
        version = entries[-1].version
        if len(entries) < PAGE:
            await _check_end(store, log, version, until)
            return
        edge = log.cursor(version, entries[-1].stamp)


async def pages_back(
    store: LogStore, log: LogId, *, after: Cursor | None = None, until: int | None = None
) -> AsyncIterator[list[Event]]:
    """The same events, the newest first. The cursor's event is looked at before the first and after the last."""
    start = after if after is not None and after.version > 0 else None
    first = start.version + 1 if start else 1
    if start is not None:
        await _behind(store, log, start, start.version, start.version)
    edge: Cursor | None = None
    last = until
    while last is None or last >= first:
        count = PAGE if edge is None else PAGE + 1
        entries = await store.read(log, first, last if edge is None else edge.version, count, reverse=True)
        if edge is not None:
            entries = await _without_edge(store, log, edge, entries)
        if edge is None or not entries:
            await _check_end(store, log, entries[0].version if entries else first - 1, last)
        if not entries:
            break
        await _check_dense(store, log, entries, entries[0].version if last is None else last, -1)
        yield [decode(*entry) for entry in entries]
        edge = log.cursor(entries[-1].version, entries[-1].stamp)
        last = edge.version - 1
    if start is not None:
        await _behind(store, log, start, start.version, start.version)


async def _behind(store: LogStore, log: LogId, edge: Cursor | None, version: int, until: int | None) -> list[Entry]:
    """A page of what follows ``version``; the event at ``edge``, to which reading had come, is read with it.

    In one command: between two, the server could lose events and use their versions again.
    """
    if edge is None:
        return await store.read(log, version + 1, until, PAGE)
    last = None if until is None else max(until, edge.version)
    return await _without_edge(store, log, edge, await store.read(log, edge.version, last, PAGE + 1))


async def _without_edge(store: LogStore, log: LogId, edge: Cursor, entries: list[Entry]) -> list[Entry]:
    """The entries behind the first, which must be the event at ``edge``, unless that is the last trimmed one."""
    if entries and (entries[0].version, entries[0].stamp) == (edge.version, edge.stamp):
        return entries[1:]
    head = await _head(store, log)
    if edge != head.base:
        raise _gap(log, edge.version, head.last, head.base)
    return entries


async def _check_dense(store: LogStore, log: LogId, entries: list[Entry], expected: int, step: int) -> None:
    if entries[0].version == expected and abs(entries[-1].version - expected) == len(entries) - 1:
        return
    head = await _head(store, log)
    for entry in entries:
        if entry.version != expected:
            raise _gap(log, expected, head.last, head.base)
        expected += step


async def _head(store: LogStore, log: LogId) -> Head:
    """The head, of a conversation that was not deleted."""
    head = await store.head(log)
    if head.deleted:
        raise refusals.gone(log)
    return head


async def _check_end(store: LogStore, log: LogId, version: int, until: int | None) -> None:
    """Nothing was found after ``version``: there must have been nothing."""
    head = await _head(store, log)
    wanted = head.last.version if until is None else min(until, head.last.version)
    if wanted > version and not await store.read(log, version + 1, wanted, 1):  # or it was appended just now
        raise _gap(log, version + 1, head.last, head.base)


def _gap(log: LogId, version: int, last: Cursor, base: Cursor) -> Gap:
    where = f"version {version} of conversation {log.conversation!r} of {log.tenant!r}"
    if version <= base.version:
        return Truncated(f"{where} was trimmed, up to version {base.version}: read after {base}", base)
    return LogLost(
        f"{where} is gone: the server lost acknowledged events; what is left ends at version {last.version}: "
        "read it from the start and check what is missing",
        last,
    )
