"""Tenants, conversations, keys, indexes, sums and projections are apart, whatever their names are made of."""

from __future__ import annotations

from eventlog.identity import LogId, partition_of
from eventlog.reader import Store
from eventlog.store.conformance.suite import LOG
from eventlog.store.conformance.tenancy import HOSTILE
from eventlog.store.conformance.view_suite import filed, held, kept, writing
from eventlog.store.readers import ReaderStore
from eventlog.store.views import Filed, ViewId, ViewStore

PLAIN = [name for name in HOSTILE if "\0" not in name]


class ViewNames:
    async def test_hostile_conversations_are_apart(self, store: Store, readers: ReaderStore, views: ViewStore) -> None:
        logs = [LogId(name, other) for name, other in zip(HOSTILE, reversed(HOSTILE), strict=True)]
        logs += [LogId("a", "b/c"), LogId("a/b", "c"), LogId("a:b", "c"), LogId("a", "b:c"), LogId("a%2Fb", "c")]
        logs = list(dict.fromkeys(logs))
        for partition in range(store.partitions):
            view = await held(store, readers, views, partition=partition)
            there = [log for log in logs if partition_of(log.path, store.partitions) == partition]
            for log in there:
                entries = {name: filed(f"{log.path} {name}", by=log.path) for name in ("k", log.tenant)}
                state = kept(log.path, log=log)
                await view.write(writing(log, kept=state, rows=[log.path.encode()], entries=entries, sums={"n": 1}))
            assert {log async for log, _ in views.kept(view.view, partition)} == set(there)
            assert await views.tenants(view.view, partition) == sorted({log.tenant for log in there})
            for log in there:
                entries = {name: filed(f"{log.path} {name}", by=log.path) for name in ("k", log.tenant)}
                state = kept(log.path, log=log)
                assert await view.contents(log) == (state, [log.path.encode()], entries, {"n": 1})
                same = [other for other in there if other.tenant == log.tenant]
                assert await view.totals(log.tenant) == {"n": len(same)}
                assert {line.log for line in await view.lines("by", tenant=log.tenant)} == set(same)
            for log in there[::2]:
                await views.forget(view.view, log)
            assert {log async for log, _ in views.kept(view.view, partition)} == set(there[1::2])

    async def test_hostile_keys_indexes_and_sums_are_apart(
        self, store: Store, readers: ReaderStore, views: ViewStore
    ) -> None:
        view = await held(store, readers, views)
        entries = {name: Filed(name.encode(), dict.fromkeys(PLAIN[:5], name)) for name in PLAIN}
        entries |= {"\0": filed("nul", by="x"), "a\0b": filed("nul", by="x"), "a%00b": filed("no nul", by="x")}
        entries |= {f"i{number}": Filed(b"", {name: name}) for number, name in enumerate(PLAIN)}
        sums = {name: number for number, name in enumerate(HOSTILE, 1)}
        await view.write(writing(entries=dict(entries), sums=sums))
        contents = await view.contents()
        assert contents is not None
        assert (contents.entries, contents.sums, await view.totals()) == (entries, sums, sums)
        assert await views.indexes(view.view, view.partition) == sorted(("acme", name) for name in {*PLAIN, "by"})
        for number, name in enumerate(PLAIN):
            lines = [(line.sort, line.key) for line in await view.lines(name) if line.key.startswith("i")]
            assert lines == [(name, f"i{number}")]
        for name in PLAIN[:5]:
            found = [line for line in await view.lines(name) if line.key in PLAIN]
            assert [(line.sort, line.document) for line in found] == [(text, text.encode()) for text in sorted(PLAIN)]
        assert {line.key: line.document for line in await view.lines("by")} == {
            "\0": b"nul",
            "a\0b": b"nul",
            "a%00b": b"no nul",
        }
        await view.write(writing(entries=dict.fromkeys(entries)))
        assert await views.indexes(view.view, view.partition) == []

    async def test_hostile_projections_are_apart(self, store: Store, readers: ReaderStore, views: ViewStore) -> None:
        for name in HOSTILE:
            view = await held(store, readers, views, view=ViewId(name, 1))
            await view.write(writing(rows=[name.encode()], entries={"k": filed("d", by="x")}, sums={name: 1}))
            assert await views.replace(name, None, name.encode())
        assert await views.names() == sorted(HOSTILE)
        for name in HOSTILE:
            assert await views.record(name) == name.encode()
            assert (await views.read(ViewId(name, 1), LOG)).rows == [name.encode()]
            await views.drop(ViewId(name, 1))
            assert not (await views.read(ViewId(name, 1), LOG)).present
