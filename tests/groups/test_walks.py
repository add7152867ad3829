"""Random walks: members that come, go, stall and die, while others append. Seeded, so that one can run again."""

from __future__ import annotations

import asyncio
import os
import random
from typing import Any

import pytest

from eventlog import EventLog
from eventlog.consumer_group import ConsumerGroup
from eventlog.delivery import Delivery
from eventlog.store.conformance.suite import notes
from tests.groups.dying import FAST, LEASE, NAME, Dead, DyingReaders, Life, World

pytestmark = pytest.mark.anyio
WALKS = int(os.environ.get("EVENTLOG_GROUP_WALKS", "30"))


class Walk:
    """One world, several members, and what befalls them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = World(partitions=self.chance.choice([1, 2, 5]))
        self.members: list[tuple[Life, asyncio.Task[None]]] = []
        self.failures: list[BaseException] = []
        self.log = EventLog(self.world.store)
        self.poison = {("c1", 3), ("c2", 2)}
        self.options: dict[str, Any] = {
            "lease": LEASE,
            "poll": 0.005,
            "backoff": FAST,
            "batch": self.chance.choice([1, 3, 20]),
            "concurrency": self.chance.choice([1, 2, 8]),
            "max_deliveries": 60,  # no event is held by so many deaths
        }

    async def append(self) -> None:
        for _ in range(self.chance.randrange(1, 4)):
            chat = self.log.tenant("t").conversation(f"c{self.chance.randrange(5)}")
            await chat.append(*notes(*range(self.chance.randrange(1, 4))))

    def start(self, ends_at: int | None) -> None:
        life, world = Life(ends_at=ends_at), self.world
        group = ConsumerGroup(world.store, lambda: DyingReaders(world.readers, life, world), NAME)  # type: ignore[arg-type]

        async def handle(delivery: Delivery) -> None:
            life.point("before handling")
            for _ in range(self.chance.randrange(4)):
                await asyncio.sleep(0)
            name = delivery.conversation.conversation
            if (name, delivery.version) in self.poison:
                if delivery.count < 3:
                    raise ValueError("poison")
                await delivery.park("given up")
                return
            if self.chance.random() < 0.05:
                raise ValueError("by chance")
            life.point("while handling")
            world.handled[delivery.key] += 1
            world.order[delivery.conversation].append(delivery.version)
            life.point("after handling")

        self.members.append((life, asyncio.create_task(group.consume(handle, **self.options))))

    async def end(self, life: Life, member: asyncio.Task[None]) -> None:
        member.cancel()
        await asyncio.wait([member])
        if not member.cancelled():
            error = member.exception()
            if error is not None and not isinstance(error, Dead):
                self.failures.append(error)

    async def step(self) -> None:
        what = self.chance.choice(["append", "append", "start", "leave", "stall", "wait", "wait"])
        if what == "append":
            await self.append()
        elif what == "start" and len(self.members) < 4:
            self.start(self.chance.choice([None, self.chance.randrange(5, 200)]))
        elif what == "leave" and self.members:
            await self.end(*self.members.pop(self.chance.randrange(len(self.members))))
        elif what == "stall":
            self.world.clock.pass_lease()  # whoever lives has stalled, too, and is taken over
        for _ in range(self.chance.randrange(30)):
            await asyncio.sleep(0)
        for life, member in [one for one in self.members if one[0].dead]:
            self.members.remove((life, member))
            await self.end(life, member)


@pytest.mark.parametrize("seed", range(WALKS))
async def test_nothing_is_skipped_and_order_is_kept_whatever_befalls_the_members(seed: int) -> None:
    walk = Walk(seed)
    async with asyncio.timeout(60):
        for _ in range(40):
            await walk.step()
        for member in walk.members:
            await walk.end(*member)
        walk.world.clock.pass_lease()
        walk.members.clear()
        walk.start(None)
        while not await walk.world.passed():
            await asyncio.sleep(0.001)
            assert not walk.members[0][1].done(), walk.members[0][1].result()
        await walk.end(*walk.members[0])
    assert not walk.failures
    parked = {
        name
        for partition in range(walk.world.store.partitions)
        async for name, _ in walk.world.readers.parked(NAME, partition)
    }
    handled = {key for key, times in walk.world.handled.items() if times}
    assert {key for key in walk.world.keys if f"{key.version}@t/{key.conversation}" not in parked} <= handled
    assert {tuple(name.replace("t/", "").split("@")[::-1]) for name in parked} <= {(c, str(v)) for c, v in walk.poison}
    assert walk.world.in_order()
