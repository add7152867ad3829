"""A member that dies at a chosen point, and what must be true of its readers at every step."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from eventlog.consumer_group import ConsumerGroup
from eventlog.delivery import Delivery, DeliveryKey
from eventlog.identity import LogId
from eventlog.sharing import Backoff
from eventlog.store.memory import MemoryStore
from eventlog.store.memory_readers import MemoryReaders

LEASE = 60.0
FAST = Backoff(first=0.001, most=0.002)
NAME = "g"


class Dead(Exception):
    """The member's process has ended: nothing it does has an effect."""


@dataclass
class Clock:
    """The store's clock; it stands still but for what a test moves it."""

    ms: int = 1_000_000

    def __call__(self) -> int:
        return self.ms

    def pass_lease(self) -> None:
        """Let every lease expire."""
        self.ms += int(LEASE * 1000) + 1


@dataclass
class Life:
    """Counts the points of a life, and ends it at one of them."""

    ends_at: int | None = None
    points: int = 0
    dead: bool = False
    named: list[str] = field(default_factory=list)

    def point(self, name: str) -> None:
        """A point at which a process may end. Raises ``Dead`` from the chosen one on."""
        if self.dead:
            raise Dead
        self.named.append(name)
        if self.points == self.ends_at:
            self.dead = True
            raise Dead
        self.points += 1


WRITES = ("acquire", "advance", "renew", "release", "join", "leave", "create")


class DyingReaders:
    """Readers as a member sees them; before and after each write its process may end."""

    def __init__(self, readers: MemoryReaders, life: Life, world: World) -> None:
        self._readers = readers
        self._life = life
        self._world = world

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._readers, name)
        if name not in WRITES:
            return real

        async def write(*arguments: Any) -> Any:
            self._life.point(f"before {name}")
            reply = await real(*arguments)
            await self._world.check()
            self._life.point(f"after {name}")
            return reply

        return write


class World:
    """A store, what was appended, and what each handler that lived made of it."""

    def __init__(self, *, partitions: int = 2) -> None:
        self.clock = Clock()
        self.store = MemoryStore(partitions=partitions, clock=self.clock)
        self.readers = MemoryReaders(self.store, clock=self.clock)
        self.begun: dict[DeliveryKey, list[int]] = defaultdict(list)
        """The counts with which each event was handed over."""
        self.handled: dict[DeliveryKey, int] = defaultdict(int)
        self.order: dict[LogId, list[int]] = defaultdict(list)

    async def life(self, life: Life, handler: Any = None, **options: Any) -> BaseException | None:
        """Consume until all is passed or the member dies; return what it ended with."""
        group = ConsumerGroup(self.store, lambda: DyingReaders(self.readers, life, self), NAME)  # type: ignore[arg-type]

        async def handle(delivery: Delivery) -> None:
            life.point("before handling")
            self.begun[delivery.key].append(delivery.count)
            if handler is not None:
                handler(delivery)
            await asyncio.sleep(0)
            life.point("while handling")
            self.handled[delivery.key] += 1
            self.order[delivery.conversation].append(delivery.version)
            life.point("after handling")

        settings: dict[str, Any] = {"lease": LEASE, "poll": 0.01, "backoff": FAST, "batch": 4, "concurrency": 3}
        member = asyncio.create_task(group.consume(handle, **(settings | options)))
        async with asyncio.timeout(20):
            while not member.done() and not life.dead and not await self.passed():
                await asyncio.sleep(0.001)
            member.cancel()
            await asyncio.wait([member])
        return None if member.cancelled() else member.exception()

    async def passed(self) -> bool:
        """Whether all is handled or parked, and nothing is to be delivered again."""
        for partition, feed in enumerate(self.store.feeds):
            place = await self.readers.place(NAME, partition)
            waiting = await self.readers.waiting(NAME, partition)
            if place.holder == "" or any(one.due_ms >= 0 for one in waiting.values()):
                return False
            if feed and (place.mark is None or place.mark.seq < len(feed)):
                return False
        return True

    async def check(self) -> None:
        """Each event that a mark has passed was handled, is parked, or waits."""
        for partition, feed in enumerate(self.store.feeds):
            place = await self.readers.place(NAME, partition)
            waiting = await self.readers.waiting(NAME, partition)
            parked = {name async for name, _ in self.readers.parked(NAME, partition)}
            for entry in feed[: place.mark.seq if place.mark else 0]:
                one = waiting.get(entry.log.path)
                for version in range(entry.first, entry.first + entry.events):
                    key = DeliveryKey(*entry.log, version)
                    held = one is not None and one.version <= version <= one.through
                    single = f"{entry.log.path}#{version}" in waiting
                    assert self.handled[key] or held or single or f"{version}@{entry.log.path}" in parked, (
                        f"the mark passed {key}, which was neither handled, parked nor set waiting"
                    )

    @property
    def keys(self) -> set[DeliveryKey]:
        """All that was appended."""
        return {
            DeliveryKey(*entry.log, version)
            for feed in self.store.feeds
            for entry in feed
            for version in range(entry.first, entry.first + entry.events)
        }

    def in_order(self) -> bool:
        """Whether each conversation's events were first handled in order."""
        firsts = [list(dict.fromkeys(versions)) for versions in self.order.values()]
        return all(versions == sorted(versions) for versions in firsts)
