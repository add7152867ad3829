"""The readers and views that belong to a store of logs."""

from __future__ import annotations

from collections.abc import Callable

from eventlog.errors import InvalidInput
from eventlog.reader import Store
from eventlog.store.memory import MemoryStore
from eventlog.store.memory_readers import MemoryReaders
from eventlog.store.memory_views import MemoryViews
from eventlog.store.port import LogStore
from eventlog.store.readers import ReaderStore
from eventlog.store.redis.readers import RedisReaders
from eventlog.store.redis.store import RedisStore
from eventlog.store.redis.views import RedisViews
from eventlog.store.views import ViewStore


def readers_beside(store: LogStore) -> tuple[Store, Callable[[], ReaderStore]]:
    """The store with its feeds, and a way to open its readers. Raises ``InvalidInput`` for a store that has none."""
    if isinstance(store, RedisStore):
        return store, lambda: RedisReaders(store)
    if isinstance(store, MemoryStore):
        readers = MemoryReaders.of(store)
        return store, lambda: readers
    raise InvalidInput(f"a {type(store).__name__} has no readers: groups need a store with feeds and readers")


def views_beside(store: LogStore) -> ViewStore:
    """The views beside the store. Raises ``InvalidInput`` for a store that has none."""
    if isinstance(store, RedisStore):
        return RedisViews(store)
    if isinstance(store, MemoryStore):
        return MemoryViews.of(store)
    raise InvalidInput(f"a {type(store).__name__} has no views: projections need a store with feeds, readers and views")
