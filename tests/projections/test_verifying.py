"""Every fault that is planted is found and named, and nothing else is: beside writers, too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import pytest

from eventlog import EventLog
from eventlog.events import Draft
from eventlog.identity import LogId
from eventlog.store.memory import MemoryStore
from eventlog.store.port import Entry
from eventlog.store.redis.store import RedisStore
from eventlog.store.views import Contents, Filed, Found, Kept, ViewId
from projections.difference import Difference
from projections.folding import fold
from projections.projection import sortable
from projections.verifying import Verifying
from projections.views.history import HISTORY
from tests.projections.counting import COUNTING
from tests.projections.timeless import TimelessLoop
from tests.projections.world import World, logs_in, message

pytestmark = pytest.mark.anyio
VIEW = ViewId("counting", 1)
HERE = logs_in(0)
LOG = HERE[0]
Plant = Callable[[dict[LogId, Contents]], None]


@pytest.fixture(scope="module", params=[pytest.param(("asyncio", {"loop_factory": TimelessLoop}), id="timeless")])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return request.param


async def filled(world: World) -> World:
    for log in HERE[:3]:
        await world.append(log, Draft("run-started", {"mode": "per-run"}, "r"), message("one"))
        await world.append(log, message("two"), Draft("run-committed", {"outcome": "completed"}, "r"), message("three"))
    await world.projector(COUNTING, HISTORY).catch_up()
    return world


@pytest.fixture
async def world() -> World:
    return await filled(World.in_memory())


def kept(world: World) -> dict[LogId, Contents]:
    """What the view keeps in the partition, to be changed."""
    views: Any = world.live.views
    found: dict[LogId, Contents] = views._views[VIEW][0].contents
    return found


def change_a_row(found: dict[LogId, Contents]) -> None:
    found[LOG].rows[1] = b"[3,7]"


def drop_a_row(found: dict[LogId, Contents]) -> None:
    del found[LOG].rows[1]


def drop_the_last_row(found: dict[LogId, Contents]) -> None:
    del found[LOG].rows[-1]


def double_a_row(found: dict[LogId, Contents]) -> None:
    found[LOG].rows.append(found[LOG].rows[-1])


def change_the_state(found: dict[LogId, Contents]) -> None:
    contents = found[LOG]
    found[LOG] = contents._replace(kept=Kept(contents.kept.cursor, b'{"messages":4,"runs":{}}'))


def change_a_document(found: dict[LogId, Contents]) -> None:
    found[LOG].entries["run r"] = found[LOG].entries["run r"]._replace(document=b'{"since":1,"until":9}')


def move_an_entry(found: dict[LogId, Contents]) -> None:
    filed = found[LOG].entries["run r"]
    found[LOG].entries["run r"] = Filed(filed.document, {"runs": sortable(1), "done": sortable(5)})


def lose_an_entry(found: dict[LogId, Contents]) -> None:
    del found[LOG].entries["run r"]


def add_an_entry(found: dict[LogId, Contents]) -> None:
    found[LOG].entries["x"] = Filed(b"1", {"runs": "x"})


def change_a_sum(found: dict[LogId, Contents]) -> None:
    found[LOG].sums["events"] = 6


def add_a_sum(found: dict[LogId, Contents]) -> None:
    found[LOG].sums["x"] = 6


LINE = f'b{{"since":1}}[("done", "{sortable(4)}")]'
FOUND: list[tuple[Plant, int, str, str, str]] = [
    (change_a_row, 3, "row 1", "[3,7]", "[3,2]"),
    (drop_a_row, 3, "row 1", "[5,3]", "[3,2]"),
    (drop_the_last_row, 5, "row 2", "not there", "[5,3]"),
    (double_a_row, 0, "row 3", "[5,3]", "not there"),
    (change_the_state, 5, "the state", '{"messages":4,"runs":{}}', '{"messages":3,"runs":{}}'),
    (change_a_sum, 5, "sum 'events'", "6", "5"),
    (add_a_sum, 0, "sum 'x'", "6", "not there"),
    (lose_an_entry, 4, "entry 'run r'", "not there", ""),
    (change_a_document, 4, "entry 'run r'", "", ""),
    (move_an_entry, 4, "entry 'run r'", "", ""),
    (add_an_entry, 0, "entry 'x'", "1[('runs', 'x')]", "not there"),
]


@pytest.mark.parametrize(
    ("plant", "version", "where", "is_kept", "is_wanted"), FOUND, ids=lambda one: getattr(one, "__name__", "")
)
async def test_what_is_changed_in_a_conversation_is_found_and_named(
    world: World, plant: Plant, version: int, where: str, is_kept: str, is_wanted: str
) -> None:
    plant(kept(world))
    (found,) = await world.verify(COUNTING)
    assert (found.log, found.version, found.where) == (LOG, version, where)
    assert is_kept in ("", found.kept)
    assert is_wanted in ("", found.wanted)
    assert found.kept != found.wanted
    assert await world.verify(HISTORY) == []


async def test_a_difference_is_told_in_one_sentence(world: World) -> None:
    change_a_row(kept(world))
    (found,) = await world.verify(COUNTING)
    told = f"conversation {LOG.conversation!r} of 't', version 3: row 1 is [3,7], the log gives [3,2]"
    assert str(found) == told
    kept(world)[LOG].rows[1] = b"x" * 500
    (found,) = await world.verify(COUNTING)
    assert found.kept == "x" * 200 + "…"


async def test_a_conversation_that_is_missing_is_found(world: World) -> None:
    del kept(world)[LOG]
    assert await world.verify(COUNTING) == [Difference(LOG, 1, "how far it is", "nothing", "version 5")]


async def test_one_that_stands_too_far_back_is_found(world: World) -> None:
    events = await world.events(LOG)
    writing = fold(COUNTING, LOG, events[:2])
    assert writing.kept
    entries = {key: filed for key, filed in writing.entries.items() if filed}
    kept(world)[LOG] = Contents(writing.kept, writing.rows, entries, writing.sums)
    found = await world.verify(COUNTING)
    assert found == [Difference(LOG, 3, "how far it is", "version 2", "version 5")]


async def test_one_that_has_no_log_is_found(world: World) -> None:
    ghost = next(log for log in HERE[3:])
    kept(world)[ghost] = kept(world)[LOG]._replace(kept=Kept(ghost.cursor(2, 7), b"{}"))
    assert await world.verify(COUNTING) == [Difference(ghost, 2, "how far it is", "version 2", "no log")]


async def test_one_that_is_ahead_of_its_log_is_found(world: World) -> None:
    last = kept(world)[LOG].kept.cursor
    del world.store._logs[LOG.path].entries[3:]
    found = await world.verify(COUNTING)
    wanted = "version 3 and another event there"
    assert found == [Difference(LOG, 5, "the event applied last", str(last), wanted)]


async def test_one_whose_last_event_is_another_now_is_found(world: World) -> None:
    entries, last = world.store._logs[LOG.path].entries, kept(world)[LOG].kept.cursor
    entries[-1] = entries[-1]._replace(stamp=5)
    found = await world.verify(COUNTING)
    assert found == [Difference(LOG, 5, "the event applied last", str(last), "version 5 and another event there")]


async def test_a_hole_in_the_log_is_a_difference_and_the_others_are_compared(world: World) -> None:
    del world.store._logs[LOG.path].entries[2]
    change_a_row(found := kept(world))
    found[HERE[1]].rows.pop()
    differences = {one.log: one for one in await world.verify(COUNTING)}
    assert set(differences) == {LOG, HERE[1]}
    assert "version 3 of conversation" in differences[LOG].wanted


def with_lines(world: World, change: Callable[[list[Found]], list[Found]], index: str) -> None:
    """The index ``runs`` or another gives other lines than the entries do."""
    views: Any = world.live.views
    lines = views._lines

    def changed(view: ViewId, partition: int) -> list[Any]:
        found = lines(view, partition)
        if view != VIEW or partition != 0:
            return list(found)
        others = [one for one in found if one[1] != index]
        return others + [("t", index, one) for one in change(sorted(one[2] for one in found if one[1] == index))]

    views._lines = changed


async def test_a_line_that_is_missing_in_an_index_is_found(world: World) -> None:
    with_lines(world, lambda lines: lines[1:], "runs")
    (found,) = await world.verify(COUNTING)
    assert found == Difference(
        LOG, 5, "the line of entry 'run r' in index 'runs'", "not there", f"sorted by {sortable(1)!r}"
    )


async def test_a_line_too_much_in_an_index_is_found(world: World) -> None:
    extra = Found(f"zz\0{LOG.path}\0run%20q", LOG, "run q", None)
    with_lines(world, lambda lines: [*lines, extra], "done")
    (found,) = await world.verify(COUNTING)
    assert found == Difference(LOG, 5, "the line of entry 'run q' in index 'done'", "sorted by 'zz'", "none")


async def test_a_line_at_another_place_is_found(world: World) -> None:
    def moved(lines: list[Found]) -> list[Found]:
        return [*lines[1:], lines[0]._replace(member=f"zz\0{LOG.path}\0run%20r")]

    with_lines(world, moved, "runs")
    (found,) = await world.verify(COUNTING)
    assert (found.log, found.where) == (LOG, "the line of entry 'run r' in index 'runs'")


async def test_a_line_of_a_conversation_that_is_not_kept_is_found(world: World) -> None:
    ghost = HERE[5]
    extra = Found(f"zz\0{ghost.path}\0k", ghost, "k", None)
    with_lines(world, lambda lines: [*lines, extra], "runs")
    (found,) = await world.verify(COUNTING)
    assert found == Difference(ghost, 0, "the line of entry 'k' in index 'runs'", "sorted by 'zz'", "none")


async def test_a_line_in_the_index_of_another_tenant_is_found(world: World) -> None:
    views: Any = world.live.views
    lines = views._lines

    def changed(view: ViewId, partition: int) -> list[Any]:
        return [("u" if one[2].log == LOG and one[1] == "runs" else one[0], *one[1:]) for one in lines(view, partition)]

    views._lines = changed
    found = await world.verify(COUNTING)
    assert [one.log for one in found] == [LOG]


@pytest.mark.parametrize(
    ("totals", "told"),
    [
        ({"events": 14}, ("total 'events'", "14", "15")),
        ({"x": 1}, ("total 'x'", "1", "0")),
        ({"message-added": 0}, ("total 'message-added'", "0", "9")),
    ],
)
async def test_a_total_that_is_off_is_found(world: World, totals: dict[str, int], told: tuple[str, str, str]) -> None:
    views: Any = world.live.views
    whole = views.totals

    async def off(view: ViewId, partition: int, tenant: str) -> dict[str, int]:
        found = await whole(view, partition, tenant)
        both = {**found, **totals} if view == VIEW and partition == 0 else found
        return {name: amount for name, amount in both.items() if amount}

    views.totals = off
    assert await world.verify(COUNTING) == [Difference(LogId("t", ""), 0, *told)]


async def test_every_conversation_that_differs_is_told_once(world: World) -> None:
    for log in HERE[:3]:
        kept(world)[log].rows.pop()
    assert [one.log for one in await world.verify(COUNTING)] == HERE[:3]


async def test_it_counts_what_it_compared_and_what_the_view_has_yet_to_come_to(world: World) -> None:
    told: list[int] = []
    await world.say(LOG, 2)
    verifying = Verifying(world.live, COUNTING, VIEW, told=lambda one: told.append(one.conversations))
    assert [one async for one in verifying.differences()] == []
    assert (verifying.conversations, verifying.events, verifying.behind, verifying.waiting) == (3, 15, 1, 0)
    assert told == [1, 2, 3]
    nothing = Verifying(world.live, COUNTING, VIEW, sample=0.0)
    kept(world)[LOG].rows.pop()
    assert [one async for one in nothing.differences()] == []
    assert nothing.conversations == 0


class Yielding(MemoryStore):
    """Others come between any two calls."""

    async def read(self, *given: Any, **named: Any) -> list[Entry]:
        await asyncio.sleep(0.001)
        return await super().read(*given, **named)

    async def head(self, log: LogId) -> Any:
        await asyncio.sleep(0.001)
        return await super().head(log)


async def beside_writers(world: World, *, rounds: int, deletes: bool) -> None:
    """Verify while it is written, kept and deleted."""
    task = asyncio.create_task(world.projector(COUNTING, batch=3, poll=0.05).run())
    done = asyncio.Event()
    logs = [*HERE, *logs_in(1)]

    async def write() -> None:
        for number in range(rounds):
            run = f"r{number}"
            for log in logs[number % 7 :: 7]:
                await world.append(log, Draft("run-started", {"mode": "per-run"}, run), message())
                await asyncio.sleep(0.003)
                await world.append(log, Draft("run-committed", {"outcome": "completed"}, run))
                if number % 5 == 3:
                    await world.append(log, Draft("history-rewound", {"to": 2}))
            if deletes and number % 10 == 9:
                await world.chat(logs.pop()).delete()
        done.set()

    writing = asyncio.create_task(write())
    verified = 0
    while not done.is_set():
        assert await world.verify(COUNTING) == []
        verified += 1
        await asyncio.sleep(0.001)
    assert verified >= 2
    await writing
    task.cancel()
    await asyncio.wait([task])
    await world.projector(COUNTING).catch_up()
    assert await world.verify(COUNTING) == []


@pytest.mark.parametrize("deletes", [False, True])
async def test_beside_running_writers_there_is_no_false_alarm(deletes: bool) -> None:
    world = World.in_memory(store=Yielding)
    await world.projector(COUNTING).catch_up()
    await beside_writers(world, rounds=60, deletes=deletes)


@pytest.fixture
async def on_a_server(server: str) -> AsyncIterator[World]:
    store = await RedisStore.connect(server, namespace=f"t{uuid4().hex[:12]}", partitions=2, deadline=10)
    yield World(EventLog(store))
    await store.close()


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True, scope="module")
async def test_on_a_server_there_is_none_either(on_a_server: World) -> None:
    await filled(on_a_server)
    assert await on_a_server.verify(COUNTING) == []
    assert await on_a_server.verify(HISTORY) == []
    await beside_writers(on_a_server, rounds=30, deletes=True)
