"""A live view in memory, written at once from the logs as they are."""

from __future__ import annotations

from typing import Any

from eventlog.identity import LogId, new_fence
from eventlog.reading import pages
from eventlog.store.memory import MemoryStore
from eventlog.store.memory_readers import MemoryReaders
from eventlog.store.memory_views import MemoryViews
from eventlog.store.readers import Advance, Hold, Mark, Settings
from eventlog.store.views import ViewId, Writing
from projections.folding import fold
from projections.live import Live
from projections.projection import Projection
from projections.registry import Record


async def build(store: MemoryStore, projection: Projection[Any]) -> ViewId:
    """A new generation that has passed everything, and is live."""
    views, readers = MemoryViews.of(store), MemoryReaders.of(store)
    stored = await views.record(projection.name)
    record = Record.unpack(stored).begin(projection.version, 0)
    view = ViewId(projection.name, record.last)
    await readers.create(view.group, Settings())
    await views.create(view)
    for partition in range(store.partitions):
        await catch_up(store, projection, view, partition)
    await views.replace(projection.name, stored, record.flip(record.last).pack())
    Live.of(store).forget(projection.name)
    return view


async def catch_up(store: MemoryStore, projection: Projection[Any], view: ViewId, partition: int) -> None:
    """Write all of a partition's conversations anew, with the mark at the end of its feed."""
    views, readers = MemoryViews.of(store), MemoryReaders.of(store)
    hold = Hold(view.group, partition, new_fence())
    place = await readers.acquire(hold, "test", 60_000)
    assert place is not None
    feed = store.feeds[partition]
    mark = Mark(len(feed), feed[-1].stamp) if feed else place.mark
    writings = [await _writing(store, projection, log) for log in await store.conversations(partition, 0, 10_000)]
    await views.commit(view, hold, Advance(place.mark, mark), writings, 60_000)
    await readers.release(hold)


async def _writing(store: MemoryStore, projection: Projection[Any], log: LogId) -> Writing:
    return fold(projection, log, [event async for page in pages(store, log) for event in page])
