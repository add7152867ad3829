"""How views stand, and what an operator does with them, from a program."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from eventlog import EventLog, user
from eventlog.errors import GroupGone, InvalidInput, ProjectionStopped, ViewMissing
from eventlog.store.views import ViewId
from projections import status
from projections.live import Live
from projections.projector import Projector
from projections.registry import Record
from projections.views.built_in import BUILT_IN, named
from projections.views.directory import DIRECTORY
from projections.views.history import HISTORY
from projections.views.usage import USAGE
from tests.groups.running import until
from tests.projections_command.own import Lengths

pytestmark = pytest.mark.anyio


async def say(log: EventLog, conversation: str, *texts: str) -> None:
    await log.tenant("blue").conversation(conversation).add(*map(user, texts))


@asynccontextmanager
async def running(log: EventLog, *projections: Any, **options: Any) -> AsyncIterator[asyncio.Task[None]]:
    """A projector while the block lasts."""
    task = asyncio.create_task(Projector(log, projections, lease=0.6, poll=0.05, **options).run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


def test_the_built_in_projections_are_found_by_name() -> None:
    assert [one.name for one in BUILT_IN] == ["history", "directory", "runs", "open_calls", "usage"]
    assert named("usage") is USAGE
    with pytest.raises(InvalidInput) as refused:
        named("usages")
    assert str(refused.value) == (
        "there is no projection 'usages'; there are 'history', 'directory', 'runs', 'open_calls', 'usage'"
    )


async def test_a_view_is_told_with_its_generations(log: EventLog) -> None:
    live = Live.of(log.store)
    assert await status.statuses(live) == []
    await say(log, "a", "one")
    projector = Projector(log, [HISTORY, DIRECTORY])
    await projector.catch_up()
    await projector.rebuild("history")
    await say(log, "a", "two")
    directory, history = await status.statuses(live)
    assert (directory.name, history.name) == ("directory", "history")
    assert [(one.generation.number, one.role, one.is_scanned) for one in history.generations] == [
        (1, "before", True),
        (2, "live", True),
    ]
    assert history.live is history.generations[1]
    assert history.live.lag == 1
    assert [part.lag for part in history.live.partitions if part.lag] == [1]
    assert history.live.members == ()
    assert await status.conversations(live.store) == 1


async def test_who_keeps_a_view_is_told(log: EventLog) -> None:
    live = Live.of(log.store)
    async with running(log, DIRECTORY):

        async def held() -> bool:
            found = await status.statuses(live)
            return bool(found) and all(one.holder for one in found[0].generations[0].partitions)

        await until(held)
        await until(held)
        [generation] = (await status.status(live, "directory")).generations
        assert len(generation.members) in (0, 1)
        assert generation.partitions[0].lease_ms > 0
        assert str(generation.members[0].id) in generation.partitions[0].holder


async def test_a_generation_that_was_only_just_begun_has_no_lag(log: EventLog) -> None:
    live = Live.of(log.store)
    await live.change("history", lambda record: record.begin(1, 5))
    [generation] = (await status.status(live, "history")).generations
    assert (generation.role, generation.lag, generation.is_scanned, generation.waiting) == ("building", None, False, 0)


async def test_a_rollback_makes_the_generation_before_live_and_a_second_undoes_it(log: EventLog) -> None:
    live = Live.of(log.store)
    projector = Projector(log, [HISTORY])
    await projector.catch_up()
    with pytest.raises(InvalidInput, match="generation before the live one is not kept: there are 1; rebuild"):
        await status.rollback(live, "history")
    await projector.rebuild("history")
    assert (await status.rollback(live, "history")).live == 1
    assert (await status.rollback(live, "history")).live == 2
    with pytest.raises(InvalidInput, match="no view 'histories' is kept; kept are: 'history'"):
        await status.rollback(live, "histories")


async def test_the_live_generation_is_not_dropped_alone(log: EventLog) -> None:
    live = Live.of(log.store)
    await Projector(log, [HISTORY]).catch_up()
    with pytest.raises(InvalidInput, match="generation 1 is live: roll back first, or drop the whole projection"):
        await status.drop(live, "history", 1)
    with pytest.raises(InvalidInput, match="there is no generation 7; there are 1"):
        await status.drop(live, "history", 7)


async def test_a_dropped_generation_is_gone_with_its_readers(log: EventLog) -> None:
    live = Live.of(log.store)
    await say(log, "a", "one")
    projector = Projector(log, [HISTORY])
    await projector.catch_up()
    await projector.rebuild("history")
    assert await status.drop(live, "history", 1) == [1]
    with pytest.raises(GroupGone):
        await live.readers.settings(ViewId("history", 1).group)
    assert [one.generation.number for one in (await status.status(live, "history")).generations] == [2]
    assert await live.readers.groups() == [ViewId("history", 2).group]


async def test_a_whole_projection_is_dropped_and_its_numbers_are_not_used_again(log: EventLog) -> None:
    live = Live.of(log.store)
    projector = Projector(log, [DIRECTORY])
    await projector.catch_up()
    assert await status.drop(live, "directory") == [1]
    assert await status.statuses(live) == []
    assert await live.readers.groups() == []
    live.forget("directory")
    with pytest.raises(ViewMissing):
        await live.view(DIRECTORY)
    assert await status.drop(live, "directory") == []
    await projector.catch_up()
    assert [one.generation.number for one in (await status.status(live, "directory")).generations] == [2]


async def test_a_drop_that_died_is_ended_by_the_next(log: EventLog) -> None:
    live = Live.of(log.store)
    await Projector(log, [DIRECTORY]).catch_up()
    await live.change("directory", lambda record: Record(last=record.last))
    assert await live.readers.groups() == [ViewId("directory", 1).group]
    assert await status.drop(live, "directory") == []
    assert await live.readers.groups() == []


async def test_a_projector_that_runs_goes_on_while_generations_are_dropped(log: EventLog) -> None:
    live = Live.of(log.store)
    await say(log, "a", "one")
    await Projector(log, [DIRECTORY]).rebuild("directory")
    await Projector(log, [DIRECTORY]).rebuild("directory")
    async with running(log, DIRECTORY) as task:

        async def held() -> bool:
            found = await status.status(live, "directory")
            return len(found.generations) == 2 and all(
                one.partitions and all(part.holder for part in one.partitions) for one in found.generations
            )

        await until(held)
        assert await status.drop(live, "directory", 1) == [1]
        assert await status.drop(live, "directory") == [2]

        async def anew() -> bool:
            found = await status.statuses(live)
            return bool(found) and found[0].record.live == 3

        await until(anew)
        assert not task.done()


@pytest.mark.parametrize("on_error", ["stop", "wait"])
async def test_what_could_not_be_applied_is_told_with_its_error(log: EventLog, on_error: Any) -> None:
    live = Live.of(log.store)
    await say(log, "a", "one", "poison")
    await say(log, "b", "one")
    stopped = False
    try:
        await Projector(log, [Lengths()], on_error=on_error).catch_up()
    except ProjectionStopped:
        stopped = True
    assert stopped == (on_error == "stop")
    [generation] = (await status.status(live, "lengths")).generations
    [failure] = generation.failures
    assert (failure.tenant, failure.conversation, failure.version) == ("blue", "a", 2)
    assert "ValueError: it cannot be\nread" in failure.error
    assert "Traceback" in failure.trace
    assert failure.waits == (on_error == "wait")
    assert generation.waiting == (1 if on_error == "wait" else 0)


async def test_what_waits_is_tried_again_when_asked(log: EventLog) -> None:
    live, lengths = Live.of(log.store), Lengths()
    await say(log, "a", "one", "poison")
    async with running(log, lengths, on_error="wait"):

        async def waits() -> bool:
            found = await status.statuses(live)
            return bool(found) and found[0].generations[0].waiting == 1

        await until(waits)
        lengths.mended = True
        assert await status.retry(live, "lengths") == 1

        async def applied() -> bool:
            [generation] = (await status.status(live, "lengths")).generations
            return not generation.waiting and not generation.failures

        await until(applied)


async def test_what_fails_again_is_asked_for_no_longer(log: EventLog) -> None:
    live, lengths = Live.of(log.store), Lengths()
    await say(log, "a", "one", "poison")
    tries: list[int] = []

    def told(step: Any) -> None:
        if step.step == "failed":
            tries.append(step.partition)

    async with running(log, lengths, on_error="wait", told=told):

        async def waits() -> bool:
            found = await status.statuses(live)
            return bool(found) and found[0].generations[0].waiting == 1

        await until(waits)
        before = len(tries)
        assert await status.retry(live, "lengths") == 1

        async def tried() -> bool:
            return len(tries) > before

        await until(tried)
        asked = [await live.readers.asked(ViewId("lengths", 1).group, part) for part in range(live.store.partitions)]
        assert not any(asked)


async def test_catching_up_ends_with_the_one_that_stopped_when_the_others_are_there(log: EventLog) -> None:
    await say(log, "a", "one", "poison")
    async with asyncio.timeout(10):
        with pytest.raises(ProjectionStopped):
            await Projector(log, [Lengths(), USAGE]).catch_up()


async def test_what_is_kept_of_a_conversation_is_forgotten_in_every_generation(log: EventLog) -> None:
    live = Live.of(log.store)
    await say(log, "a", "one")
    await say(log, "b", "one")
    projector = Projector(log, [HISTORY, DIRECTORY])
    await projector.catch_up()
    await projector.rebuild("history")
    chat = log.tenant("blue").conversation("a")
    await chat.delete()
    views = await status.forget(live, chat.log)
    assert sorted(views) == [ViewId("directory", 1), ViewId("history", 1), ViewId("history", 2)]
    for view in views:
        assert await live.views.contents(view, chat.log) is None
        assert await live.views.contents(view, log.tenant("blue").conversation("b").log) is not None
    await projector.catch_up()
    assert await live.views.contents(ViewId("history", 2), chat.log) is None
