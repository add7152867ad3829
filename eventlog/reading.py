"""Reading one log in pages, and saying every gap.

Reading begins at the cursor, included, and checks that its event is still there; from then on each
version must follow the one before. What was trimmed is ``Truncated``, what the server lost is
``LogLost``: a gap is never skipped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from eventlog.codec import decode
from eventlog.errors import Gap, LogLost, Truncated
from eventlog.events import Event
from eventlog.identity import Cursor, LogId
from eventlog.store.port import Entry, LogStore

PAGE = 500
"""Events a page: pages of 500 to 1,000 were measured to be fastest."""


async def pages(
    store: LogStore, log: LogId, *, after: Cursor | None = None, first: int = 1, until: int | None = None
) -> AsyncIterator[list[Event]]:
    """The events after the cursor, or from version ``first`` on, up to ``until``, in pages of up to 500."""
    last = after or log.cursor(0, 0)
    if last.version > 0:
        found = await store.read(log, last.version, last.version, 1)
        if not found or found[0].stamp != last.stamp:
            head = await store.head(log)
            if last not in (head.last, head.base):
                raise _gap(log, last.version, head.last, head.base)
    version = max(last.version, first - 1)
    while until is None or version < until:
        entries = await store.read(log, version + 1, until, PAGE)
        if not entries:
            await _check_end(store, log, version, until)
            return
        await _check_dense(store, log, entries, version + 1, 1)
        yield [decode(*entry) for entry in entries]
        version = entries[-1].version
        if len(entries) < PAGE:
            return


async def pages_back(
    store: LogStore, log: LogId, *, after: Cursor | None = None, until: int | None = None
) -> AsyncIterator[list[Event]]:
    """The same events, the newest first."""
    first = (after.version if after else 0) + 1
    last = until
    while last is None or last >= first:
        entries = await store.read(log, first, last, PAGE, reverse=True)
        if not entries:
            await _check_end(store, log, first - 1, last)
            return
        await _check_dense(store, log, entries, entries[0].version if last is None else last, -1)
        yield [decode(*entry) for entry in entries]
        last = entries[-1].version - 1


async def _check_dense(store: LogStore, log: LogId, entries: list[Entry], expected: int, step: int) -> None:
    if entries[0].version == expected and abs(entries[-1].version - expected) == len(entries) - 1:
        return
    head = await store.head(log)
    for entry in entries:
        if entry.version != expected:
            raise _gap(log, expected, head.last, head.base)
        expected += step


async def _check_end(store: LogStore, log: LogId, version: int, until: int | None) -> None:
    """Nothing was found after ``version``: there must have been nothing."""
    head = await store.head(log)
    wanted = head.last.version if until is None else min(until, head.last.version)
    if wanted > version:
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
