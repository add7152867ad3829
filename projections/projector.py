"""Keeps views up to date: builds the generations that are wanted, follows the feeds, makes the whole ones live."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Literal

from eventlog.errors import GroupGone, InvalidInput, ProjectionStopped, ViewMissing
from eventlog.identity import check_id
from eventlog.log import EventLog
from eventlog.member import Member, finish
from eventlog.reader import Reader, ends_of
from eventlog.store.readers import Settings
from eventlog.store.views import ViewId
from projections.live import Live
from projections.marks import has_passed, mark_of
from projections.partition import Applied, Partition, Task, Told
from projections.progress import Scan
from projections.projection import Projection
from projections.registry import Generation, Record
from projections.status import retry

_log = logging.getLogger("eventlog.projections")
_LOOK = 0.25
"""Seconds between two looks at which generations there are."""

OnError = Literal["stop", "wait"]


def _nobody(_: Told) -> None:
    pass


class Projector:
    """Keeps views of some projections; several processes share the partitions.

    ``on_error``: what becomes of an event that a projection cannot apply. It ``stop``s before it,
    the others going on; or sets that conversation to ``wait``. ``batch`` is about how many events
    are applied in one step, ``lease`` for how many seconds a process that died holds its partitions,
    ``poll`` how often feeds are looked at when no hint comes. ``told`` hears of each step before or
    after it is done; ``after`` is awaited once events are applied and written, and may have an
    effect outside unless they are ``replaying``. A crash may come between, and around the moment in
    which another generation becomes live an event may come from both: what must happen is a
    consumer group's.
    """

    def __init__(
        self,
        log: EventLog,
        projections: Sequence[Projection[Any]],
        *,
        on_error: OnError = "stop",
        batch: int = 1_000,
        lease: float = 15.0,
        poll: float = 1.0,
        told: Callable[[Told], None] = _nobody,
        after: Callable[[Applied], Awaitable[None]] | None = None,
    ) -> None:
        if on_error not in ("stop", "wait"):
            raise InvalidInput(f"on_error={on_error!r}: give 'stop' or 'wait'")
        if batch < 1:
            raise InvalidInput(f"batch={batch}: give 1 or more")
        if not 0.1 <= lease <= 24 * 3600:
            raise InvalidInput(f"lease={lease}: give 0.1 seconds to a day")
        names = [check_id(projection.name, "projection name") for projection in projections]
        if len(set(names)) < len(names):
            raise InvalidInput(f"two projections of one name: {', '.join(names)}")
        self._live = Live.of(log.store)
        self._projections = projections
        self._waits = on_error == "wait"
        self._batch = batch
        self._lease = lease
        self._poll = poll
        self._told = told
        self._after = after
        self._stopped: dict[str, ProjectionStopped] = {}

    async def run(self) -> None:
        """Keep the views until cancelled.

        A projection that stops is told as an error, and the others go on. Raises
        ``ProjectionStopped`` when every one has stopped, and the server's errors when it stays away.
        """
        self._stopped.clear()
        keepers = {asyncio.create_task(self._keep(one), name=one.name) for one in self._projections}
        try:
            while keepers:
                done, keepers = await asyncio.wait(keepers, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    error = task.exception()
                    if isinstance(error, ProjectionStopped):
                        if keepers:
                            _log.error("%s; the others go on", error)
                        self._stopped[task.get_name()] = error
                    elif error is not None:
                        raise error
        finally:
            await _end(keepers)
        self._raise_stopped()

    async def catch_up(self) -> None:
        """Keep the views until they have applied all that is in the logs now and are live; then return.

        What could not be applied before is tried again.
        Raises ``ProjectionStopped`` for one that stopped, once the others are there.
        """
        for projection in self._projections:
            if Record.unpack(await self._live.views.record(projection.name)).generations:
                await retry(self._live, projection.name)
        ends = await self._live.store.feed_ends()
        await self._until(self.run(), lambda: self._are_at(ends))
        self._raise_stopped()

    async def rebuild(self, name: str) -> Generation:
        """Build a new generation of this projection, make it live when it is whole, and return it.

        One that was begun and not finished is gone on with. Raises what ``run`` raises.
        """
        projection = self._named(name)
        now = await self._live.store.now_ms()
        record = await self._live.change(name, lambda before: _with_building(before, projection, now))
        building = next(one for one in record.kept_by(projection.version) if one.state == "building")

        async def is_whole() -> bool:
            self._live.forget(name)
            found = (await self._live.record(name)).get(building.number)
            if found is None:
                raise InvalidInput(
                    f"generation {building.number} of projection {name!r} was dropped while it was built"
                )
            return found.state == "ready"

        await self._until(self._keep(projection, only=building.number), is_whole)
        return building._replace(state="ready")

    def _raise_stopped(self) -> None:
        for stopped in self._stopped.values():
            raise stopped

    async def _until(self, work: Any, reached: Callable[[], Awaitable[bool]]) -> None:
        """Do the work until something is reached."""
        task = asyncio.create_task(work)
        try:
            while not await reached():
                await asyncio.wait([task], timeout=0.05)
                if task.done():
                    task.result()
                    return
        finally:
            await _end([task])

    async def _are_at(self, ends: Sequence[int]) -> bool:
        for projection in self._projections:
            if projection.name in self._stopped:
                continue
            self._live.forget(projection.name)
            view = await self._live.find(projection)
            if view is None or not await self._is_at(view, ends) or await self._is_asked(view):
                return False
        return True

    async def _is_asked(self, view: ViewId) -> bool:
        """Whether events that could not be applied are yet to be tried again."""
        partitions = range(self._live.store.partitions)
        counts = await asyncio.gather(*(self._live.readers.counts(view.group, partition) for partition in partitions))
        return any(count.asked for count in counts)

    async def _is_at(self, view: ViewId, ends: Sequence[int]) -> bool:
        """Whether the scan is done and the mark has passed the ends, in every partition."""
        live = self._live
        # A feed that lost its end meanwhile may never reach it again: then where it ends now is enough.
        ends = [min(pair) for pair in zip(ends, await live.store.feed_ends(), strict=True)]
        for partition, end in enumerate(ends):
            if not Scan.parse(await live.views.progress(view, partition)).done:
                return False
            mark = await mark_of(live.readers, view, partition)
            if not await has_passed(live.store, partition, mark, end):
                return False
        return True

    def _named(self, name: str) -> Projection[Any]:
        for projection in self._projections:
            if projection.name == name:
                return projection
        known = ", ".join(repr(projection.name) for projection in self._projections)
        raise InvalidInput(f"there is no projection {name!r}; there are {known}")

    async def _keep(self, projection: Projection[Any], only: int | None = None) -> None:
        """Have a member for each generation of this version, until cancelled; see to it that there is one."""
        members: dict[int, asyncio.Task[None]] = {}
        goals: dict[int, list[int]] = {}
        told_old = False
        try:
            while True:
                record = await self._wanted(projection)
                kept = [one for one in record.kept_by(projection.version) if only in (None, one.number)]
                if not kept and not told_old:
                    told_old = True
                    _log.warning(
                        "projection %r: this release has version %d, a higher one is kept: nothing is done here",
                        projection.name,
                        projection.version,
                    )
                for generation in kept:
                    if generation.number not in members:
                        members[generation.number] = asyncio.create_task(self._follow(projection, generation))
                    if generation.state == "building":
                        await self._flip_when_whole(projection, generation, goals)
                for number in set(members) - {one.number for one in kept}:
                    await _end([members.pop(number)])
                if members:
                    await asyncio.wait(members.values(), timeout=_LOOK, return_when=asyncio.FIRST_COMPLETED)
                else:
                    await asyncio.sleep(_LOOK)
                for number in [number for number, task in members.items() if task.done()]:
                    task = members.pop(number)
                    gone = task.exception()
                    if not isinstance(gone, GroupGone | ViewMissing):
                        task.result()
                    _log.warning("view %s.%d: dropped, or its readers are: %s", projection.name, number, gone)
                    await asyncio.sleep(_LOOK)
        finally:
            await _end(members.values())

    async def _wanted(self, projection: Projection[Any]) -> Record:
        """The record, with a generation to build where a higher version wants one."""
        self._live.forget(projection.name)
        record = await self._live.record(projection.name)
        if record.wants_building(projection.version):
            now = await self._live.store.now_ms()
            record = await self._live.change(
                projection.name,
                lambda before: (
                    before.begin(projection.version, now) if before.wants_building(projection.version) else before
                ),
            )
        return record

    async def _follow(self, projection: Projection[Any], generation: Generation) -> None:
        """Be a member of the readers of this generation. Its marks are registered before anything is scanned."""
        live, view = self._live, ViewId(projection.name, generation.number)
        if generation.state == "building":
            await live.readers.create(view.group, Settings(None, await ends_of(live.store)))
            await live.views.create(view)
            live.forget(projection.name)
            if (await live.record(projection.name)).get(view.generation) is None:
                # dropped meanwhile: what was just made would hold the feed for ever
                await live.readers.remove(view.group)
                await live.views.drop(view)
        settings = await live.readers.settings(view.group)
        number = generation.number

        def is_live() -> bool:
            known = live.known(projection.name)
            return known is not None and known.live == number

        task = Task(projection, view, self._waits, self._batch, self._poll, self._told, self._after, is_live)
        readers = live.open_readers()

        def hire(reader: Reader) -> Partition:
            return Partition(live.store, readers, live.views, reader, task)

        try:
            await Member(live.store, readers, settings, task, hire, lease=self._lease, poll=self._poll).run()
        finally:
            await finish(readers.close())

    async def _flip_when_whole(
        self, projection: Projection[Any], generation: Generation, goals: dict[int, list[int]]
    ) -> None:
        """Make a generation live once it is scanned and has applied what there was when it was first looked at."""
        view = ViewId(projection.name, generation.number)
        try:
            if generation.number not in goals:
                goals[generation.number] = await self._live.store.feed_ends()
            if not await self._is_at(view, goals[generation.number]):
                return
            await self._live.change(
                projection.name,
                lambda record: record.flip(view.generation) if record.get(view.generation) else record,
            )
        except GroupGone:
            return  # not created yet, or dropped
        self._told(Told("flipped", view, -1))


def _with_building(before: Record, projection: Projection[Any], now_ms: int) -> Record:
    """With a generation of this version that is being built: one that was begun before, or a new one."""
    if any(one.state == "building" for one in before.kept_by(projection.version)):
        return before
    return before.begin(projection.version, now_ms)


async def _end(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel the tasks and wait until they have ended; what went wrong in one that is not wanted is only noted."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        await finish(asyncio.wait(running))
    for task in tasks:
        error = None if task.cancelled() else task.exception()
        if error is not None and task in running:
            _log.info("ended with: %s", error)
