"""The conversations of a partition, page by page, in the order of their first appends."""

from __future__ import annotations

from eventlog.identity import LogId
from eventlog.store.port import LogStore


async def next_conversations(store: LogStore, partition: int, after: int, count: int) -> list[tuple[int, LogId]]:
    """About ``count`` conversations behind the number ``after``, with their numbers.

    Numbers are given again when a feed has lost its end: those of one number come together, or the
    rest of them would be passed over.
    """
    while True:
        page = await store.conversations_after(partition, after, count)
        if len(page) < count:
            return page
        whole = [one for one in page if one[0] < page[-1][0]]
        if whole:
            return whole
        count *= 2
