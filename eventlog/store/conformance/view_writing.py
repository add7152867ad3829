"""What is kept of a conversation: state, rows, entries, sums; how it begins afresh, and how it goes."""

from __future__ import annotations

from eventlog.identity import LogId
from eventlog.reader import Store
from eventlog.store.conformance.suite import LOG, notes, put
from eventlog.store.conformance.view_suite import beside, filed, held, kept, writing
from eventlog.store.readers import ReaderStore
from eventlog.store.views import PAGE, Snapshot, ViewId, ViewStore, Writing


class ViewWriting:
    async def test_what_is_written_adds_to_what_is_there(
        self, store: Store, readers: ReaderStore, views: ViewStore
    ) -> None:
        view = await held(store, readers, views)
        await view.write(
            writing(kept=kept("one"), rows=[b"1", b"2"], entries={"k": filed("d"), "l": filed("e")}, sums={"n": 2})
        )
        await view.write(
            writing(
                kept=kept("two", version=2),
                rows=[b"2", b""],
                entries={"k": None, "l": filed("f"), "": filed("")},
                sums={"n": -2, "m": 0, "": 3},
            )
        )
        assert await view.contents() == (
            kept("two", version=2),
            [b"1", b"2", b"2", b""],
            {"l": filed("f"), "": filed("")},
            {"n": 0, "m": 0, "": 3},
        )
        assert await view.totals() == {"": 3}
        assert await views.load(view.view, view.partition, [LOG, LogId("acme", "none"), LOG]) == [
            kept("two", version=2),
            None,
            kept("two", version=2),
        ]
        assert await views.load(view.view, view.partition, []) == []

    async def test_any_bytes_are_kept_as_they_are(self, store: Store, readers: ReaderStore, views: ViewStore) -> None:
        view = await held(store, readers, views)
        hostile = bytes(range(256)) + b"|\0\r\n"
        (other,) = beside(store, 1)
        state = kept()._replace(state=hostile)
        await view.write(
            writing(kept=state, rows=[hostile, b""], entries={"k": filed("")._replace(document=hostile)}),
            writing(other, kept=kept(log=other)._replace(state=b"")),
        )
        assert await view.contents() == (state, [hostile, b""], {"k": (hostile, {})}, {})
        assert await view.contents(other) == (kept(log=other), [], {}, {})

    async def test_a_fresh_writing_takes_the_place_of_all_before(
        self, store: Store, readers: ReaderStore, views: ViewStore
    ) -> None:
        view, (other, never) = await held(store, readers, views), beside(store, 2)
        for log in (LOG, other):
            await view.write(
                writing(
                    log,
                    rows=[b"1"],
                    entries={"k": filed("d", by="x", to="y"), "l": filed("e", by="x")},
                    sums={"n": 2, "m": -1, "z": 0},
                )
            )
        fresh = writing(rows=[b"2"], entries={"l": filed("g", to="z"), "no": None}, sums={"n": 5}, fresh=True)
        await view.write(fresh, writing(never, fresh=True))
        assert await view.contents() == (kept(), [b"2"], {"l": filed("g", to="z")}, {"n": 5})
        assert await view.contents(never) == (kept(log=never), [], {}, {})
        assert [(line.log, line.key) for line in await view.lines("by")] == [(other, "k"), (other, "l")]
        assert [(line.sort, line.log, line.key) for line in await view.lines("to")] == [
            ("y", other, "k"),
            ("z", LOG, "l"),
        ]
        assert await view.totals() == {"n": 7, "m": -1}

    async def test_what_is_kept_of_a_conversation_goes_and_comes(
        self, store: Store, readers: ReaderStore, views: ViewStore
    ) -> None:
        view, (other,) = await held(store, readers, views), beside(store, 1)
        whole = Writing(LOG, kept(), False, [b"1"], {"k": filed("d", by="x")}, {"n": 2})
        gone = Writing(LOG, None, False, [b"no"], {"no": filed("d", by="x")}, {"no": 2})
        await view.write(gone)
        for _ in range(2):
            await view.write(whole, writing(other, sums={"m": 1}))
            await view.write(gone)
            assert await view.contents() is None
            assert await views.load(view.view, view.partition, [LOG]) == [None]
            assert await views.indexes(view.view, view.partition) == []
        assert await view.totals() == {"m": 2}
        assert [log async for log, _ in views.kept(view.view, view.partition)] == [other]

    async def test_a_conversation_is_forgotten_whoever_holds_it(
        self, store: Store, readers: ReaderStore, views: ViewStore
    ) -> None:
        view, (other, tenants) = await held(store, readers, views), (*beside(store, 1), *beside(store, 1, tenant="b"))
        logs = (LOG, other, tenants)
        each = [writing(log, rows=[b"1"], entries={"k": filed("d", by="x", to="y")}, sums={"n": 2}) for log in logs]
        await view.write(*each)
        for _ in range(2):
            await views.forget(view.view, LOG)
            assert await view.contents() is None
            assert [line.log for line in await view.lines("by")] == [other]
            assert await view.totals() == {"n": 2}
        for log in (other, tenants, LogId("never", "seen")):
            await views.forget(view.view, log)
        known = await view.known()
        assert (known.contents, known.indexes, known.totals) == ({}, {}, {})
        await view.write(*each)
        assert await view.totals() == {"n": 4}
        await views.forget(ViewId("never", 1), LOG)

    async def test_a_dropped_view_leaves_nothing_and_can_be_dropped_again(
        self, store: Store, readers: ReaderStore, views: ViewStore
    ) -> None:
        view = await held(store, readers, views)
        for log in (LOG, *beside(store, 3), *beside(store, 3, tenant="b")):
            await view.write(writing(log, rows=[b"1"], entries={"k": filed("d", by="x")}, sums={"n": 1}))
        for _ in range(2):
            await views.drop(view.view)
            known = await view.known()
            assert (known.progress, known.contents, known.indexes, known.totals) == (None, {}, {}, {})
            assert await views.size(view.view) == 0
            snapshot = await views.read(view.view, LOG)
            assert (snapshot.present, snapshot.kept, snapshot.rows, snapshot.total) == (False, None, [], 0)

    async def test_a_read_gives_the_newest_rows_and_the_log_behind(
        self, store: Store, readers: ReaderStore, views: ViewStore
    ) -> None:
        assert await views.read(ViewId("never", 1), LOG) == Snapshot(False, None, [], 0, [])
        view = await held(store, readers, views)
        assert await views.read(view.view, LOG) == Snapshot(True, None, [], 0, [])
        for number in range(PAGE // 50 + 1):
            await put(store, notes(*range(50)), f"op-{number}")
        entries = await store.read(LOG, 1, None, 10_000)
        assert await views.read(view.view, LOG) == Snapshot(True, None, [], 0, entries[: PAGE + 1])
        assert (await views.read(ViewId("never", 1), LOG)).behind == entries[: PAGE + 1]
        for version in (3, len(entries)):
            state = kept("s", version=version, stamp=entries[version - 1].stamp)
            rows = [b"1", b"2", b"3"]
            await view.write(writing(kept=state, rows=rows, fresh=True))
            behind = entries[version - 1 :][: PAGE + 1]
            for last, newest in ((None, rows), (2, rows[1:]), (3, rows), (9, rows), (1, rows[2:]), (0, [])):
                assert await views.read(view.view, LOG, last) == Snapshot(True, state, newest, 3, behind)
        assert [entry.version for entry in behind] == [len(entries)]

    async def test_a_large_step_is_taken_whole(self, store: Store, readers: ReaderStore, views: ViewStore) -> None:
        view = await held(store, readers, views)
        rows = [b"%d" % number for number in range(10_000)]
        entries = {f"k{number}": filed(str(number), by=f"{number % 7}", to="x") for number in range(5_000)}
        sums = {f"s{number}": number for number in range(1_001)}
        other = beside(store, 1)[0]
        many = [writing(log, rows=[b"1"], sums={"n": 1}) for log in beside(store, 1_500, tenant="b")]
        await view.write(writing(rows=rows, entries=dict(entries), sums=sums), writing(other, sums={"n": 1}), *many)
        assert await view.contents() == (kept(), rows, entries, sums)
        assert len(await view.lines("to", count=10_000)) == 5_000
        assert (await views.read(view.view, LOG, 2)).rows == rows[-2:]
        assert await view.totals("b") == {"n": 1_500}
        out = {key: None if number % 2 else filed("m", by="m") for number, key in enumerate(entries)}
        await view.write(writing(rows=rows, entries=dict(out)))
        assert (await view.keys("to"), len(await view.lines("by", count=10_000))) == ([], 2_500)
        assert (await views.read(view.view, LOG, 0)).total == 20_000
        assert len({log async for log, _ in views.kept(view.view, view.partition)}) == 1_502
        assert await views.size(view.view) > 10_000
        await views.forget(view.view, LOG)
        assert await view.totals() == {"n": 1}
        assert await views.indexes(view.view, view.partition) == []
