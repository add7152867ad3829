"""With ``replicated(1)`` no acknowledged event is lost when a stalled replica is promoted after a kill."""

from __future__ import annotations

import random
from contextlib import suppress

import anyio
import pytest

from eventlog import Conversation, EventLog, OutcomeUnknown, ServerUnavailable, user
from tests.loss.server import Server
from tests.loss.switch import Switch
from tests.replicas.conftest import TRIES
from tests.replicas.stall import BODY, stalled, take_over

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60 + 20 * TRIES)]
WRITERS = 8
MOST_BEFORE = 0.2
"""Seconds of writing before the stall, at most."""


class Writer:
    """Appends one large message after the other until the server is gone."""

    def __init__(self, chat: Conversation) -> None:
        self.chat = chat
        self.acknowledged: list[str] = []

    async def run(self) -> None:
        number = 0
        while True:
            number += 1
            with suppress(OutcomeUnknown, ServerUnavailable):
                await self.chat.add(user(BODY), operation_id=f"op-{number}")
                self.acknowledged.append(f"op-{number}")


async def test_no_acknowledged_event_is_lost_in_any_of_many_tries(executable: str) -> None:
    chance = random.Random(7)
    counts = []
    for number in range(1, TRIES + 1):
        async with Server(executable) as primary, Server(executable) as replica, Switch(primary.socket) as switch:
            await replica.replicate(primary)
            counts.append(await _lose_the_primary(primary, replica, switch, chance))
        print(f"\nreplicated(1), try {number} of {TRIES}: {counts[-1]} appends were acknowledged, none is lost", end="")
    assert min(counts) > 0, "a try in which nothing was acknowledged proves nothing"


async def _lose_the_primary(primary: Server, replica: Server, switch: Switch, chance: random.Random) -> int:
    """How many appends had been acknowledged; all of them are there."""
    async with EventLog.open(switch.url, durability="replicated(1)", deadline=2) as log:
        tenant = log.tenant("acme")
        writers = [Writer(tenant.conversation(f"c{number}")) for number in range(WRITERS)]
        async with anyio.create_task_group() as tasks:
            for writer in writers:
                tasks.start_soon(writer.run)
            with anyio.fail_after(30):
                while not all(writer.acknowledged for writer in writers):
                    await anyio.sleep(0.005)
            await anyio.sleep(chance.uniform(0, MOST_BEFORE))
            with stalled(replica):
                before = sum(len(writer.acknowledged) for writer in writers)
                await anyio.sleep(0.1)
                # One reply for each may have been under way when the replica was stopped.
                assert sum(len(writer.acknowledged) for writer in writers) <= before + WRITERS
                primary.kill()
            await take_over(replica, switch)
            tasks.cancel_scope.cancel()
    async with EventLog.open(switch.url) as after:
        for writer in writers:
            chat = after.tenant("acme").conversation(writer.chat.id)
            operations = [event.id.rpartition(".")[0] async for event in chat.read()]
            assert len(set(operations)) == len(operations)
            assert set(writer.acknowledged) <= set(operations)
    return sum(len(writer.acknowledged) for writer in writers)


async def test_an_append_that_no_replica_holds_is_unknown_and_confirmed_when_one_does(
    primary: Server, replica: Server, switch: Switch
) -> None:
    await replica.replicate(primary)
    async with EventLog.open(switch.url, durability="replicated(1)", deadline=1) as log:
        chat = log.tenant("acme").conversation("support")
        with stalled(replica):
            for _ in range(2):  # asking again writes nothing, and must not be taken for confirmed
                with pytest.raises(OutcomeUnknown, match="is on the primary, but 0 of 1 replicas hold it"):
                    await chat.add(user("hello"), operation_id="op")
        confirmed = await chat.add(user("hello"), operation_id="op")
        assert confirmed.duplicate
        assert confirmed.cursor.version == 1
