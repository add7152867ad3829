"""Two processes that both think that they hold a partition: the one that stood still changes nothing."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import anyio
import pytest

from eventlog import user
from eventlog.identity import LogId
from eventlog.store.views import ViewId
from tests.projections.crashes.conftest import LEASE, Processes, scene
from tests.projections.crashes.kinds import made

pytestmark = pytest.mark.anyio
STEPS = ("fetched", "applied", "committed")


async def steps_reach(file: Path, ending: str) -> None:
    """Wait until the last step that was written there is this one."""
    with anyio.fail_after(30):
        while not file.exists() or not file.read_text().endswith(f"{ending}\n"):
            await anyio.sleep(0.01)


def stopped(process: subprocess.Popen[bytes]) -> bool:
    stat = Path(f"/proc/{process.pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize("step", STEPS)
async def test_a_projector_that_stood_still_past_its_lease_changes_nothing(
    server: str, processes: Processes, tmp_path: Path, step: str
) -> None:
    """It stops itself at the step, so that it is in the middle of its work when it goes on."""
    counting = made("counting")
    async with scene(server, seed=3, partitions=1) as here:
        chat, log = here.log.tenant("a").conversation("c0"), LogId("a", "c0")
        await chat.add(user("before"))
        steps = tmp_path / "still"
        still = processes.start(
            here.order(["counting"], "run", stops_at=(step, 1 if step != "committed" else 3), steps=str(steps)), "still"
        )
        await steps_reach(steps, "flipped")
        assert not stopped(still)
        await chat.add(user("while it stands"))
        with anyio.fail_after(30):
            while not stopped(still):
                await anyio.sleep(0.01)
        await chat.add(user("for the other"))
        other = processes.start(here.order(["counting"], "run"), "other")
        view, last = ViewId("counting", 1), (await chat.head()).last
        with anyio.fail_after(30):
            while (contents := await here.raw.live.views.contents(view, log)) is None or contents.kept.cursor != last:
                await anyio.sleep(0.02)
        place = await here.raw.live.readers.place(view.group, 0)
        assert f":{other.pid}/" in place.holder
        before = await here.raw.view_dump(view)
        still.send_signal(signal.SIGCONT)
        with anyio.fail_after(30):  # it is heard again as a member: what it had in hand, it has tried to write
            while len((await here.raw.live.readers.roll(view.group)).members) < 2:
                await anyio.sleep(0.02)
        await anyio.sleep(2 * LEASE)  # nothing tells that it wrote nothing but that time passes
        assert await here.raw.view_dump(view) == before
        assert f":{other.pid}/" in (await here.raw.live.readers.place(view.group, 0)).holder
        assert still.poll() is None, "it goes on as a member"
        other.send_signal(signal.SIGKILL)
        other.wait()
        await chat.add(user("for the one that stood still"))
        last = (await chat.head()).last
        with anyio.fail_after(30):
            while (contents := await here.raw.live.views.contents(view, log)) is None or contents.kept.cursor != last:
                await anyio.sleep(0.02)
        await here.raw.all_equal([counting], here.lives.logs)


async def test_projectors_that_are_stopped_and_continued_under_writers_leave_every_view_whole(
    server: str, processes: Processes
) -> None:
    kinds = ["history", "directory", "counting"]
    async with scene(server, seed=4) as here:
        await here.lives.write(6)
        both = [processes.start(here.order(kinds, "run"), name) for name in ("one", "two")]
        for turn in range(6):
            await here.lives.write(3, among=4)
            chosen = both[turn % 2]
            chosen.send_signal(signal.SIGSTOP)
            await here.lives.write(3, among=4)
            await anyio.sleep(1.5 * LEASE)  # past its lease
            await here.lives.write(3, among=4)
            chosen.send_signal(signal.SIGCONT)
            await here.raw.all_prefixes(map(made, kinds), here.lives.logs)
        assert [process.poll() for process in both] == [None, None]
        await here.caught_up(kinds)
        await here.raw.all_equal(map(made, kinds), here.lives.logs)
