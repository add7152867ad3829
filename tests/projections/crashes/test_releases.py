"""Two releases with two versions of a projection side by side: each keeps its own generation, neither fights."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import anyio
import pytest

from eventlog.store.views import ViewId
from projections.registry import Record
from tests.projections.crashes.conftest import Processes, Scene, scene
from tests.projections.crashes.kinds import made

pytestmark = pytest.mark.anyio
OLD, NEW = "marked:1:old", "marked:2:new"


async def record(here: Scene) -> Record:
    return Record.unpack(await here.raw.live.views.record("marked"))


async def test_a_new_release_builds_once_and_the_old_one_keeps_its_own(
    server: str, processes: Processes, tmp_path: Path
) -> None:
    async with scene(server, seed=90) as here:
        await here.lives.write(8)
        logs = here.lives.logs

        def start(kind: str, name: str) -> subprocess.Popen[bytes]:
            return processes.start(here.order([kind], "run", steps=str(tmp_path / f"{name}.steps")), name)

        old = start(OLD, "old")
        await here.caught_up([OLD])
        new = [start(NEW, f"new{number}") for number in range(2)]
        await here.lives.write(3)
        await here.caught_up([OLD, NEW])
        await here.raw.all_equal([made(OLD), made(NEW)], logs)

        late = start(OLD, "late")
        with anyio.fail_after(30):
            while len((await here.raw.live.readers.roll(ViewId("marked", 1).group)).members) < 2:
                await anyio.sleep(0.02)
        for _ in range(3):
            await here.lives.write(2, among=4)
            await here.lives.delete_one()
            await here.caught_up([OLD, NEW])
            await here.raw.all_equal([made(OLD), made(NEW)], logs)
        for process in (old, new[0]):
            process.send_signal(signal.SIGKILL)
            process.wait()
            await here.lives.write(2, among=4)
            await here.caught_up([OLD, NEW])
            await here.raw.all_equal([made(OLD), made(NEW)], logs)
        again = start(OLD, "again")
        start(NEW, "new again")
        await here.lives.write(2, among=4)
        await here.caught_up([OLD, NEW])
        await here.raw.all_equal([made(OLD), made(NEW)], logs)
        assert [process.poll() for process in (late, again, new[1])] == [None] * 3

        found = await record(here)
        assert [(one.number, one.version, one.state) for one in found.generations] == [
            (1, 1, "ready"),
            (2, 2, "ready"),
        ], "each version was built once"
        assert (found.live, found.before, found.last) == (2, 1, 2)
        for path in tmp_path.glob("*.steps"):
            generation = "2" if path.name.startswith("new") else "1"
            assert {line.split()[1] for line in path.read_text().splitlines()} == {generation}, path.name


async def test_an_old_release_that_is_started_where_only_a_newer_one_was_builds_nothing(
    server: str, processes: Processes, tmp_path: Path
) -> None:
    async with scene(server, seed=91) as here:
        await here.lives.write(3)
        processes.start(here.order([NEW], "run"), "new")
        await here.caught_up([NEW])
        late = processes.start(here.order([OLD], "run"), "late")
        with anyio.fail_after(30):
            while "this release has version 1" not in (tmp_path / "late.err").read_text():
                await anyio.sleep(0.02)
        await here.lives.write(3)
        await here.caught_up([NEW])
        assert late.poll() is None
        assert [one.version for one in (await record(here)).generations] == [2]
        await here.raw.all_equal([made(NEW)], here.lives.logs)
