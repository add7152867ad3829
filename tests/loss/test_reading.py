"""A reader says every loss, whichever way it reads and whenever it happens, and never one that was none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from eventlog import Conversation, EventLog, LogId, LogLost, user
from eventlog.identity import Cursor
from eventlog.reading import PAGE
from eventlog.store.port import Entry, Head, LogStore
from tests.loss.log import add, assert_reader_is_told, chat, events, opened, operations
from tests.loss.server import Server
from tests.loss.switch import Switch

pytestmark = pytest.mark.anyio


async def fork(primary: Server, replica: Server) -> None:
    """The replica has what the primary has, and from here on each goes its own way."""
    await replica.replicate(primary)
    await replica.promote()


async def test_a_reader_of_the_newest_first_is_told_before_versions_are_used_again(
    primary: Server, replica: Server, switch: Switch
) -> None:
    async with opened(switch.url) as log:
        await add(chat(log), "a", "b")
        await fork(primary, replica)
        lost = await add(chat(log), "c", "d")
        switch.target = replica.socket
        with pytest.raises(LogLost):
            await events(chat(log), lost.cursor, reverse=True)


async def test_a_reader_of_the_newest_first_is_told_after_versions_were_used_again(
    primary: Server, replica: Server, switch: Switch
) -> None:
    async with opened(switch.url) as log:
        await add(chat(log), "a", "b")
        await fork(primary, replica)
        lost = await add(chat(log), "c", "d")
        switch.target = replica.socket
        await add(chat(log), "e", "f", "g")
        with pytest.raises(LogLost):
            await events(chat(log), lost.cursor, reverse=True)


async def fill(log: EventLog, name: str, count: int) -> Cursor:
    """Append so many messages in one operation."""
    return (await chat(log).add(*map(user, map(str, range(count))), operation_id=name)).cursor


@pytest.mark.parametrize("reverse", [False, True], ids=["the oldest first", "the newest first"])
async def test_a_reader_that_meets_a_loss_between_two_pages_is_told(
    primary: Server, replica: Server, switch: Switch, reverse: bool
) -> None:
    """One reading never holds events of two histories."""
    async with opened(switch.url) as log, opened(replica.url) as other:
        await fill(log, "kept", 10)
        await fork(primary, replica)
        await fill(log, "here", 2 * PAGE)
        await fill(other, "there", 2 * PAGE)
        told: list[str] = []

        async def read() -> None:
            async for page in chat(log).pages(reverse=reverse):
                told.extend(operations(page))
                switch.target = replica.socket

        with pytest.raises(LogLost):
            await read()
        assert {"here", "there"} & set(told) == {"here"}


class After:
    """A store that lets something happen behind its nth read."""

    def __init__(self, store: LogStore, reads: int, happening: Callable[[], Awaitable[object]]) -> None:
        self._store = store
        self._left = reads
        self._happening = happening

    async def read(self, log: LogId, first: int, last: int | None, count: int, *, reverse: bool = False) -> list[Entry]:
        entries = await self._store.read(log, first, last, count, reverse=reverse)
        self._left -= 1
        if self._left == 0:
            await self._happening()
        return entries

    async def head(self, log: LogId) -> Head:
        return await self._store.head(log)


def seen_through(store: After, log: EventLog) -> Conversation:
    return Conversation(store, chat(log).log)  # type: ignore[arg-type]


async def test_a_reader_that_meets_a_loss_behind_its_check_is_told(
    primary: Server, replica: Server, switch: Switch
) -> None:
    """Checking its event and reading on are one step: nothing comes in between."""
    async with opened(switch.url) as log, opened(replica.url) as other:
        await fill(log, "kept", 10)
        await fork(primary, replica)
        here = await fill(log, "here", 10)
        await fill(other, "there", 20)

        async def move() -> None:
            switch.target = replica.socket

        reader = seen_through(After(log.store, 1, move), log)
        told = []
        try:
            async for event in reader.read(here):
                told.append(event)
        except LogLost:
            pass
        assert operations(told) == [], "events of another history were given out"
        await assert_reader_is_told(chat(log), here, 30)


async def test_a_reader_at_the_end_is_not_disturbed_by_an_append(log: EventLog) -> None:
    """What is appended between reading nothing and looking at the head was not lost."""
    last = (await add(chat(log), "a", "b")).cursor
    reader = seen_through(After(log.store, 2, lambda: add(chat(log), "c")), log)
    assert operations([event async for event in reader.read(last)]) in ([], ["c"])


async def test_a_reader_of_an_empty_log_is_not_disturbed_by_its_first_append(log: EventLog) -> None:
    reader = seen_through(After(log.store, 1, lambda: add(chat(log), "a")), log)
    assert operations([event async for event in reader.read()]) in ([], ["a"])


async def test_a_reader_of_the_newest_first_at_the_end_is_not_disturbed_by_an_append(log: EventLog) -> None:
    last = (await add(chat(log), "a", "b")).cursor
    reader = seen_through(After(log.store, 1, lambda: add(chat(log), "c")), log)
    assert operations([event async for event in reader.read(last, reverse=True)]) in ([], ["c"])
