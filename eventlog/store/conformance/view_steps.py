"""A view is written in one fenced step of its reader, or not at all; records of projections change one at a time."""

from __future__ import annotations

from eventlog.errors import FeedLost, InvalidInput, ReaderFenced, ViewMissing
from eventlog.identity import LogId, partition_of
from eventlog.reader import Store
from eventlog.store.conformance.suite import LOG
from eventlog.store.conformance.view_suite import LEASE, Held, filed, held, kept, marks, refused, writing
from eventlog.store.readers import Advance, Counts, Hold, Mark, ReaderStore, Waiting
from eventlog.store.view_checks import MOST
from eventlog.store.views import ViewId, ViewStore, Writing


def everything() -> Writing:
    """A writing with something of every kind."""
    return writing(rows=[b"row"], entries={"k": filed("d", by="x")}, sums={"n": 1})


async def attempt(view: Held, before: Mark | None, mark: Mark | None, fence: str = "aa") -> Counts:
    """Commit something of every kind under a fence and from a mark."""
    hold, step = view.hold._replace(fence=fence), Advance(before, mark, 1, {"a/b": Waiting(1, 1, 1)}, {"1@a/b": b"x"})
    return await view.views.commit(view.view, hold, step, [everything()], LEASE, scanned="s")


class ViewSteps:
    async def test_a_step_moves_the_mark_and_writes(self, store: Store, readers: ReaderStore, views: ViewStore) -> None:
        view, (first, *_) = await held(store, readers, views), await marks(store)
        assert await views.progress(view.view, view.partition) is None
        assert await attempt(view, None, first) == Counts(1, 1, 0)
        known = await view.known()
        assert (known.place.mark, known.place.window, known.progress) == (first, 1, "s")
        assert known.contents == {LOG.path: (kept(), [b"row"], {"k": filed("d", by="x")}, {"n": 1})}
        assert [(line.key, line.document) for line in known.indexes["acme", "by"]] == [("k", b"d")]
        assert known.totals == {"acme": {"n": 1}}
        assert await readers.waiting(view.hold.group, view.partition) == {"a/b": Waiting(1, 1, 1)}

    async def test_a_former_holder_changes_nothing(self, store: Store, readers: ReaderStore, views: ViewStore) -> None:
        view, (first, second, _) = await held(store, readers, views), await marks(store)
        await attempt(view, None, first)
        await readers.release(view.hold)
        successor = Hold(view.hold.group, view.partition, "bb")
        for fence in ("aa", "cc"):
            before = await view.known()
            error = await refused(ReaderFenced, attempt(view, first, second, fence))
            assert f"partition {view.partition} of group '@history.1' is held by " in str(error)
            assert await view.known() == before
            await readers.acquire(successor, "two", LEASE)
        view.hold, view.mark = successor, first
        await view.write(writing(rows=[b"2"]), mark=second)
        contents = await view.contents()
        assert contents is not None
        assert contents.rows == [b"row", b"2"]

    async def test_a_mark_that_is_not_where_it_was_left_is_not_moved(
        self, store: Store, readers: ReaderStore, views: ViewStore
    ) -> None:
        view, (first, second, third) = await held(store, readers, views), await marks(store)
        await view.write(mark=second)
        before = await view.known()
        for wrong, mark in ((None, third), (first, third), (None, first), (first, second), (third, second)):
            await refused(ReaderFenced, attempt(view, wrong, mark))
        assert await view.known() == before

    async def test_a_mark_names_only_an_entry_that_is_there(
        self, store: Store, readers: ReaderStore, views: ViewStore
    ) -> None:
        view, (first, second, third) = await held(store, readers, views), await marks(store)
        await view.write(mark=first)
        before = await view.known()
        for gone in (Mark(second.seq, second.stamp ^ 1), Mark(third.seq + 1, third.stamp)):
            await refused(FeedLost, attempt(view, first, gone))
        assert await view.known() == before

    async def test_many_steps_are_taken_while_one_mark_stands(
        self, store: Store, readers: ReaderStore, views: ViewStore
    ) -> None:
        view, (first, *_) = await held(store, readers, views), await marks(store)
        for step, mark in enumerate((None, None, first, first, None)):
            await view.write(writing(rows=[b"%d" % step], sums={"n": 1}), mark=mark, scanned=str(step))
        contents = await view.contents()
        assert contents is not None
        assert contents.rows == [b"0", b"1", b"2", b"3", b"4"]
        assert await view.totals() == {"n": 5}
        assert await views.progress(view.view, view.partition) == "4"
        await view.write()
        assert await views.progress(view.view, view.partition) == "4"

    async def test_a_view_that_is_not_there_takes_nothing(
        self, store: Store, readers: ReaderStore, views: ViewStore
    ) -> None:
        view, (first, *_) = await held(store, readers, views), await marks(store)
        await views.drop(view.view)
        await refused(ViewMissing, attempt(view, None, first))
        assert (await view.known()).place.mark is None
        assert not (await views.read(view.view, LOG)).present
        await views.create(view.view)
        assert await view.contents() is None
        await attempt(view, None, first)
        await views.create(view.view)
        assert await view.contents() is not None, "making what is there changes nothing"
        assert await views.progress(view.view, view.partition) == "s"

    async def test_what_cannot_be_written_is_refused_whole(
        self, store: Store, readers: ReaderStore, views: ViewStore
    ) -> None:
        view = await held(store, readers, views)
        elsewhere = next(
            log
            for log in (LogId("acme", f"c{number}") for number in range(1_000))
            if partition_of(log.path, store.partitions) != view.partition
        )
        wrong = {
            "holds a NUL": [writing(entries={"k": filed("d", by="a\0b")})],
            r"index 'a\x00b' holds a NUL": [writing(entries={"k": filed("d", **{"a\0b": "x"})})],
            r"key '\ud800' has a lone surrogate": [writing(entries={"\ud800": None})],
            r"index '\udfff' has a lone surrogate": [writing(entries={"k": filed("d", **{"\udfff": "x"})})],
            r"sort text '\ud800' has": [writing(entries={"k": filed("d", by="\ud800")})],
            r"sum '\ud800' has": [writing(sums={"\ud800": 1})],
            "to change by 9,007,199,254,740,993; at most 9,007,199,254,740,992": [writing(sums={"n": MOST + 1})],
            "to change by -9,007,199,254,740,993; at most": [writing(sums={"n": -MOST - 1})],
            "two writings of acme/support": [writing(), writing()],
            "belongs to partition": [writing(elsewhere)],
        }
        before = await view.known()
        for problem, writings in wrong.items():
            assert problem in str(await refused(InvalidInput, view.write(everything_else(view), *writings)))
            assert await view.known() == before
        await view.write(writing(sums={"up": MOST, "down": -MOST}))
        assert await view.totals() == {"up": MOST, "down": -MOST}
        await view.write(writing(sums={"up": MOST, "down": -1}))
        assert await view.totals() == {"up": 2 * MOST, "down": -MOST - 1}

    async def test_a_record_is_replaced_only_by_who_knows_it(self, views: ViewStore) -> None:
        assert await views.record("p") is None
        assert not await views.replace("p", b"", b"1"), "an empty record is not none"
        assert await views.replace("p", None, b"1|+\0")
        assert not await views.replace("p", None, b"1|+\0"), "another one's equal record is another one's"
        assert not await views.replace("p", b"1", b"2")
        assert await views.record("p") == b"1|+\0"
        assert await views.replace("p", b"1|+\0", b"")
        assert await views.replace("q", None, b"q")
        assert (await views.record("p"), await views.names()) == (b"", ["p", "q"])
        assert not await views.replace("p", b"1|+\0", None)
        assert await views.replace("p", b"", None)
        assert await views.replace("p", b"", None), "what is not there is removed"
        assert (await views.record("p"), await views.names()) == (None, ["q"])

    async def test_generations_are_apart(self, store: Store, readers: ReaderStore, views: ViewStore) -> None:
        names = (ViewId("p", 1), ViewId("p", 2), ViewId("p", 11), ViewId("p:1", 1))
        generations = [await held(store, readers, views, view=view) for view in names]
        for number, view in enumerate(generations, 1):
            await view.write(
                writing(rows=[b"%d" % number], entries={"k": filed("d", by=str(number))}, sums={"n": number})
            )
        before = [await view.known() for view in generations[1:]]
        await views.drop(generations[0].view)
        assert await generations[0].contents() is None
        assert [await view.known() for view in generations[1:]] == before
        for number, view in enumerate(generations[1:], 2):
            assert (await views.read(view.view, LOG)).rows == [b"%d" % number]
            assert await view.totals() == {"n": number}
            assert [line.sort for line in await view.lines("by")] == [str(number)]


def everything_else(view: Held) -> Writing:
    """A writing that could be taken, of another conversation of the partition."""
    logs = (LogId("other", f"c{number}") for number in range(1_000))
    log = next(log for log in logs if partition_of(log.path, view.store.partitions) == view.partition)
    return writing(log, rows=[b"row"], entries={"k": filed("d", by="x")}, sums={"n": 1})
