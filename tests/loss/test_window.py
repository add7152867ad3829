"""How long a retry is recognised, and what a later one is told."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest

from eventlog import Appended, Conversation, EventLog, OutcomeUnknown, user
from eventlog.store.port import OPERATION_WINDOW
from tests.loss.log import add, chat, events, opened, operations
from tests.loss.server import Server
from tests.loss.switch import Fate, Switch

pytestmark = pytest.mark.anyio

FORGOTTEN = 2 * OPERATION_WINDOW
PLACES = [0, 1, OPERATION_WINDOW - 2, OPERATION_WINDOW - 1]
"""Operations before the one that is retried: where it stands in its generation of records."""


@pytest.fixture
async def direct(primary: Server) -> AsyncIterator[EventLog]:
    async with opened(primary.url) as log:
        yield log


async def fill(log: EventLog, name: str, count: int) -> None:
    """Others append so many operations."""
    handle = chat(log)
    await handle.head()
    async with anyio.create_task_group() as appends:
        for number in range(count):
            appends.start_soon(add, handle, f"{name}-{number}")


def lose_one_reply(switch: Switch, *, and_close: bool = False) -> None:
    """The next request arrives, and its reply does not. New connections may have to wait."""

    def fate(_: bytes) -> Fate:
        switch.fate = lambda _: Fate.PASS
        switch.is_open = not and_close
        return Fate.CUT_REPLY

    switch.fate = fate


async def count(log: EventLog, operation: str) -> int:
    return operations(await events(chat(log))).count(operation)


@pytest.mark.parametrize("before", PLACES)
async def test_a_retry_within_the_window_is_recognised(direct: EventLog, before: int) -> None:
    await fill(direct, "before", before)
    first = await add(chat(direct), "retried")
    await fill(direct, "after", OPERATION_WINDOW - 1)
    assert await add(chat(direct), "retried") == first._replace(duplicate=True, before=None)


@pytest.mark.parametrize("before", PLACES)
async def test_a_transmission_repeated_after_the_window_is_unknown(
    direct: EventLog, switch: Switch, before: int
) -> None:
    async with opened(switch.url, deadline=60) as log:
        await fill(direct, "before", before)
        handle = chat(log)
        opening = await add(handle, "opening")
        lose_one_reply(switch, and_close=True)

        async def others_append() -> None:
            with anyio.fail_after(10):
                while not await count(direct, "retried"):
                    await anyio.sleep(0.005)
            await fill(direct, "after", FORGOTTEN)
            switch.is_open = True

        async with anyio.create_task_group() as meanwhile:
            meanwhile.start_soon(others_append)
            with pytest.raises(OutcomeUnknown):
                await add(handle, "retried")
        assert await count(direct, "retried") == 1
        assert [event.id async for event in handle.read(opening.cursor, limit=1)] == ["retried.0"]


async def test_an_append_repeated_through_its_handle_after_the_window_is_unknown(
    direct: EventLog, switch: Switch
) -> None:
    """The handle knows that it is a retry, and since when."""
    async with opened(switch.url, deadline=0.5) as log:
        handle = chat(log)
        await add(handle, "opening")
        switch.fate = lambda _: Fate.CUT_REPLY
        with pytest.raises(OutcomeUnknown):
            await add(handle, "retried")
        switch.fate = lambda _: Fate.PASS
        assert await count(direct, "retried") == 1
        await fill(direct, "after", FORGOTTEN)
        with pytest.raises(OutcomeUnknown):
            await add(handle, "retried")
        assert await count(direct, "retried") == 1


async def test_an_append_repeated_through_its_handle_within_the_window_is_recognised(
    direct: EventLog, switch: Switch
) -> None:
    async with opened(switch.url, deadline=0.5) as log:
        handle = chat(log)
        await add(handle, "opening")
        switch.fate = lambda _: Fate.CUT_REPLY
        with pytest.raises(OutcomeUnknown):
            await add(handle, "retried")
        switch.fate = lambda _: Fate.PASS
        await fill(direct, "after", OPERATION_WINDOW - 1)
        again = await add(handle, "retried")
        assert (again.first, again.duplicate) == (2, True)


async def test_none_and_exact_expectations_recognise_a_retry_for_ever(direct: EventLog, switch: Switch) -> None:
    async with opened(switch.url) as log:
        handle = chat(log)

        async def none() -> Appended:
            return await handle.add(user("first"), operation_id="none", expected="none")

        first = await none()

        async def exact(by: Conversation) -> Appended:
            return await by.add(user("second"), operation_id="exact", expected=first.cursor)

        second = await exact(handle)
        await fill(direct, "after", FORGOTTEN)
        assert await none() == first._replace(duplicate=True, before=None)
        for by in (handle, chat(log), chat(direct)):
            assert await exact(by) == second._replace(duplicate=True, before=None)
        lose_one_reply(switch)
        assert await exact(handle) == second._replace(duplicate=True, before=None)
