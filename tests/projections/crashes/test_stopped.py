"""A projection that cannot apply an event stops right before it, says so, skips nothing, and goes on when mended."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import anyio
import pytest

from eventlog import Conversation
from eventlog.errors import ProjectionStopped
from eventlog.events import Event
from eventlog.identity import LogId
from eventlog.store.views import ViewId
from projections.index import how_far
from projections.projector import Projector
from projections.registry import Record
from tests.projections.counting import Counting, Failing
from tests.projections.crashes.conftest import Nursery, Scene, scene
from tests.projections.crashes.kinds import made
from tests.projections.world import append, message

pytestmark = pytest.mark.anyio
AT = 5_000
OPTIONS = {"lease": 2.0, "poll": 0.05}
VIEW = ViewId("counting", 1)


async def fill(chat: Conversation, count: int) -> None:
    """So many messages."""
    while count:
        size = min(count, 500)
        await append(chat.store, chat.log, [message() for _ in range(size)])
        count -= size


def fails(event: Event) -> bool:
    return event.version == AT


async def version(here: Scene, log: LogId, view: ViewId = VIEW) -> int:
    contents = await here.raw.live.views.contents(view, log)
    return 0 if contents is None else contents.kept.cursor.version


async def lag(here: Scene) -> int:
    return (await how_far(here.raw.live.store, here.raw.live.readers, VIEW)).lag


async def is_live(here: Scene, names: Iterable[str]) -> bool:
    return all([Record.unpack(await here.raw.live.views.record(name)).live for name in names])


@pytest.mark.parametrize("when", ["built", "followed"])
async def test_a_projection_stops_right_before_the_event_it_cannot_apply_and_the_others_go_on(
    server: str, nursery: Nursery, caplog: pytest.LogCaptureFixture, when: str
) -> None:
    caplog.set_level(logging.ERROR)
    async with scene(server, seed=1, partitions=1) as here:
        chat, other = (here.log.tenant("a").conversation(name) for name in ("c0", "c2"))
        await fill(other, 3)
        if when == "followed":
            assert nursery.run(here.order(["counting", "directory"], "catch_up", small=False)).signal == 0
        await fill(chat, AT + 20)
        projector = Projector(here.log, [Failing(fails), made("directory")], **OPTIONS)
        with pytest.raises(ProjectionStopped) as told, anyio.fail_after(60):
            await projector.catch_up()
        assert str(told.value) == (
            "projection 'counting' cannot apply conversation 'c0' of 'a', version 5000 (message-added): ValueError: "
            "no such thing as message-added; it stands before that event and nothing was skipped: mend it and run it "
            "again, or let it set such conversations waiting"
        )
        assert "projection 'counting' cannot apply conversation 'c0'" in caplog.text
        assert await version(here, chat.log) == AT - 1
        await here.raw.all_equal([made("directory")], [chat.log, other.log])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Projector(here.log, [Failing(fails), made("directory")], **OPTIONS).run)
            with anyio.fail_after(20):  # each time it begins, the mark comes nearer to the event
                while caplog.text.count("cannot apply") < 2:
                    await anyio.sleep(0.01)
            before = await lag(here)
            for more in (1, 2, 3):
                await fill(chat, 1)
                await fill(other, 1)
                last = (await other.head()).last.version
                with anyio.fail_after(20):
                    while await version(here, other.log, ViewId("directory", 1)) < last:
                        await anyio.sleep(0.01)
                if when == "followed":
                    assert await lag(here) == before + 2 * more
            assert await version(here, chat.log) == AT - 1, "it stands where it stood"
            tasks.cancel_scope.cancel()
        await here.raw.prefixes(Counting(), VIEW, [chat.log, other.log])
        assert await is_live(here, ["counting"]) is (when == "followed")

        await Projector(here.log, [Counting(), made("directory")], **OPTIONS).catch_up()
        await here.raw.all_equal([Counting(), made("directory")], [chat.log, other.log])
        assert (await here.raw.live.record("counting")).last == 1, "it is the same generation"
        counts = await here.raw.live.readers.counts(VIEW.group, 0)
        assert (counts.waiting, counts.parked) == (0, 0)


async def test_only_the_conversation_with_such_an_event_waits_until_it_is_mended(server: str) -> None:
    async with scene(server, seed=2, partitions=1) as here:
        chat, other = (here.log.tenant("a").conversation(name) for name in ("c0", "c2"))
        await fill(chat, AT + 20)
        await fill(other, 3)
        with anyio.fail_after(60):
            await Projector(here.log, [Failing(fails)], on_error="wait", **OPTIONS).catch_up()
        assert await version(here, chat.log) == AT - 1
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Projector(here.log, [Failing(fails)], on_error="wait", **OPTIONS).run)
            await fill(chat, 5)
            await fill(other, 5)
            with anyio.fail_after(20):
                while await version(here, other.log) < 8 or await lag(here):
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        assert await version(here, chat.log) == AT - 1
        counts = await here.raw.live.readers.counts(VIEW.group, 0)
        assert (counts.waiting, counts.parked) == (1, 1)
        await here.raw.prefixes(Counting(), VIEW, [chat.log, other.log])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Projector(here.log, [Counting()], on_error="wait", **OPTIONS).run)
            with anyio.fail_after(20):
                while await version(here, chat.log) < AT + 25:
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        await here.raw.all_equal([Counting()], [chat.log, other.log])
        counts = await here.raw.live.readers.counts(VIEW.group, 0)
        assert (counts.waiting, counts.parked) == (0, 0)


async def test_catching_up_tries_conversations_that_wait_again(server: str) -> None:
    async with scene(server, seed=3, partitions=1) as here:
        chat = here.log.tenant("a").conversation("c0")
        await fill(chat, 5)
        stumbling = Failing(lambda event: event.version == 3)
        with anyio.fail_after(20):
            await Projector(here.log, [stumbling], on_error="wait", **OPTIONS).catch_up()
        assert await version(here, chat.log) == 2
        with anyio.fail_after(20):
            await Projector(here.log, [Counting()], on_error="wait", **OPTIONS).catch_up()
        await here.raw.all_equal([Counting()], [chat.log])
