"""Memory is bounded: however long a log is and however many there are, a few pages are held."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from eventlog.identity import LogId
from eventlog.store.memory import MemoryStore
from eventlog.store.port import Entry
from eventlog.store.views import PAGE, ViewId, Writing
from projections import syncing
from projections.partition import _SCANNED, _SIDE_BY_SIDE
from projections.views.history import HISTORY
from tests.projections.counting import COUNTING
from tests.projections.timeless import BACKEND
from tests.projections.world import World, logs_in, message

pytestmark = pytest.mark.anyio
HERE = logs_in(0)


@pytest.fixture(scope="module")
def anyio_backend() -> Any:
    return BACKEND


class Counted(Entry):
    """An entry that is counted while somebody holds it."""

    held: ClassVar[int] = 0
    most: ClassVar[int] = 0

    def __new__(cls, *fields: Any) -> Counted:
        Counted.held += 1
        Counted.most = max(Counted.most, Counted.held)
        return super().__new__(cls, *fields)

    def __del__(self) -> None:
        Counted.held -= 1


class Lending(MemoryStore):
    """Gives copies of its entries that are counted."""

    async def read(self, *given: Any, **named: Any) -> list[Entry]:
        await asyncio.sleep(0)
        return [Counted(*entry) for entry in await super().read(*given, **named)]


@pytest.fixture
async def world() -> World:
    world = World.in_memory(store=Lending)
    await world.projector(COUNTING, HISTORY).catch_up()
    Counted.held = Counted.most = 0
    return world


async def test_a_conversation_of_20_000_events_is_folded_in_a_few_pages(world: World) -> None:
    for _ in range(20):
        await world.append(HERE[0], *(message() for _ in range(1_000)))
    for projection in (COUNTING, HISTORY):
        await world.projector(projection).catch_up()
        assert await world.version(ViewId(projection.name, 1), HERE[0]) == 20_000
        assert 0 < Counted.most <= 3 * PAGE
    await world.projector(HISTORY).rebuild("history")
    assert await world.version(ViewId("history", 2), HERE[0]) == 20_000
    assert Counted.most <= 3 * PAGE


async def test_what_is_written_at_a_time_of_one_conversation_is_bounded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(20):
        await world.append(HERE[0], *(message() for _ in range(1_000)))
    written: list[Writing] = []
    commit = world.live.views.commit

    async def counted(view: Any, hold: Any, step: Any, writings: Any, lease_ms: int, **named: Any) -> Any:
        written.extend(writings)
        return await commit(view, hold, step, writings, lease_ms, **named)

    monkeypatch.setattr(world.live.views, "commit", counted)
    await world.projector(COUNTING).catch_up()
    assert sum(len(one.rows) for one in written) == 20_000
    assert max(len(one.rows) for one in written) <= syncing._PIECE_EVENTS + PAGE
    assert [one.fresh for one in written] == [True] + [False] * (len(written) - 1)


async def test_2_000_conversations_are_built_in_a_few_pages(world: World) -> None:
    for number in range(2_000):
        await world.append(LogId("t", f"c{number}"), *(message() for _ in range(3)))
    task = asyncio.create_task(world.projector(COUNTING).rebuild("counting"))
    await task
    assert Counted.most <= 2 * _SIDE_BY_SIDE * PAGE
    assert Counted.most <= 4 * 3 * _SCANNED
    assert await world.verify(COUNTING) == []


async def test_2_000_conversations_are_followed_in_a_few_pages(world: World) -> None:
    for number in range(2_000):
        await world.append(LogId("t", f"c{number}"), *(message() for _ in range(3)))
    await world.projector(COUNTING, batch=100).catch_up()
    assert Counted.most <= 4 * 100
    assert await world.verify(COUNTING) == []
