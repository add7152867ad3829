"""A projector killed by SIGKILL at any of its steps or at any moment: the next one goes on, and every view is whole."""

from __future__ import annotations

import os
import signal
from random import Random

import pytest

from eventlog import user
from eventlog.store.views import ViewId
from tests.projections.crashes.conftest import PARTITIONS, Nursery, Scene, scene
from tests.projections.crashes.kinds import ALL, made

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]
KILLS = int(os.environ.get("EVENTLOG_PROJECTION_KILLS", "100"))
"""At least so many at random moments, on each server."""
PROJECTIONS = [made(kind) for kind in ALL]


async def restarted(here: Scene, nursery: Nursery) -> None:
    """Look at what was left, let another process catch up, and look again."""
    await here.raw.all_prefixes(PROJECTIONS, here.lives.logs)
    await here.raw.loads(here.lives.logs)
    assert nursery.run(here.order(ALL, "catch_up")).signal == 0
    await here.raw.all_equal(PROJECTIONS, here.lives.logs)


@pytest.mark.parametrize("step", ["acquired", "scanning", "scanned", "committed", "flipped", "fetched", "applied"])
async def test_views_that_are_killed_at_a_step_of_their_building_are_built(
    server: str, nursery: Nursery, step: str
) -> None:
    for times in (1, 2, 3):
        async with scene(server, seed=times) as here:
            await here.lives.write(12)
            if step in ("fetched", "applied"):
                assert nursery.run(here.order(ALL, "catch_up")).signal == 0
                await here.lives.write(2, among=4)
                await here.lives.delete_one()
            assert nursery.run(here.order(ALL, "catch_up", dies_at=(step, times))).signal == signal.SIGKILL
            await restarted(here, nursery)


@pytest.mark.parametrize("step", ["acquired", "lost", "scanning", "scanned", "committed"])
async def test_views_that_are_killed_while_they_are_compared_with_their_logs_are_whole_again(
    server: str, nursery: Nursery, step: str
) -> None:
    for times in (1, 2, 3):
        async with scene(server, seed=10 + times) as here:
            await here.lives.write(6)
            assert nursery.run(here.order(ALL, "catch_up")).signal == 0
            for partition in range(here.raw.keys.partitions):
                await here.raw.cut_feed(partition, 2)
            await here.lives.write(2, among=2)
            await here.lives.delete_one()
            assert nursery.run(here.order(ALL, "catch_up", dies_at=(step, times))).signal == signal.SIGKILL
            assert nursery.run(here.order(ALL, "catch_up")).signal == 0
            await here.raw.all_equal(PROJECTIONS, here.lives.logs)


async def test_a_projection_that_is_killed_as_it_says_that_it_cannot_apply_an_event_says_so_again(
    server: str, nursery: Nursery
) -> None:
    async with scene(server, seed=5) as here:
        chat = here.log.tenant("a").conversation("c0")
        await here.lives.write(6)
        await chat.add(user("stumble"))
        await chat.add(user("and go on"))
        log, mended = chat.log, made("counting")
        view = ViewId("counting", 1)
        for on_error in ("stop", "wait"):
            order = here.order(["stumbling"], "run", dies_at=("failed", 1), options={"on_error": on_error})
            assert nursery.run(order).signal == signal.SIGKILL
            await here.raw.prefixes(mended, view, here.lives.logs)
            contents = await here.raw.live.views.contents(view, log)
            assert contents is not None
            assert contents.kept.cursor.version == (await chat.head()).last.version - 2
        assert nursery.run(here.order(["counting"], "catch_up")).signal == 0
        await here.raw.all_equal([mended], here.lives.logs)


async def test_projectors_killed_at_random_moments_leave_beginnings_and_the_last_one_ends_them(
    server: str, nursery: Nursery
) -> None:
    chance = Random(20_261_201)
    for life in range(-(-KILLS // 12)):
        async with scene(server, seed=100 + life, conversations=6) as here:
            await here.lives.write(8)
            usual = 0.6
            killed = 0
            while killed < 12:
                await here.lives.write(3, among=4)
                if killed == 7:
                    await here.lives.delete_one()
                if killed == 9:
                    await here.raw.cut_feed(chance.randrange(PARTITIONS), 1)
                order = here.order(ALL, "catch_up", killed_after=chance.uniform(0.0, usual), options={"lease": 0.15})
                ended = nursery.run(order)
                killed += ended.signal == signal.SIGKILL
                if not ended.signal:
                    usual = max(0.05, ended.seconds * 0.8)
                if killed < 9:
                    await here.raw.all_prefixes(PROJECTIONS, here.lives.logs)
                await here.raw.loads(here.lives.logs)
            assert nursery.run(here.order(ALL, "catch_up")).signal == 0
            await here.raw.all_equal(PROJECTIONS, here.lives.logs)
