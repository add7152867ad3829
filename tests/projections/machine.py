"""Random lives of logs and of the projectors that keep their views, against models of both.

Events come from the generator of well-formed logs and from real runs. Processes are killed between
any two of their calls to the server, by an error of what they tell, or cancelled anywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple, TypeVar

import orjson
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from eventlog.errors import ConversationDeleted, InvalidInput
from eventlog.events import Event
from eventlog.identity import LogId, partition_of
from eventlog.messages import assistant, tool_call, user
from eventlog.reader import Store
from eventlog.store.views import Contents, ViewId
from projections import history, maintained
from projections.partition import Told
from projections.projection import Projection, canonical
from projections.projector import Projector
from projections.standing import Standing
from projections.views.history import HISTORY
from tests.history.model import Model
from tests.history.strategies import Builder, Choice
from tests.projections.counting import COUNTING, Wanted, wanted
from tests.projections.mortal import Life
from tests.projections.world import World, drafts

T = TypeVar("T")
LOGS = (LogId("blue/sea", "a:{b}"), LogId("blue", "sea/a:{b}"), LogId("blue", "é%2F\n"))
PROJECTIONS: tuple[Projection[Any], ...] = (HISTORY, COUNTING)
NAMES = ("history", "counting")
LASTS = (1, 2, 3, 7, 40)
_SECONDS = 3.0
"""How long a projector works when nothing ends it."""

_DOING = {
    "start": 3,
    "message": 3,
    "outside_message": 2,
    "imported_call": 1,
    "result": 5,
    "call": 2,
    "complete": 2,
    "call_completed": 6,
    "fail": 1,
    "commit": 2,
    "abort": 1,
    "take_over": 1,
    "rewind": 1,
    "compact": 1,
    "compact_raw": 1,
    "approval": 1,
    "other": 1,
}
_NUMBER = st.integers(0, 31)
CHOICES = st.lists(
    st.builds(Choice, st.sampled_from([name for name, n in _DOING.items() for _ in range(n)]), *[_NUMBER] * 3),
    min_size=1,
    max_size=8,
)


class Writer(Builder):
    """The generator, and what it does not do: a run gets another holder."""

    def do_take_over(self, a: int, b: int, c: int) -> None:
        run = self._run(a, outside=False)
        if run is not None:
            self.add("run-resumed", {"by": f"holder {b}", "fence": f"{c:x}"}, run)


class End(NamedTuple):
    """How the work of one process ends."""

    how: str
    """``killed`` at a call, ``heard``: after it had its effect; a ``told`` step raises; ``cancelled``; by itself."""
    after: int


class Ended(Exception):
    """What a step that is told raises."""


ENDS = st.builds(End, st.sampled_from(["killed", "heard", "told", "cancelled"]), st.integers(0, 120))
PART = st.integers(0, 31)


class Lives(RuleBasedStateMachine):
    """The rules. A subclass makes the world."""

    world: World

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work in the world's loop."""
        raise NotImplementedError

    @initialize()
    def begin(self) -> None:
        self.writers = {log: Writer() for log in LOGS}
        self.deleted: set[LogId] = set()

    # -- what is written -------------------------------------------------------------------------

    @rule(log=st.sampled_from(LOGS), choices=CHOICES, together=st.integers(1, 4))
    def write(self, log: LogId, choices: Sequence[Choice], together: int) -> None:
        """Events, so many in one operation."""
        if log in self.deleted:
            return
        writer = self.writers[log]
        before = len(writer.events)
        writer.build(choices)
        new = drafts(writer.events[before:])

        async def append() -> None:
            for start in range(0, len(new), together):
                await self.world.append(log, *new[start : start + together])

        self.run(append())

    @rule(log=st.sampled_from(LOGS), mode=st.sampled_from(["per-service-call", "per-run"]), how=st.integers(0, 7))
    def take_a_turn(self, log: LogId, mode: str, how: int) -> None:
        """A whole run with the recorder; it may fail, or be taken over in the middle."""
        if log not in self.deleted:
            self.run(self._turn(log, mode, fails=bool(how & 1), taken_over=bool(how & 2), answers=bool(how & 4)))

    async def _turn(self, log: LogId, mode: str, *, fails: bool, taken_over: bool, answers: bool) -> None:
        chat = self.world.chat(log)
        try:
            async with chat.run(mode, agent="weather") as run:
                await run.add(user("Weather?"))
                async with run.service_call() as call:
                    await call.complete(assistant(tool_call("w", "weather", {})), service={"response": run.id})
                if taken_over:
                    async with chat.resume(run.id, force=True) as run:  # noqa: PLW2901  it goes on under another holder
                        await self._go_on(run, call.function_calls[0], fails=fails, answers=answers)
                else:
                    await self._go_on(run, call.function_calls[0], fails=fails, answers=answers)
        except Ended:
            pass
        except InvalidInput:
            raise
        except Exception as error:
            if not taken_over:
                raise
            note(f"the former holder is told: {error}")
        writer, known = self.writers[log], len(self.writers[log].events)
        for event in [one async for one in chat.read()][known:]:
            writer.events.append(event)
            writer.ledger.apply(event)

    @staticmethod
    async def _go_on(run: Any, asked: Any, *, fails: bool, answers: bool) -> None:
        if answers:
            await run.add_result(asked, "rain")
        if fails:
            raise Ended
        if answers:
            async with run.service_call() as call:
                await call.complete(assistant("It rains."), service={"response": run.id + "b"})

    @rule(log=st.sampled_from(LOGS), choose=st.integers(0, 3))
    def delete(self, log: LogId, choose: int) -> None:
        """Now and then."""
        if choose == 0 and self.writers[log].events:
            assert self.run(self.world.chat(log).delete(force=True))
            self.deleted.add(log)

    # -- who works on the views ------------------------------------------------------------------

    @rule(first=ENDS, second=st.none() | ENDS, batch=st.integers(1, 9))
    def work(self, first: End, second: End | None, batch: int) -> None:
        """One projector works, or two side by side; each comes to an end."""
        self.run(self._work([first, *([second] if second else [])], batch))

    async def _work(self, ends: Sequence[End], batch: int) -> None:
        await asyncio.gather(*(self._process(end, batch) for end in ends))

    async def _process(self, end: End, batch: int, rebuilds: str | None = None) -> None:
        steps = end.after // 4

        def told(_: Told) -> None:
            nonlocal steps
            steps -= 1
            if steps < 0 and end.how == "told":
                raise Ended

        projector = self.projector(batch=batch, told=told)
        life = Life(end.after if end.how in ("killed", "heard") else None, heard=end.how == "heard")
        life.live(projector)
        task = asyncio.create_task(projector.run() if rebuilds is None else projector.rebuild(rebuilds))  # type: ignore[arg-type]
        if end.how == "cancelled":
            for _ in range(end.after * 2):
                await asyncio.sleep(0)
        else:
            until = asyncio.get_running_loop().time() + self.seconds
            while not (task.done() or life.over) and asyncio.get_running_loop().time() < until:
                await asyncio.wait([task], timeout=self.seconds / 50)
        task.cancel()
        await asyncio.wait([task])
        error = None if task.cancelled() else task.exception()
        if error is not None and not life.over and not isinstance(error, Ended):
            raise error

    seconds = _SECONDS
    projections = PROJECTIONS

    def projector(self, **options: Any) -> Projector:
        return self.world.projector(*self.projections, lease=5.0, **options)

    @rule(name=st.sampled_from(NAMES))
    def rebuild(self, name: str) -> None:
        """To its end."""
        self.run(self.projector(batch=5).rebuild(name))

    @rule(name=st.sampled_from(NAMES), end=ENDS)
    def begin_to_rebuild(self, name: str, end: End) -> None:
        """The process ends in the middle, perhaps."""
        self.run(self._process(end, 3, rebuilds=name))

    @rule(name=st.sampled_from(NAMES))
    def roll_back(self, name: str) -> None:
        async def change() -> None:
            try:
                await self.world.live.change(name, lambda record: record.rollback())
            except InvalidInput as error:
                note(f"{error}")

        self.run(change())

    @rule(name=st.sampled_from(NAMES), which=PART)
    def drop(self, name: str, which: int) -> None:
        """A generation that is not live, or the whole projection."""

        async def drop() -> None:
            self.world.live.forget(name)
            record = await self.world.live.record(name)
            others = [one.number for one in record.generations if one.number != record.live]
            if which == 0:
                await self.world.drop_all(name)
            elif others:
                await self.world.drop(ViewId(name, others[which % len(others)]))

        self.run(drop())

    @rule(partition=PART, short=st.integers(-3, 3))
    def trim(self, partition: int, short: int) -> None:
        """The feed up to its slowest reader; a little less, or more than is right."""

        async def trim() -> None:
            store: Store = self.world.store
            where = partition % store.partitions
            marks = []
            for group in await self.world.live.readers.groups():
                place = await self.world.live.readers.place(group, where)
                marks.append(place.mark or (await self.world.live.readers.settings(group)).mark(where))
            if marks:
                await store.trim_feed(where, min(mark.seq for mark in marks) + 1 + short)

        self.run(trim())

    # -- what must be true -----------------------------------------------------------------------

    @rule(log=st.sampled_from(LOGS), last=st.sampled_from([None, *LASTS]))
    def load(self, log: LogId, last: int | None) -> None:
        """A history is always fresh, wherever the view is."""

        async def load() -> None:
            chat = self.world.chat(log)
            if log not in self.deleted:
                events = await self.world.events(log)
                assert await history.load(chat, last=last) == history.build(events, chat, last=last)
                return
            try:
                await history.load(chat, last=last)
            except ConversationDeleted:
                return
            raise AssertionError("the history of a deleted conversation was read")

        self.run(load())

    @rule(batch=st.integers(1, 20))
    def catch_up(self, batch: int) -> None:
        """Then everything is as the models have it."""
        self.run(self._catch_up(batch))

    async def _catch_up(self, batch: int) -> None:
        async with asyncio.timeout(100):
            await self.projector(batch=batch).catch_up()
        for log in LOGS:
            if log not in self.deleted:
                await self._agree(log, await self.world.events(log))
        await self._agree_across()
        for projection in PROJECTIONS:
            assert await self.world.verify(projection) == []

    async def _agree(self, log: LogId, events: list[Event]) -> None:
        chat, model = self.world.chat(log), Model(events)
        view = await maintained.load(chat, None)
        if view is None:
            kept = await self.world.contents(await self.world.live.view(HISTORY), log)
            # A call continued a unit that is not the last one: what it has not carried, only the whole log tells.
            assert (kept is None and not events) or (kept and Standing.unpack(kept.kept.state).chain is None)
            view = await history.load(chat)
        shown = [version for one in view.messages for version in one.versions]
        empty = {e.version for e in events if e.type == "history-compacted" and not e.data["messages"]}
        assert list(dict.fromkeys(shown)) == [version for version in model.now.versions if version not in empty]
        assert [call.version for call in view.open_calls] == model.open_calls()
        assert {call.version for call in view.open_calls if call.awaits_approval} == model.awaiting()
        assert sorted(view.stray_results) == sorted(model.stray_results())
        assert view.pairs == model.now.pairs
        assert view == history.build(events, chat)
        for last in LASTS:
            assert await history.load(chat, last=last) == history.build(events, chat, last=last)

    async def _agree_across(self) -> None:
        """What the counting projection keeps of each conversation, its indexes and totals."""
        live, view = self.world.live, await self.world.live.view(COUNTING)
        should: dict[LogId, Wanted] = {}
        for log in LOGS:
            if log not in self.deleted and self.writers[log].events:
                should[log] = wanted(await self.world.events(log))
            assert _as_wanted(await self.world.contents(view, log)) == should.get(log)
        for tenant in {log.tenant for log in LOGS}:
            sums: dict[str, int] = {}
            for partition in range(self.world.store.partitions):
                for name, amount in (await live.views.totals(view, partition, tenant)).items():
                    sums[name] = sums.get(name, 0) + amount
            totals: dict[str, int] = {}
            for log, one in should.items():
                for name, amount in one.sums.items() if log.tenant == tenant else ():
                    totals[name] = totals.get(name, 0) + amount
            assert {n: a for n, a in sums.items() if a} == {n: a for n, a in totals.items() if a}
            for index in ("runs", "open", "done", "calls"):
                await self._agree_index(view, tenant, index, should)

    async def _agree_index(self, view: ViewId, tenant: str, index: str, should: dict[LogId, Wanted]) -> None:
        for partition in range(self.world.store.partitions):
            lines = [
                (log, key, canonical(document), under[index])
                for log, one in should.items()
                if log.tenant == tenant and partition_of(log.path, self.world.store.partitions) == partition
                for key, (document, under) in one.entries.items()
                if index in under
            ]
            for reverse in (False, True):
                found, after = [], None
                while page := await self.world.live.views.index(
                    view, partition, tenant, index, count=2, after=after, reverse=reverse
                ):
                    found += [(line.log, line.key, line.document, line.sort) for line in page]
                    after = page[-1].member
                assert sorted(found) == sorted(lines)
                assert [one[3] for one in found] == sorted([one[3] for one in lines], reverse=reverse)

    def finish(self) -> None:
        """Whatever happened, it comes right."""
        self.run(self._catch_up(7))
        for name in NAMES:
            self.run(self._left_behind(name))

    async def _left_behind(self, name: str) -> None:
        """Every reader belongs to a generation that is there: nothing holds the feed for ever."""
        self.world.live.forget(name)
        record = await self.world.live.record(name)
        groups = await self.world.live.readers.groups()
        mine = [group for group in groups if group.startswith(f"@{name}.")]
        assert set(mine) <= {ViewId(name, one.number).group for one in record.generations}


def _as_wanted(contents: Contents | None) -> Wanted | None:
    if contents is None:
        return None
    entries = {key: (orjson.loads(filed.document), filed.under) for key, filed in contents.entries.items()}
    sums = {name: amount for name, amount in contents.sums.items() if amount}
    return Wanted([orjson.loads(row) for row in contents.rows], entries, sums)
