"""Competing consumers: members share the partitions, retry what fails, and park what keeps failing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from eventlog.delivery import Delivery
from eventlog.errors import GroupGone, InvalidInput
from eventlog.identity import LogId, check_id, partition_of
from eventlog.member import Member, finish
from eventlog.parking import Parked, parked_field
from eventlog.reader import Reader, Store, ends_of
from eventlog.sharing import Backoff
from eventlog.store.readers import Ask, Place, ReaderStore, Roll, Settings
from eventlog.work import Handler, Work
from eventlog.worker import Worker

Start = Literal["beginning", "now"]
OnPark = Literal["go-on", "wait"]


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """How far a group is in one partition."""

    partition: int
    place: Place
    end: int
    """The number of the feed's newest entry."""
    lag: int
    """Appends that the mark has not passed: counted from our own numbers, feed end less mark."""
    waiting: int
    """Conversations of which something is to be delivered again, or that wait for a parked event."""
    parked: int


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """A group as it is now, partition by partition."""

    name: str
    settings: Settings
    roll: Roll
    partitions: tuple[PartitionStatus, ...]

    @property
    def lag(self) -> int:
        """Appends that are not passed, over all partitions."""
        return sum(one.lag for one in self.partitions)

    @property
    def waiting(self) -> int:
        """Waiting conversations, over all partitions."""
        return sum(one.waiting for one in self.partitions)

    @property
    def parked(self) -> int:
        """Parked events, over all partitions."""
        return sum(one.parked for one in self.partitions)


