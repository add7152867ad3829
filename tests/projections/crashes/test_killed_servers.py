"""The server killed under load, and its file cut: views are at or behind the logs, never ahead, and catch up."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import anyio
import pytest

from eventlog.server import aof
from eventlog.server.binary import find
from eventlog.server.mending import mend
from projections.projector import Projector
from tests.loss.server import Server
from tests.projections.crashes.conftest import OPTIONS, Nursery, Processes, Scene, scene
from tests.projections.crashes.kinds import ALL, made

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]
KILLS = int(os.environ.get("EVENTLOG_PROJECTION_SERVER_KILLS", "20"))
CUTS = int(os.environ.get("EVENTLOG_PROJECTION_CUTS", "20"))
PROJECTIONS = [made(kind) for kind in ALL]


@asynccontextmanager
async def writing(here: Scene) -> AsyncIterator[None]:
    """Write all the time, whatever becomes of the server."""

    over = False

    async def write() -> None:
        while not over:
            await here.lives.write(2, among=3)
            await asyncio.sleep(0.005)

    task = asyncio.create_task(write())
    try:
        yield
    finally:
        over = True
        await task


@asynccontextmanager
async def projecting(here: Scene) -> AsyncIterator[asyncio.Task[None]]:
    """A projector in this process."""
    task = asyncio.create_task(Projector(here.log, PROJECTIONS, **OPTIONS).run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_views_are_never_ahead_of_the_logs_of_a_server_that_is_killed_under_load(
    executable: str, processes: Processes, tmp_path: Path
) -> None:
    chance, steps = Random(11), tmp_path / "steps"
    async with Server(executable, fsync="always") as server, scene(server.url, seed=70) as here:
        await here.lives.write(4)
        process = processes.start(here.order(ALL, "run", pause=0.002, steps=str(steps)), "beside")
        with anyio.fail_after(30):  # a server that is away when it starts is an error; only later it is waited for
            while not steps.exists():
                await anyio.sleep(0.01)
        async with projecting(here) as task:
            for _ in range(KILLS):
                async with writing(here):
                    await asyncio.sleep(chance.uniform(0.05, 0.4))
                    server.kill()
                    await start(server)
                await here.raw.all_prefixes(PROJECTIONS, here.lives.logs)
                await here.raw.loads(here.lives.logs)
                assert process.poll() is None, (processes.home / "beside.err").read_text()[-3000:]
                assert not task.done(), task.exception()
            await here.caught_up(ALL)
            await here.raw.all_equal(PROJECTIONS, here.lives.logs)
        assert sum([len(await here.raw.events(log)) for log in here.lives.logs]) > 20 * KILLS


async def cut(server: Server, executable: str, least: int, chance: Random) -> None:
    """Kill the server, cut its file at a random place behind ``least``, and start it as the embedded one is started.

    Redis 7.0 by itself would keep the beginning of a torn transaction in the file, and do it at the start after that.
    """
    server.kill()
    file = file_of(server)
    size = file.stat().st_size
    os.truncate(file, chance.randint(max(least, size * 9 // 10), size))
    mend(server.files, find(executable))
    await start(server)


async def start(server: Server) -> None:
    """Start it, and wait until it has read its file."""
    await server.start()
    async with server.client() as client:
        with anyio.fail_after(30):
            while (await client.info("persistence"))["loading"]:
                await anyio.sleep(0.01)


def file_of(server: Server) -> Path:
    folder = server.files / aof.FOLDER
    name = aof.last_incremental((folder / aof.MANIFEST).read_text())
    assert name is not None
    return folder / name


async def remember(here: Scene) -> None:
    """Writers go on from what the server still has."""
    for log in here.lives.logs:
        here.lives.forget(log, await here.raw.events(log))


async def test_views_are_never_ahead_of_the_logs_of_a_file_that_was_cut_anywhere(
    executable: str, nursery: Nursery
) -> None:
    chance = Random(12)
    async with Server(executable, fsync="always") as server, scene(server.url, seed=71) as here:
        await here.lives.write(6)
        least = file_of(server).stat().st_size
        for number in range(CUTS):
            await here.lives.write(3, among=4)
            order = here.order(ALL, "catch_up", killed_after=chance.uniform(0.05, 0.6), options={"lease": 0.15})
            nursery.run(order)
            await here.lives.write(1, among=2)
            await cut(server, executable, least, chance)
            await here.raw.all_prefixes(PROJECTIONS, here.lives.logs)
            await here.raw.loads(here.lives.logs)
            await remember(here)
            if number % 4 == 3:
                await here.lives.write(2, among=3)
                assert nursery.run(here.order(ALL, "catch_up")).signal == 0
                await here.raw.all_equal(PROJECTIONS, here.lives.logs)
        assert nursery.run(here.order(ALL, "catch_up")).signal == 0
        await here.raw.all_equal(PROJECTIONS, here.lives.logs)


async def test_a_projector_that_lives_through_cuts_of_the_file_keeps_its_views_whole(executable: str) -> None:
    """What it knew of its place, and what it had written, is gone in part when it goes on."""
    chance = Random(13)
    async with Server(executable, fsync="always") as server, scene(server.url, seed=72) as here:
        await here.lives.write(6)
        async with projecting(here) as task:
            await here.caught_up(ALL)
            least = file_of(server).stat().st_size
            for _ in range(max(5, CUTS // 2)):
                async with writing(here):
                    await asyncio.sleep(chance.uniform(0.05, 0.3))
                await cut(server, executable, least, chance)
                await here.raw.all_prefixes(PROJECTIONS, here.lives.logs)
                await here.raw.loads(here.lives.logs)
                await remember(here)
                await here.lives.write(2, among=3)
                assert not task.done(), task.exception()
                await here.caught_up(ALL)
                await here.raw.all_equal(PROJECTIONS, here.lives.logs)
