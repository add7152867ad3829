"""Where the beginning of a feed was trimmed: what a reader from the beginning reads from the logs instead.

The reader joins the feed at its newest entry, and of each conversation that is then there it reads
the log, from version 1 to the last version that the feed had named up to that entry. What the feed
names behind it comes by the feed. So every event comes once, and each conversation's in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from eventlog.errors import ConversationDeleted
from eventlog.identity import Cursor, LogId
from eventlog.reader import Reader, Store, ends_of, read_checked
from eventlog.store.port import FeedEntry
from eventlog.store.readers import BEGINNING, Mark

_PAGE = 100
_ENTRIES = 1_000


async def join(store: Store, reader: Reader, concerns: Callable[[LogId], bool]) -> tuple[Mark, dict[LogId, Cursor]]:
    """Where to join the reader's feed, and each conversation's last event that the feed had named by then.

    Only conversations that it ``concerns``, and that were not deleted. The reader must hold the feed:
    registered, and without a mark. Raises ``LogLost`` or ``Truncated``.
    """
    partition = reader.hold.partition
    mark = (await ends_of(store))[partition]
    if mark == BEGINNING:
        return mark, {}
    # First the heads, then what the feed names behind the mark: of a conversation that it does not name there,
    # nothing was appended between the mark and its head.
    passed = {log: last for log, last in (await _heads(store, partition, mark.seq)).items() if concerns(log)}
    for log, entry in (await _behind(reader, mark)).items():
        if log not in passed:
            continue
        last = None if entry.is_deletion else await _last_before(store, entry)
        if last is None:
            del passed[log]
        else:
            passed[log] = last
    return mark, passed


async def _heads(store: Store, partition: int, through: int) -> dict[LogId, Cursor]:
    """The last events of the conversations whose first feed entry has at most this number."""
    found: dict[LogId, Cursor] = {}
    after = 0
    while page := await store.conversations_after(partition, after, _PAGE):
        logs = [log for seq, log in page if seq <= through]
        heads = await asyncio.gather(*(store.head(log) for log in logs))
        found |= {log: head.last for log, head in zip(logs, heads, strict=True) if not head.deleted}
        after = page[-1][0]
        if after >= through:
            break
    return found


async def _behind(reader: Reader, mark: Mark) -> dict[LogId, FeedEntry]:
    """For each conversation the first entry behind the mark."""
    first: dict[LogId, FeedEntry] = {}
    while entries := await reader.fetch(mark, _ENTRIES):
        for entry in entries:
            first.setdefault(entry.log, entry)
        mark = Mark(entries[-1].seq, entries[-1].stamp)
        if len(entries) < _ENTRIES:
            break
    return first


async def _last_before(store: Store, entry: FeedEntry) -> Cursor | None:
    """The event right before this append; None when the conversation was deleted since."""
    try:
        [last] = await read_checked(store, entry.log, entry.first - 1, entry.first - 1)
    except ConversationDeleted:
        return None
    return entry.log.cursor(last.version, last.stamp)
