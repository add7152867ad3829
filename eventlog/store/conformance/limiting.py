"""Limits: at the edge an operation is taken, one beyond it is refused and nothing is written."""

from __future__ import annotations

from eventlog.codec import encode
from eventlog.errors import LimitExceeded
from eventlog.events import Draft
from eventlog.store.conformance.suite import LIMITS, LOG, Suite, notes, refused, request
from eventlog.store.port import LogStore

_EMPTY = len(encode(notes(""), "op-1", "2030-01-02T03:04:05.678901Z").documents[0])


def sized(*sizes: int) -> list[Draft]:
    """Events of operation ``op-1`` whose documents have so many bytes."""
    return notes(*("x" * (size - _EMPTY) for size in sizes))


class Limiting(Suite):
    async def _at_the_edge(self, store: LogStore, fits: list[Draft], beyond: list[Draft], said: str) -> None:
        before = await self.known(store, LOG)
        error = await refused(LimitExceeded, store, request(beyond, "op-1"))
        assert said in str(error)
        assert await self.known(store, LOG) == before
        assert not (await store.append(request(fits, "op-1"))).duplicate
        assert len(await store.read(LOG, 1, None, 1_000)) == len(fits)

    async def test_events_of_an_operation(self, store: LogStore) -> None:
        fits, beyond = notes(*range(LIMITS.events)), notes(*range(LIMITS.events + 1))
        await self._at_the_edge(store, fits, beyond, "65 events in one operation; at most 64")

    async def test_bytes_of_an_event(self, store: LogStore) -> None:
        edge = LIMITS.event_bytes
        await self._at_the_edge(
            store, sized(100, edge), sized(100, edge + 1), "events[1] has 4,097 bytes; at most 4,096"
        )

    async def test_bytes_of_an_operation(self, store: LogStore) -> None:
        edge = LIMITS.event_bytes
        fits = sized(edge, edge, edge, edge - 100, 100)
        beyond = sized(edge, edge, edge, edge - 100, 101)
        await self._at_the_edge(store, fits, beyond, "16,385 bytes in one operation; at most 16,384")
