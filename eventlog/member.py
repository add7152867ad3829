"""One living member of a group: its heartbeat, its share of the partitions, and the workers on them."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import anyio

from eventlog.errors import LogClosed, ReaderFenced, ServerUnavailable
from eventlog.identity import new_id
from eventlog.reader import Reader, Store
from eventlog.sharing import share
from eventlog.store.readers import ReaderStore, Settings

T = TypeVar("T")
_log = logging.getLogger("eventlog.groups")
_LEAVING = 30.0
"""Seconds that a member takes at most to write what it handled and give its partitions up."""
_PATIENCE = 60.0
"""Seconds without an answer to a heartbeat after which a member gives up."""


class PartitionWorker(Protocol):
    """Works on one held partition, from taking it over to giving it up."""

    reader: Reader
    asked: bool
    """Something may have been asked of the holder."""

    @property
    def stopping(self) -> bool:
        """Whether the place is being given up."""
        ...

    @property
    def position(self) -> int:
        """The number of the last feed entry fetched."""
        ...

    async def run(self) -> None:
        """Work until it is stopped. Raises what goes wrong."""
        ...

    def more(self) -> None:
        """There is, or may be, more to do."""
        ...

    def stop(self, *, cancel: bool = False) -> None:
        """Finish what is in hand (or cancel it), write, and give the place up."""
        ...

    def lose(self, error: Exception) -> None:
        """The place is another's, or about to be: write nothing more."""
        ...


class Duty(Protocol):
    """What the workers of one member have in common."""

    @property
    def group(self) -> str:
        """Whose places are held."""
        ...

    paused: bool


@dataclass(slots=True)
class _Held:
    worker: PartitionWorker
    task: asyncio.Task[None]


