"""A server that lost the end of logs, of feeds or of both while the views kept theirs: noticed, and folded anew."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
import redis

from eventlog import user
from eventlog.identity import LogId
from projections.partition import Told
from projections.projector import Projector
from projections.verifying import Verifying
from tests.projections.crashes.conftest import OPTIONS, Nursery, Processes, Scene, scene
from tests.projections.crashes.kinds import ALL, made

pytestmark = pytest.mark.anyio
PROJECTIONS = [made(kind) for kind in ALL]
AGAIN = pytest.mark.parametrize("again", [0, 1, 8], ids=["nothing again", "fewer again", "more again"])


async def lose_ends(here: Scene, nursery: Nursery, lost: list[LogId], *, feeds: bool) -> None:
    """The views come to the end of logs that then lose theirs."""
    await here.lives.write(8)
    snapshot = await here.raw.snapshot(lost, feeds=feeds)
    await here.lives.write(4)
    assert nursery.run(here.order(ALL, "catch_up")).signal == 0
    before = {log: len(await here.raw.events(log)) for log in lost}
    await here.raw.restore(snapshot)
    for log in lost:
        events = await here.raw.events(log)
        assert 0 < len(events) < before[log]
        here.lives.forget(log, events)


async def write_again(here: Scene, lost: list[LogId], again: int) -> None:
    for log in lost if again else ():
        await here.lives.write_to(log, again)
        chat = here.log.tenant(log.tenant).conversation(log.conversation)
        await chat.add(user("other than before"))


@AGAIN
async def test_logs_and_feeds_that_lost_their_ends_are_noticed_and_folded_anew(
    server: str, nursery: Nursery, tmp_path: Path, again: int
) -> None:
    async with scene(server, seed=30 + again, partitions=1) as here:
        lost = here.lives.logs[:2]
        await lose_ends(here, nursery, lost, feeds=True)
        await here.raw.loads(here.lives.logs)
        await write_again(here, lost, again)
        await here.raw.loads(here.lives.logs)
        steps = tmp_path / "steps"
        assert nursery.run(here.order(ALL, "catch_up", steps=str(steps))).signal == 0
        told = steps.read_text().splitlines()
        assert {line.split()[0] for line in told if line.endswith(" lost")} == set(ALL)
        await here.raw.all_equal(PROJECTIONS, here.lives.logs)


@AGAIN
async def test_logs_alone_that_lost_their_ends_are_noticed_with_the_next_append(
    server: str, nursery: Nursery, again: int
) -> None:
    async with scene(server, seed=40 + again) as here:
        lost = here.lives.logs[:2]
        await lose_ends(here, nursery, lost, feeds=False)
        await here.raw.loads(here.lives.logs)
        await write_again(here, lost, again)
        await here.raw.loads(here.lives.logs)
        assert nursery.run(here.order(ALL, "catch_up")).signal == 0
        if again:
            await here.raw.all_equal(PROJECTIONS, here.lives.logs)
            return
        for projection in PROJECTIONS:  # no append: only verification can find it
            found = Verifying(here.raw.live, projection, await here.raw.live.view(projection)).differences()
            assert {one.log async for one in found} >= set(lost)
        await here.raw.loads(here.lives.logs)


@AGAIN
async def test_a_projector_that_runs_while_ends_are_lost_brings_all_in_order_again(
    server: str, processes: Processes, nursery: Nursery, again: int
) -> None:
    async with scene(server, seed=50 + again, partitions=1) as here:
        lost = here.lives.logs[:3]
        running = processes.start(here.order(ALL, "run"), "running")
        await lose_ends(here, nursery, lost, feeds=True)
        with anyio.fail_after(30):
            while True:
                await here.raw.loads(here.lives.logs)
                if await here.have_passed(ALL):
                    break
        await write_again(here, lost, again)
        await here.raw.loads(here.lives.logs)
        await here.caught_up(ALL)
        await here.raw.all_equal(PROJECTIONS, here.lives.logs)
        assert running.poll() is None


@pytest.mark.parametrize("entries", [1, 4, 1000])
@AGAIN
async def test_a_feed_alone_that_lost_its_end_is_noticed_and_every_conversation_compared(
    server: str, nursery: Nursery, entries: int, again: int
) -> None:
    async with scene(server, seed=60 + again) as here:
        await here.lives.write(6)
        assert nursery.run(here.order(ALL, "catch_up")).signal == 0
        await here.lives.write(2)  # the views have yet to come to these, which the feeds then do not name
        for partition in range(here.raw.keys.partitions):
            await here.raw.cut_feed(partition, entries)
        await here.raw.loads(here.lives.logs)
        if again:
            await here.lives.write(again, among=4)
        assert nursery.run(here.order(ALL, "catch_up")).signal == 0
        await here.raw.loads(here.lives.logs)
        assert nursery.run(here.order(ALL, "rebuild")).signal == 0
        await here.raw.all_equal(PROJECTIONS, here.lives.logs)


async def test_conversations_that_began_at_the_same_number_of_a_feed_that_lost_its_end_are_all_scanned(
    server: str, nursery: Nursery
) -> None:
    counting = made("counting")
    async with scene(server, seed=7, partitions=1) as here:
        logs = [LogId("a", f"first {number}") for number in range(7)]
        for log in logs:
            await here.log.tenant("a").conversation(log.conversation).add(user("?"))
        await here.raw.cut_feed(0, 6)
        for number in range(6):
            logs.append(LogId("a", f"second {number}"))
            await here.log.tenant("a").conversation(logs[-1].conversation).add(user("?"))
        assert nursery.run(here.order(["counting"], "catch_up")).signal == 0
        await here.raw.equal(counting, await here.raw.live.view(counting), logs)


@pytest.mark.parametrize("work", ["catch_up", "rebuild"])
async def test_work_that_waits_for_a_feed_which_loses_its_end_meanwhile_comes_to_an_end(server: str, work: str) -> None:
    counting, cut = made("counting"), 0
    async with scene(server, seed=8, partitions=1) as here:
        chat = here.log.tenant("a").conversation("c0")
        for _ in range(4):
            await chat.add(user("?"))
        snapshot = await here.raw.snapshot([chat.log], feeds=True)
        for _ in range(4):
            await chat.add(user("lost soon"))

        def told(step: Told) -> None:
            nonlocal cut
            if step.step == "scanning" and not cut:
                cut += 1
                with redis.from_url(server) as client:
                    for key, dump in snapshot.items():
                        assert dump is not None or key.partition("}")[2].startswith(":old-ops")
                        client.delete(key)
                        if dump is not None:
                            client.restore(key, 0, dump)

        projector = Projector(here.log, [counting], told=told, **OPTIONS)
        with anyio.fail_after(15):
            await (projector.catch_up() if work == "catch_up" else projector.rebuild("counting"))
        assert cut
        await here.raw.equal(counting, await here.raw.live.view(counting), [chat.log])


async def test_a_projector_whose_last_writes_alone_were_lost_does_them_again_though_nothing_is_appended(
    server: str, processes: Processes
) -> None:
    """The end of the log was kept, and what came behind it in the file was not: the mark went back under its holder."""
    counting = made("counting")
    async with scene(server, seed=9, partitions=1) as here:
        await here.lives.write(4)
        processes.start(here.order(["counting"], "run"))
        await here.caught_up(["counting"])
        view = await here.raw.live.view(counting)
        before = await here.raw.keys_of(view)
        await here.lives.write(4)
        await here.caught_up(["counting"])
        await here.raw.restore({**dict.fromkeys(await here.raw.keys_of(view)), **before})
        await here.caught_up(["counting"], seconds=10)
        await here.raw.all_equal([counting], here.lives.logs)
