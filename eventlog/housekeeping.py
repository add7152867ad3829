"""Keeping the log in order: feeds are trimmed, idle conversations expire, readers that stand still are named.

Trimming and readers. A feed may be trimmed only below the mark of every registered reader, and a
group that is being created must lose nothing. Who trims (1) looks at all readers, (2) announces in
the partition how far it means to trim, (3) looks at all readers again, and (4) trims no further
than the lowest mark it then found. Who reads from the beginning (a) is registered first and (b)
then looks at what is announced; when anything is, it reads the logs themselves and joins the feed
at its end (``eventlog.joining``). If the reader was registered before (3), it is seen there, and
without a mark it holds everything. If it was registered after (3), its look comes after the
announcement, so it does not rely on the feed's beginning. Either way no entry that it relies on
goes. A look at the readers after the announcement is what this rests on; the first one only spares
announcements that would come to nothing.

A group that starts ``now`` notes its place before it is registered. Between the two, an entry
behind that place can be trimmed only when ``keep`` others were appended meanwhile; then the group
is told ``Truncated``, and nothing is skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple

from eventlog.errors import ConversationBusy, GroupGone, InvalidInput
from eventlog.reader import Store
from eventlog.store.readers import ReaderStore

_PAGE = 100


class StillReader(NamedTuple):
    """A reader that stands still and so holds its feed: it has not passed everything, and nobody is at it."""

    name: str
    """The group's, or, with ``@`` in front, a projection's."""
    partition: int
    lag: int
    """Feed entries that it has not passed."""
    since_ms: int
    """When its last holder's lease ended; 0 when it was given up in order, or never held."""


async def trim_feeds(store: Store, readers: ReaderStore, keep: int = 10_000) -> dict[int, int]:
    """Trim every feed as far as no reader needs it, but for the newest ``keep`` entries.

    Returns how many entries went, by partition, where any did. Logs are not touched. Who follows
    a tenant is no registered reader: one that was away for longer than ``keep`` entries is told
    ``Truncated``.
    """
    if keep < 1:
        raise InvalidInput(f"keep={keep}: keep at least the newest entry of each feed")
    ends = await store.feed_ends()
    removed: dict[int, int] = {}
    wanted = await _below(readers, {partition: end - keep + 1 for partition, end in enumerate(ends)})
    for partition, below in list(wanted.items()):
        if below <= (await store.feed_base(partition)).seq + 1:
            del wanted[partition]
        else:
            await store.announce_trim(partition, below)
    for partition, below in (await _below(readers, wanted)).items():
        count = await store.trim_feed(partition, below)
        if count:
            removed[partition] = count
    return removed


async def _below(readers: ReaderStore, wanted: dict[int, int]) -> dict[int, int]:
    """For each partition the number below which no reader needs anything, at most what is wanted.

    The entry at a mark stays: a reader compares its stamp.
    """
    if not wanted:
        return {}
    below = dict(wanted)
    for group in await readers.groups():
        try:
            settings = await readers.settings(group)
        except GroupGone:
            continue  # removed since: its marks hold nothing any more
        places = await asyncio.gather(*(readers.place(group, partition) for partition in wanted))
        for partition, place in zip(wanted, places, strict=True):
            mark = place.stands(settings.mark(partition))
            below[partition] = min(below[partition], mark.seq)
    return below


async def expire(store: Store, idle: timedelta, partitions: Iterable[int] | None = None) -> int:
    """Delete the conversations to which nothing was appended for ``idle`` by the store's clock; how many.

    One with an open run is not idle, whatever its lease says: recover it first. ``partitions``
    chooses some; all when None. It can be ended and begun again at any time.
    """
    if idle <= timedelta(0):
        raise InvalidInput(f"idle={idle}: give how long a conversation may rest, more than nothing")
    before = await store.now_ms() - int(idle.total_seconds() * 1000)
    count = 0
    for partition in range(store.partitions) if partitions is None else partitions:
        after = 0
        while page := await store.conversations_after(partition, after, _PAGE):
            heads = await asyncio.gather(*(store.head(log) for _, log in page))
            for (_, log), head in zip(page, heads, strict=True):
                if head.updated_ms < before and not head.runs and not head.deleted:
                    # What was appended since its head was read is looked at again in the same step.
                    try:
                        count += await store.delete(log, idle_since_ms=before, why="expired")
                    except ConversationBusy:  # a store may say it so
                        continue
            after = page[-1][0]
    return count


async def standing_still(
    store: Store, readers: ReaderStore, *, patience: timedelta = timedelta(0)
) -> list[StillReader]:
    """The readers that hold a feed though nobody is at them, the furthest behind first.

    A group with living members is not among them: its members take every partition up. ``patience``
    leaves out those whose lease ended less long ago.
    """
    ends, now = await store.feed_ends(), await store.now_ms()
    latest = now - int(patience.total_seconds() * 1000)
    found: list[StillReader] = []
    for group in await readers.groups():
        try:
            settings, roll = await readers.settings(group), await readers.roll(group)
        except GroupGone:
            continue
        if roll.members:
            continue
        places = await asyncio.gather(*(readers.place(group, partition) for partition in range(len(ends))))
        for partition, place in enumerate(places):
            mark = place.stands(settings.mark(partition))
            if ends[partition] > mark.seq and place.lease_ms <= latest:
                found.append(StillReader(group, partition, ends[partition] - mark.seq, place.lease_ms))
    return sorted(found, key=lambda one: (-one.lag, one.name, one.partition))