class Member:
    """Consumes its share of a group's partitions until it is cancelled. ``lease`` in seconds."""

    def __init__(
        self,
        store: Store,
        readers: ReaderStore,
        settings: Settings,
        duty: Duty,
        hire: Callable[[Reader], PartitionWorker],
        *,
        lease: float,
        poll: float,
    ) -> None:
        self.id = new_id()
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self._store = store
        self._readers = readers
        self._settings = settings
        self._duty = duty
        self._hire = hire
        self._lease = lease
        self._poll = poll
        self._held: dict[int, _Held] = {}
        self._wake = asyncio.Event()
        self._answered = asyncio.get_running_loop().time()

    async def run(self) -> None:
        """Be a member until cancelled. Raises what goes wrong: it is never passed over."""
        listening = asyncio.create_task(self._listen())
        try:
            while True:
                self._wake.clear()
                await self._beat()
                self._reap()
                await self._pause()
        finally:
            listening.cancel()
            await finish(self._leave())
            await finish(asyncio.wait([listening]))

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._lease / 3):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _beat(self) -> None:
        """Hold what is held, and take or give up what the share says. A server that is away is tried again."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._lease / 2):
                await asyncio.gather(*(self._renew(held) for held in self._held.values()))
                roll = await self._readers.join(self._duty.group, self.id, self.name, int(self._lease * 1000))
                self._pause_or_go_on(roll.paused)
                await self._take_share(share(self._store.partitions, [one.id for one in roll.members], self.id))
                self._answered = loop.time()
        except (TimeoutError, ServerUnavailable) as error:
            silent = loop.time() - self._answered
            _log.warning("group %r: no answer to a heartbeat for %.1f s: %s", self._duty.group, silent, error)
            if silent > max(_PATIENCE, self._lease):
                raise ServerUnavailable(
                    f"the server has not answered group {self._duty.group!r} for {silent:.0f} s"
                ) from error
        for held in self._held.values():
            if not held.worker.reader.held:
                held.worker.lose(ReaderFenced("the lease ran out before it could be renewed"))

    async def _renew(self, held: _Held) -> None:
        try:
            counts = await held.worker.reader.renew()
        except ReaderFenced as error:
            held.worker.lose(error)
        else:
            if counts.asked:
                held.worker.asked = True
                held.worker.more()

    def _pause_or_go_on(self, paused: bool) -> None:
        goes_on = self._duty.paused and not paused
        self._duty.paused = paused
        if goes_on:
            for held in self._held.values():
                held.worker.more()

    async def _take_share(self, due: int) -> None:
        kept = [partition for partition, held in self._held.items() if not held.worker.stopping]
        for partition in kept[due:]:
            self._held[partition].worker.stop()
        if len(kept) >= due:
            return
        places = [partition for partition in range(self._store.partitions) if partition not in self._held]
        now = await self._store.now_ms()
        found = await asyncio.gather(*(self._readers.place(self._duty.group, partition) for partition in places))
        free = [partition for partition, place in zip(places, found, strict=True) if place.lease_ms <= now]
        for partition in free[: due - len(kept)]:
            await self._acquire(partition)

    async def _acquire(self, partition: int) -> None:
        group = self._duty.group
        reader = await Reader.acquire(
            self._store,
            self._readers,
            group,
            partition,
            start=self._settings.mark(partition),
            holder=f"{self.name}/{self.id}",
            lease=self._lease,
        )
        if reader is not None:
            worker = self._hire(reader)
            task = asyncio.create_task(worker.run())
            task.add_done_callback(lambda _: self._wake.set())
            self._held[partition] = _Held(worker, task)

    def _reap(self) -> None:
        """Let go of workers that have ended; what went wrong in one ends the member."""
        for partition, held in list(self._held.items()):
            if held.task.done():
                del self._held[partition]
                error = held.task.exception()
                if isinstance(error, ReaderFenced):
                    _log.warning("group %r: partition %d: %s", self._duty.group, partition, error)
                elif error is not None:
                    raise error

    async def _leave(self) -> None:
        """Cancel the handlers, write what was handled, give the partitions up, and be a member no longer."""
        tasks = [held.task for held in self._held.values()]
        for held in self._held.values():
            held.worker.stop(cancel=True)
        while tasks:
            _, pending = await asyncio.wait(tasks, timeout=self._lease / 3)
            if not pending:
                break
            await self._keep_while_leaving()
        for failed in [task.exception() for task in tasks if not task.cancelled()]:
            if failed is not None and not isinstance(failed, ReaderFenced):
                _log.error("group %r: a partition could not be left in order: %s", self._duty.group, failed)
        try:
            async with asyncio.timeout(_LEAVING):
                await self._readers.leave(self._duty.group, self.id)
        except Exception as error:  # its lease ends by itself
            _log.warning("group %r: left without a word: %s", self._duty.group, error)

    async def _keep_while_leaving(self) -> None:
        """Handlers that take long are waited for while their partitions are held."""
        try:
            async with asyncio.timeout(self._lease / 2):
                await asyncio.gather(*(self._renew(held) for held in self._held.values() if not held.task.done()))
        except (TimeoutError, ServerUnavailable):
            pass

    async def _listen(self) -> None:
        """Wake the workers whose feeds grew. A hint only: each looks by itself now and then."""
        seen: dict[int, int] = {}
        while True:
            held = {partition: one.worker for partition, one in self._held.items() if not one.worker.stopping}
            after = {p: max(worker.position, seen.get(p, 0)) for p, worker in held.items()}
            found: dict[int, int] = {}
            if after:
                try:
                    found = await self._readers.wait(after, self._poll)
                except LogClosed:
                    return
                except Exception as error:
                    _log.info("group %r: no hints: %s", self._duty.group, error)
            for partition, seq in found.items():
                seen[partition] = seq
                if partition in held:
                    held[partition].more()
            await asyncio.sleep(0.002 if found else 0.02 if after else self._poll / 4)


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Do the work to its end however often the caller is cancelled meanwhile; then pass the cancellation on."""
    task, cancelled = asyncio.create_task(work), None
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()
        raise cancelled
    return task.result()
