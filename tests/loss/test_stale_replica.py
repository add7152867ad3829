"""A replica that lagged behind is promoted: who stood beyond its end is told, and nobody else notices."""

from __future__ import annotations

import pytest

from eventlog import LogLost, RunFenced, RunRefused, user
from tests.loss.log import add, assert_reader_is_told, assert_writer_is_told, chat, events, opened, operations
from tests.loss.server import Server
from tests.loss.switch import Switch

pytestmark = pytest.mark.anyio

KEPT = ("a", "b", "c")
LOST = ("d", "e")


@pytest.mark.parametrize("way", ["cut", "moved without a disconnect"])
@pytest.mark.parametrize("again", [(), ("f", "g"), ("f", "g", "h")], ids=len)
async def test_who_stood_beyond_the_end_of_the_promoted_replica_is_told(
    primary: Server, replica: Server, switch: Switch, way: str, again: tuple[str, ...]
) -> None:
    """``again``: what another writer appends at the lost versions before anybody looks."""
    async with opened(switch.url) as log, opened(replica.url) as other:
        before, beyond = chat(log), chat(log)
        kept = await add(before, *KEPT)
        await replica.replicate(primary)
        await replica.promote()
        lost = await add(beyond, *LOST)
        connections = switch.connections

        switch.target = replica.socket
        if way == "cut":
            primary.kill()
        if again:
            await add(chat(other), *again)
        there = len(KEPT) + len(again)

        # before anything else is written, and for ever after
        for _ in range(2):
            await assert_reader_is_told(chat(log), lost.cursor, there)
            await assert_writer_is_told(beyond, there)
        assert operations(await events(chat(log), kept.cursor)) == list(again)
        outcome = await add(before, "i")
        assert (outcome.first, outcome.duplicate) == (there + 1, False)
        assert operations(await events(chat(log))) == [*KEPT, *again, "i"]
        await assert_reader_is_told(chat(log), lost.cursor, there + 1)
        await assert_writer_is_told(beyond, there + 1)
        if way != "cut":
            assert switch.connections == connections, "a connection was made anew"


async def test_a_connection_that_survived_two_promotions_proves_nothing(primary: Server, replica: Server) -> None:
    async with opened(primary.url) as log, opened(replica.url) as other:
        before, beyond = chat(log), chat(log)
        kept = await add(before, *KEPT)
        await replica.replicate(primary)
        await replica.promote()
        lost = await add(beyond, *LOST)
        connections = await primary.clients()

        await add(chat(other), "f", "g", "h")
        await primary.replicate(replica)
        await primary.promote()

        await assert_reader_is_told(chat(log), lost.cursor, 6)
        await assert_writer_is_told(beyond, 6)
        assert operations(await events(chat(log), kept.cursor)) == ["f", "g", "h"]
        assert (await add(before, "i")).first == 7
        assert connections <= await primary.clients(), "a connection was made anew"


async def test_a_former_primary_that_comes_back_is_what_it_was_to_those_it_knows(
    primary: Server, replica: Server, switch: Switch
) -> None:
    async with opened(switch.url) as log:
        early, late = chat(log), chat(log)
        await add(early, *KEPT)
        await replica.replicate(primary)
        await replica.promote()
        first = await add(early, *LOST)
        switch.target = replica.socket
        second = await add(late, "f", "g", "h")
        switch.target = primary.socket
        assert await events(chat(log), first.cursor) == []
        assert (await add(early, "i")).first == 6
        await assert_reader_is_told(chat(log), second.cursor, 6)
        await assert_writer_is_told(late, 6)


async def test_who_stood_where_the_replica_ended_is_not_disturbed(
    primary: Server, replica: Server, switch: Switch
) -> None:
    async with opened(switch.url) as log:
        handle = chat(log)
        kept = await add(handle, *KEPT)
        await replica.replicate(primary)
        await replica.promote()
        await add(chat(log), *LOST)
        switch.target = replica.socket
        assert await events(chat(log), kept.cursor) == []
        assert (await add(handle, "f")).first == len(KEPT) + 1


async def test_a_lost_retry_is_appended_again_once(primary: Server, replica: Server, switch: Switch) -> None:
    async with opened(switch.url) as log:
        handle = chat(log)
        kept = await add(handle, *KEPT)
        await replica.replicate(primary)
        await replica.promote()
        lost = await add(chat(log), "d")
        switch.target = replica.socket
        again = await add(handle, "d")
        assert not again.duplicate
        assert again.cursor.version == lost.cursor.version
        assert again.cursor != lost.cursor
        assert operations(await events(chat(log), kept.cursor)) == ["d"]


async def test_a_run_whose_take_over_was_lost_has_one_holder(primary: Server, replica: Server, switch: Switch) -> None:
    async with opened(switch.url) as log:
        run = await chat(log).run(lease=600).__aenter__()
        await replica.replicate(primary)
        await replica.promote()
        lost = await chat(log).resume(run.id, force=True, lease=600).__aenter__()
        with pytest.raises(RunFenced):
            await run.add(user("fenced"))
        switch.target = replica.socket
        with pytest.raises(LogLost):
            await lost.add(user("lost"))
        with pytest.raises(RunFenced):
            await lost.renew()
        await run.add(user("the former holder holds it again"))
        third = await chat(log).resume(run.id, force=True, lease=600).__aenter__()
        for former in (run, lost):
            with pytest.raises(RunFenced):
                await former.renew()
        with pytest.raises(RunFenced):
            await run.add(user("fenced"))
        await third.commit()
        with pytest.raises(RunRefused):
            await run.__aexit__(None, None, None)
        with pytest.raises(LogLost):
            await lost.__aexit__(None, None, None)
        await third.__aexit__(None, None, None)