class ConsumerGroup:
    """A named group over all conversations, or over those of one tenant. Get one from ``EventLog.group``."""

    def __init__(
        self,
        store: Store,
        readers: Callable[[], ReaderStore],
        name: str,
        *,
        start: Start = "beginning",
        tenant: str | None = None,
    ) -> None:
        if start not in ("beginning", "now"):
            raise InvalidInput(f"start={start!r}: give 'beginning' or 'now'")
        self.name = check_id(name, "group name")
        self._start = start
        self._tenant = tenant if tenant is None else check_id(tenant, "tenant")
        self._store = store
        self._open = readers
        self._readers = readers()

    async def create(self) -> Settings:
        """Create the group unless it is there. ``start`` is settled here, once: ``now`` is this moment.

        ``consume`` and ``deliveries`` do this by themselves. Raises ``InvalidInput`` when the
        group is of another tenant.
        """
        try:
            settings = await self._readers.settings(self.name)
        except GroupGone:
            start = await ends_of(self._store) if self._start == "now" else ()
            settings = await self._readers.create(self.name, Settings(self._tenant, start))
        if settings.tenant != self._tenant:
            raise InvalidInput(
                f"group {self.name!r} delivers {settings.tenant or 'every tenant'!r}, not "
                f"{self._tenant or 'every tenant'!r}: use another name"
            )
        return settings

    async def consume(
        self,
        handler: Handler,
        *,
        concurrency: int = 16,
        batch: int = 100,
        max_deliveries: int = 5,
        on_park: OnPark = "go-on",
        backoff: Backoff | None = None,
        lease: float = 15.0,
        poll: float = 1.0,
    ) -> None:
        """Be a member: hand events to ``handler``, until cancelled.

        A handler that returns has handled its event; one that raises gets it again after the
        backoff, and its conversation waits meanwhile. After ``max_deliveries`` the event is parked,
        and its conversation goes on or waits (``on_park``). ``concurrency`` conversations are
        handled side by side, each in order; about ``batch`` events of a partition are fetched at a
        time. A member that dies loses its partitions after ``lease`` seconds. ``poll`` is how often
        feeds are looked at when no hint comes. Cancelled handlers are delivered again.

        Raises ``LogLost`` or ``Truncated`` for events that are gone, ``GroupGone`` when the group
        is removed, and the server's errors when it stays away: nothing is skipped.
        """
        work = self._work(handler, concurrency, batch, max_deliveries, on_park, backoff, poll)
        readers = self._open()
        try:
            settings = await self.create()

            def hire(reader: Reader) -> Worker:
                return Worker(self._store, readers, reader, work)

            await Member(self._store, readers, settings, work, hire, lease=_checked(lease), poll=poll).run()
        finally:
            await finish(readers.close())

    @asynccontextmanager
    async def deliveries(
        self,
        *,
        concurrency: int = 16,
        batch: int = 100,
        max_deliveries: int = 5,
        on_park: OnPark = "go-on",
        backoff: Backoff | None = None,
        lease: float = 15.0,
        poll: float = 1.0,
    ) -> AsyncIterator[AsyncIterator[Delivery]]:
        """Be a member while the block lasts, and take deliveries one by one.

        Answer each with ``ack``, ``retry`` or ``park``: at most ``concurrency`` are given out
        unanswered, one of a conversation. What is unanswered when the block ends is delivered
        again. The options are those of ``consume``.
        """
        given: asyncio.Queue[Delivery] = asyncio.Queue()

        async def give(delivery: Delivery) -> None:
            delivery.answered = asyncio.Event()
            given.put_nowait(delivery)
            await delivery.answered.wait()

        member = asyncio.create_task(
            self.consume(
                give,
                concurrency=concurrency,
                batch=batch,
                max_deliveries=max_deliveries,
                on_park=on_park,
                backoff=backoff,
                lease=lease,
                poll=poll,
            )
        )

        async def taken() -> AsyncIterator[Delivery]:
            while True:
                getting = asyncio.create_task(given.get())
                try:
                    await asyncio.wait([getting, member], return_when=asyncio.FIRST_COMPLETED)
                    if not getting.done():
                        member.result()
                        return
                    delivery = getting.result()
                finally:
                    getting.cancel()
                if not delivery.fenced and delivery.outcome is None:
                    yield delivery

        try:
            yield taken()
        finally:
            member.cancel()
            await finish(asyncio.wait([member]))
            if not member.cancelled() and (error := member.exception()) is not None:
                raise error

    async def status(self) -> GroupStatus:
        """Members, leases, lag, waiting and parked, as of now. Raises ``GroupGone``."""
        settings, roll = await self._readers.settings(self.name), await self._readers.roll(self.name)
        ends = await self._store.feed_ends()
        partitions = await asyncio.gather(*(self._partition(settings, p, end) for p, end in enumerate(ends)))
        return GroupStatus(self.name, settings, roll, tuple(partitions))

    async def pause(self) -> None:
        """Hand nothing more over, in any member, from its next heartbeat on. What is in hand is finished."""
        await self._readers.pause(self.name, True)

    async def resume(self) -> None:
        """Go on."""
        await self._readers.pause(self.name, False)

    async def remove(self) -> None:
        """Forget the group, its marks and all it parked. Living members end with ``GroupGone``."""
        await self._readers.remove(self.name)

    async def parked(self) -> AsyncIterator[Parked]:
        """The parked events, partition by partition."""
        for partition in range(self._store.partitions):
            seen: set[str] = set()
            async for name, document in self._readers.parked(self.name, partition):
                if name not in seen:
                    seen.add(name)
                    yield Parked.decode(document)

    async def parked_event(self, log: LogId, version: int) -> Parked | None:
        """One parked event, with its error and trace; None when it is not parked."""
        document = await self._readers.parked_one(self.name, self._partition_of(log), parked_field(log, version))
        return None if document is None else Parked.decode(document)

    async def replay(self, log: LogId, version: int) -> bool:
        """Ask for a parked event to be delivered again, its deliveries counted anew; False when it is not parked.

        The partition's holder does it at its next heartbeat; when there is none, the next one.
        """
        field = parked_field(log, version)
        return await self._readers.ask(self.name, self._partition_of(log), field, Ask.REPLAY)

    async def drop(self, log: LogId, version: int) -> bool:
        """Ask for a parked event to be given up for good; False when it is not parked. Done as ``replay`` is."""
        return await self._readers.ask(self.name, self._partition_of(log), parked_field(log, version), Ask.DROP)

    def _work(
        self,
        handler: Handler,
        concurrency: int,
        batch: int,
        max_deliveries: int,
        on_park: OnPark,
        backoff: Backoff | None,
        poll: float,
    ) -> Work:
        for name, value in (("concurrency", concurrency), ("batch", batch), ("max_deliveries", max_deliveries)):
            if value < 1:
                raise InvalidInput(f"{name}={value}: give 1 or more")
        if on_park not in ("go-on", "wait"):
            raise InvalidInput(f"on_park={on_park!r}: give 'go-on' or 'wait'")
        waits = on_park == "wait"
        return Work(
            handler, self.name, self._tenant, concurrency, batch, max_deliveries, waits, backoff or Backoff(), poll
        )

    def _partition_of(self, log: LogId) -> int:
        return partition_of(log.path, self._store.partitions)

    async def _partition(self, settings: Settings, partition: int, end: int) -> PartitionStatus:
        place = await self._readers.place(self.name, partition)
        counts = await self._readers.counts(self.name, partition)
        mark = place.stands(settings.mark(partition))
        return PartitionStatus(partition, place, end, end - mark.seq, counts.waiting, counts.parked)


def _checked(lease: float) -> float:
    if not 0.1 <= lease <= 24 * 3600:
        raise InvalidInput(f"lease={lease}: give 0.1 seconds to a day")
    return lease
