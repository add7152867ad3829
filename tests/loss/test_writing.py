"""A handle that was given an outcome is told when that is lost, also where appends overlap or are repeated."""

from __future__ import annotations

from contextlib import suppress

import anyio
import pytest

from eventlog import Appended, Conversation, EventLog, Head, LogId, LogLost, OutcomeUnknown, user
from eventlog.store.port import Append, Entry, LogStore
from tests.loss.log import add, assert_writer_is_told, chat, events, opened, operations
from tests.loss.server import Server, free_port
from tests.loss.switch import Fate, Switch

pytestmark = pytest.mark.anyio


class Holding:
    """A store that holds one operation back until it is let go: a slow way to the server."""

    def __init__(self, store: LogStore, operation: str) -> None:
        self._store = store
        self._operation = operation
        self.is_waiting, self.may_go = anyio.Event(), anyio.Event()

    async def append(self, request: Append) -> Appended:
        if request.operation_id == self._operation:
            self.is_waiting.set()
            await self.may_go.wait()
        return await self._store.append(request)

    async def read(self, log: LogId, first: int, last: int | None, count: int, *, reverse: bool = False) -> list[Entry]:
        return await self._store.read(log, first, last, count, reverse=reverse)

    async def head(self, log: LogId) -> Head:
        return await self._store.head(log)


def seen_through(store: Holding, log: EventLog) -> Conversation:
    return Conversation(store, chat(log).log)  # type: ignore[arg-type]


@pytest.mark.parametrize("messages", [1, 2, 3])
async def test_an_append_that_overlaps_a_loss_does_not_hide_it(
    primary: Server, replica: Server, switch: Switch, messages: int
) -> None:
    """Two appends leave at one cursor; the one is acknowledged and lost before the other arrives."""
    async with opened(switch.url) as log:
        store = Holding(log.store, "late")
        handle = seen_through(store, log)
        await add(handle, "a")
        await replica.replicate(primary)
        await replica.promote()
        async with anyio.create_task_group() as appends:

            async def append_late() -> None:
                await handle.add(*map(user, map(str, range(messages))), operation_id="late")

            appends.start_soon(append_late)
            await store.is_waiting.wait()
            assert (await add(handle, "lost")).cursor.version == 2
            switch.target = replica.socket
            store.may_go.set()
        await assert_writer_is_told(handle, 1 + messages)


async def test_a_retry_that_another_writer_made_good_does_not_hide_a_loss(
    primary: Server, replica: Server, switch: Switch
) -> None:
    async with opened(switch.url) as log:
        handle = chat(log)
        await add(handle, "a")
        await replica.replicate(primary)
        await replica.promote()
        await add(handle, "lost")
        switch.target = replica.socket
        await add(chat(log), "b", "shared")
        with suppress(LogLost):  # told at once, or with its next append
            await add(handle, "shared")
        await assert_writer_is_told(handle, 3)


async def test_a_refusal_by_the_server_after_a_lost_reply_leaves_the_outcome_unknown(
    primary: Server, switch: Switch
) -> None:
    """The first transmission was appended: an error may not say that nothing was."""
    async with opened(switch.url) as log, opened(primary.url) as direct:
        handle = chat(log)
        await add(handle, "a")

        def lose_the_reply(_: bytes) -> Fate:
            switch.is_open = False
            switch.fate = lambda _: Fate.PASS
            return Fate.CUT_REPLY

        async def becomes_a_replica() -> None:
            with anyio.fail_after(10):
                while operations(await events(chat(direct))) != ["a", "b"]:
                    await anyio.sleep(0.005)
            async with primary.client() as client:
                await client.replicaof("127.0.0.1", str(free_port()))
            switch.is_open = True

        switch.fate = lose_the_reply
        async with anyio.create_task_group() as meanwhile:
            meanwhile.start_soon(becomes_a_replica)
            with pytest.raises(OutcomeUnknown) as told:
                await add(handle, "b")
        assert told.value.operation_id == "b"
        await primary.promote()
        assert (await add(handle, "b")).duplicate
