"""Indexes are sorted byte for byte, and paged exactly; totals are those of the conversations that are kept."""

from __future__ import annotations

from eventlog.errors import InvalidInput
from eventlog.reader import Store
from eventlog.store.conformance.suite import LOG
from eventlog.store.conformance.view_suite import beside, filed, held, refused, writing
from eventlog.store.readers import ReaderStore
from eventlog.store.views import Found, ViewStore


class ViewFinding:
    async def test_lines_stand_by_their_text_then_by_conversation_and_key(
        self, store: Store, readers: ReaderStore, views: ViewStore
    ) -> None:
        view, (first, second) = await held(store, readers, views), beside(store, 2)
        texts = ["b", "a", "", "é", "🦜", "ￜ", "a b", "a\n", "a/", "~", "B", "ab"]
        await view.write(
            writing(first, entries={text: filed(text, by=text) for text in texts}),
            writing(second, entries={"k": filed("tie", by="a"), "j": filed("tie", by="a")}),
        )
        found = await view.lines("by")
        assert [line.sort for line in found] == sorted([*texts, "a", "a"], key=str.encode)
        assert [line.member for line in found] == sorted([line.member for line in found], key=str.encode)
        assert [(line.log, line.key) for line in found if line.sort == "a"] == [
            (first, "a"),
            (second, "j"),
            (second, "k"),
        ]
        assert [line.document for line in found if line.log == first] == [
            text.encode() for text in sorted(texts, key=str.encode)
        ]
        assert await view.lines("none") == []
        assert await view.lines("by", tenant="b") == []

    async def test_pages_are_exact_both_ways_however_many_ties_there_are(
        self, store: Store, readers: ReaderStore, views: ViewStore
    ) -> None:
        view = await held(store, readers, views)
        for log in beside(store, 7):
            await view.write(writing(log, entries={f"{n}": filed("d", by="tie" if n else "lone") for n in range(9)}))
        for reverse in (False, True):
            whole = await view.lines("by", reverse=reverse)
            assert len(whole) == 63
            for count in (1, 4, 62, 63, 64):
                read: list[Found] = []
                while page := await view.lines(
                    "by", count=count, after=read[-1].member if read else None, reverse=reverse
                ):
                    assert len(page) <= count
                    read += page
                assert read == whole
        assert whole == (await view.lines("by"))[::-1]
        assert await view.lines("by", count=0) == []
        assert await view.lines("by", count=-1) == []

    async def test_any_text_is_a_place_to_go_on_from(
        self, store: Store, readers: ReaderStore, views: ViewStore
    ) -> None:
        view = await held(store, readers, views)
        await view.write(writing(entries={key: filed("d", by=key) for key in "acg"}))
        for after, keys in {"": "acg", "b": "cg", "c": "cg", "c\0~": "g", "+": "acg", "(a": "acg", "-": "acg"}.items():
            assert await view.keys("by", after=after) == list(keys)
        assert await view.keys("by", after="c", reverse=True) == ["a"]
        assert await view.keys("by", after="", reverse=True) == []
        await refused(InvalidInput, view.lines("by", after="\ud800"))

    async def test_an_entry_moves_between_indexes_and_places(
        self, store: Store, readers: ReaderStore, views: ViewStore
    ) -> None:
        view = await held(store, readers, views)
        await view.write(writing(entries={"k": filed("1", open="b", all="b"), "l": filed("1", open="a", all="a")}))
        assert (await view.keys("open"), await view.keys("all")) == (["l", "k"], ["l", "k"])
        assert await views.indexes(view.view, view.partition) == [("acme", "all"), ("acme", "open")]
        await view.write(writing(entries={"k": filed("2", done="x", all="0")}))
        assert [(line.key, line.sort, line.document) for line in await view.lines("all")] == [
            ("k", "0", b"2"),
            ("l", "a", b"1"),
        ]
        assert (await view.keys("open"), await view.keys("done")) == (["l"], ["k"])
        await view.write(writing(entries={"l": None, "k": filed("3", all="0")}))
        assert [(line.key, line.document) for line in await view.lines("all")] == [("k", b"3")]
        assert await views.indexes(view.view, view.partition) == [("acme", "all")]
        await view.write(writing(entries={"k": filed("4"), "never": None}))
        assert await views.indexes(view.view, view.partition) == []
        contents = await view.contents()
        assert contents is not None
        assert contents.entries == {"k": filed("4")}

    async def test_totals_are_those_of_what_is_kept(self, store: Store, readers: ReaderStore, views: ViewStore) -> None:
        view, (other,), (foreign,) = await held(store, readers, views), beside(store, 1), beside(store, 1, tenant="b")
        await view.write(
            writing(sums={"n": 3, "m": 1}), writing(other, sums={"n": -3}), writing(foreign, sums={"n": 9})
        )
        assert await view.totals() == {"m": 1}, "a total of 0 is none"
        assert await view.totals("b") == {"n": 9}
        assert await view.totals("c") == {}
        assert await views.tenants(view.view, view.partition) == ["acme", "b"]
        await view.write(writing(other, sums={"n": 5}))
        assert await view.totals() == {"n": 3 - 3 + 5, "m": 1}
        await view.write(writing(LOG, sums={"m": 2}, fresh=True))
        assert await view.totals() == {"n": 2, "m": 2}
        await view.write(writing(other, sums={"m": -2}, fresh=True))
        assert await view.totals() == {}
        assert await views.tenants(view.view, view.partition) == ["b"]
        await views.forget(view.view, other)
        assert await view.totals() == {"m": 2}
        assert await views.tenants(view.view, view.partition) == ["acme", "b"]
        await view.write(writing(LOG, kept=None))
        await views.forget(view.view, foreign)
        assert await views.tenants(view.view, view.partition) == []

    async def test_what_is_kept_is_told_with_its_cursor(
        self, store: Store, readers: ReaderStore, views: ViewStore
    ) -> None:
        view, logs = await held(store, readers, views), beside(store, 700)
        await view.write(*(writing(log) for log in logs))
        told = {log: cursor async for log, cursor in views.kept(view.view, view.partition)}
        assert told == {log: log.cursor(1, 7) for log in logs}
        others = [number for number in range(store.partitions) if number != view.partition]
        assert [log async for log, _ in views.kept(view.view, others[0])] == []
