"""Views on a real server: how they are laid out, what replies that are lost and keys that are strange do to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest
from redis.asyncio import Redis

from eventlog.errors import EventLogError, ReaderFenced, ServerError, ServerUnfit, Unreadable
from eventlog.identity import LogId, partition_of
from eventlog.store.conformance.suite import LOG, put
from eventlog.store.conformance.view_suite import VIEW, Held, beside, filed, held, kept, marks, refused, writing
from eventlog.store.memory import MemoryStore
from eventlog.store.memory_readers import MemoryReaders
from eventlog.store.memory_views import MemoryViews
from eventlog.store.redis import views as redis_views
from eventlog.store.redis.audit import Audit
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.readers import RedisReaders
from eventlog.store.redis.store import RedisStore
from eventlog.store.redis.verification import Verification
from eventlog.store.redis.views import RedisViews
from eventlog.store.views import Kept, ViewId, Writing
from tests.store.redis.conftest import connected
from tests.store.redis.proxy import Fate, Proxy

pytestmark = pytest.mark.anyio
PART = partition_of(LOG.path, 16)
OWN = ("rows:acme/support", "entries:acme/support", "sums:acme/support")
SHARED = ("about", "kept", "index:acme/by", "totals:acme", "indexes", "totalled")


@pytest.fixture
async def view(store: RedisStore) -> Held:
    return await held(store, RedisReaders(store), RedisViews(store))


@pytest.fixture
async def lossy(server: str) -> AsyncIterator[Proxy]:
    async with Proxy(server) as opened:
        yield opened


def key(keys: Keys, end: str) -> str:
    return f"{{{keys.namespace}:{PART}}}:view:history:1:{end}"


def whole(log: LogId = LOG, **options: Any) -> Writing:
    """A writing with something of every kind."""
    return writing(log, rows=[b"row"], entries={"k": filed("d", by="x")}, sums={"n": 1}, **options)


async def stored(client: Redis, keys: Keys) -> dict[bytes, bytes]:
    """Every key of the namespace as the server would move it elsewhere."""
    return {name: await client.dump(name) async for name in client.scan_iter(f"*{keys.namespace}:*", count=1_000)}


class Scripts:
    """Gives the next chunks with a script that hold ``words`` these fates; all else passes."""

    def __init__(self, words: bytes, *fates: Fate) -> None:
        self.words, self.fates = words, list(fates)

    def __call__(self, chunk: bytes) -> Fate:
        return self.fates.pop(0) if self.fates and b"EVAL" in chunk and self.words in chunk else Fate.PASS


async def test_the_keys_are_those_of_the_layout(view: Held, client: Redis, keys: Keys, server: str) -> None:
    await view.write(writing(rows=[b"row"], entries={"k/": filed("d", by="x")}, sums={"n": 1}), scanned="5")
    await view.views.replace("history", None, b"record")
    found = {name.decode(): await client.type(name) async for name in client.scan_iter(f"*{keys.namespace}*:view*")}
    types = (b"list", b"hash", b"hash", b"hash", b"hash", b"zset", b"hash", b"set", b"set")
    others = {f"{{{keys.namespace}:{number}}}:view:history:1:about": b"hash" for number in range(16)}
    ours = {key(keys, end): kind for end, kind in zip((*OWN, *SHARED), types, strict=True)}
    assert found == others | ours | {f"{{{keys.namespace}:0}}:views": b"hash"}
    assert set(await client.hgetall(key(keys, "about"))) == {b"created", b"scanned"}
    assert await client.hgetall(key(keys, "kept")) == {b"acme/support": b"1-7|"}
    assert await client.lrange(key(keys, "rows:acme/support"), 0, -1) == [b"row"]
    assert await client.hgetall(key(keys, "entries:acme/support")) == {b"k/": b'{"by":"x"}\0d'}
    assert await client.zrange(key(keys, "index:acme/by"), 0, -1, withscores=True) == [(b"x\0acme/support\0k%2F", 0.0)]
    assert await client.smembers(key(keys, "indexes")) == {b"acme/by"}
    assert await client.smembers(key(keys, "totalled")) == {b"acme"}
    async with Audit.open(server, keys.namespace) as audit:
        assert [fault async for fault in Verification(audit).faults()] == []


async def test_a_view_that_is_dropped_or_emptied_leaves_no_key(view: Held, client: Redis, keys: Keys) -> None:
    await view.write(whole())
    await view.write(Writing(LOG, None))
    ends = {name.rpartition(b":1:")[2] for name in await stored(client, keys) if b":view:" in name}
    assert ends == {b"about"}
    await view.write(*(whole(log) for log in (LOG, *beside(view.store, 3))))
    await client.delete(key(keys, "about"))  # as when dropping it was broken off
    assert not (await view.views.read(VIEW, LOG)).present
    assert await view.contents() is None
    await view.views.forget(VIEW, LOG)
    await view.views.drop(VIEW)
    assert not [name for name in await stored(client, keys) if b":view:" in name]


async def test_a_commit_whose_reply_was_lost_is_done_once(
    lossy: Proxy, view: Held, store: RedisStore, keys: Keys
) -> None:
    (first, *_) = await marks(store)
    await view.write(whole())
    async with connected(lossy.url, keys, deadline=20) as far:
        view.views = RedisViews(far)
        for mark in (None, first, None):
            before = await view.contents()
            assert before is not None
            lossy.fate = Scripts(b"RPUSH", Fate.CUT_REPLY, Fate.CUT_REQUEST, Fate.CUT_REPLY)
            await view.write(whole(), mark=mark)
            assert lossy.fate.fates == []
            after = await view.contents()
            assert after is not None
            assert after.rows == [*before.rows, b"row"]
            assert after.sums == await view.totals() == {"n": before.sums["n"] + 1}
    assert (await view.readers.place(view.hold.group, PART)).mark == first


async def test_a_commit_that_comes_late_is_not_done_again(view: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[Any, ...]] = []
    run = RedisReaders._run

    async def recording(self: RedisReaders, *arguments: Any) -> Any:
        sent.append(arguments)
        return await run(self, *arguments)

    monkeypatch.setattr(RedisReaders, "_run", recording)
    await view.write(whole())
    once = await view.known()
    readers = RedisReaders(view.store)  # type: ignore[arg-type]
    assert (await run(readers, *sent[-1]))[0] == b"OK"
    assert await view.known() == once
    await view.write(whole())
    twice = await view.known()
    assert (await run(readers, *sent[0])) == [b"LATE"]
    assert await view.known() == twice
    views = RedisViews(view.store)  # type: ignore[arg-type]

    async def behind(*_: Any) -> str:
        return "another"

    monkeypatch.setattr(views._readers, "last_commit", behind)
    view.views = views
    error = await refused(ReaderFenced, view.write(whole()))
    assert f"another commit of partition {PART} of group '@history.1' came before this one: load again" in str(error)
    assert await view.known() == twice


async def test_a_record_whose_reply_was_lost_is_replaced_once(lossy: Proxy, keys: Keys) -> None:
    async with connected(lossy.url, keys, deadline=20) as far:
        views = RedisViews(far)
        for before, after in ((None, b"1"), (b"1", b"2"), (b"2", None)):
            lossy.fate = Scripts(b"", Fate.CUT_REPLY, Fate.CUT_REPLY)
            assert await views.replace("p", before, after)
            assert lossy.fate.fates == []
            assert await views.record("p") == after


async def test_with_replies_lost_at_random_the_view_is_that_of_the_memory_store(
    lossy: Proxy, view: Held, store: RedisStore, keys: Keys
) -> None:
    random, logs = Random(4_711), beside(store, 3)
    memory = MemoryStore(partitions=16)
    reference = await held(memory, MemoryReaders.of(memory), MemoryViews.of(memory))
    fates = [Fate.PASS] * 14 + [Fate.CUT_REPLY] * 2 + [Fate.CUT_REQUEST]
    async with connected(lossy.url, keys, deadline=30) as far:
        view.views = RedisViews(far)
        lossy.fate = lambda _: random.choice(fates)
        for step in range(40):
            writings = [some_writing(random, log, step) for log in random.sample(logs, random.randint(0, 3))]
            for each in (view, reference):
                await each.write(*writings, scanned=str(step))
            if random.random() < 0.2:
                log = random.choice(logs)
                for each in (view, reference):
                    await each.views.forget(VIEW, log)
        lossy.fate = lambda _: Fate.PASS
        found, wanted = await view.known(), await reference.known()
    assert found[1:] == wanted[1:]
    assert any(wanted.totals.values())


def some_writing(random: Random, log: LogId, step: int) -> Writing:
    entries = {
        key: None if random.random() < 0.3 else filed(f"{step}", **{random.choice("ab"): random.choice("xyz")})
        for key in random.sample("klmn", random.randint(0, 3))
    }
    return Writing(
        log,
        None if random.random() < 0.1 else Kept(log.cursor(step + 1, 7), b"%d" % step),
        random.random() < 0.2,
        [b"%d" % step] * random.randint(0, 2),
        entries,
        {name: random.randint(-2, 2) for name in random.sample("nm", random.randint(0, 2))},
    )


CHANGES = [(change, end) for change in ("add", "fresh", "gone", "forget") for end in (*OWN, *SHARED)]


@pytest.mark.parametrize(("change", "end"), [pair for pair in CHANGES if pair != ("forget", "about")])
async def test_a_key_of_another_type_stops_the_step_before_it_writes(
    view: Held, client: Redis, keys: Keys, change: str, end: str
) -> None:
    await view.write(whole())
    await client.delete(key(keys, end))
    await client.set(key(keys, end), "mine")
    before = await stored(client, keys)
    if change == "forget":
        attempt = view.views.forget(VIEW, LOG)
    else:
        writings = {"add": whole(), "fresh": whole(fresh=True), "gone": Writing(LOG, None)}
        attempt = view.write(writings[change], scanned="1")
    error = await refused(ServerError, attempt)
    assert str(error).startswith("a key is of another type than ours: WRONGTYPE")
    assert await stored(client, keys) == before


COMMANDS = ("hset", "hdel", "hincrby", "rpush", "zadd", "zrem", "sadd", "srem", "del")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("change", ["add", "fresh", "gone"])
async def test_a_command_that_the_user_may_not_give_stops_the_step_before_it_writes(
    own_server: str, own_client: Redis, keys: Keys, change: str, command: str
) -> None:
    writings = {"add": whole(), "fresh": whole(fresh=True), "gone": Writing(LOG, None)}
    async with connected(own_server, keys) as store:
        view = await held(store, RedisReaders(store), RedisViews(store))
        await view.write(whole())
        await own_client.execute_command("ACL", "SETUSER", "default", f"-{command}")
        before = await stored(own_client, keys)
        error = await refused(ServerUnfit, view.write(writings[change], scanned="1"))
        assert str(error).startswith("the user may not do this")
        assert await stored(own_client, keys) == before
        await own_client.execute_command("ACL", "SETUSER", "default", "+@all")
        await view.write(writings[change], scanned="1")


@pytest.mark.parametrize("command", ["hincrby", "hdel", "zrem", "del"])
async def test_forgetting_that_the_user_may_not_end_is_ended_by_one_who_may(
    own_server: str, own_client: Redis, keys: Keys, command: str
) -> None:
    async with connected(own_server, keys) as store:
        view = await held(store, RedisReaders(store), RedisViews(store))
        [other] = beside(store, 1)
        await view.write(whole(), whole(other))
        await own_client.execute_command("ACL", "SETUSER", "default", f"-{command}")
        await refused(ServerUnfit, view.views.forget(VIEW, LOG))
        await own_client.execute_command("ACL", "SETUSER", "default", "+@all")
        await view.views.forget(VIEW, LOG)
        assert await view.views.contents(VIEW, LOG) is None
        assert await view.views.totals(VIEW, PART, "acme") == {"n": 1}


@pytest.mark.parametrize("family", ["", ":waiting", ":parked", ":asked"])
async def test_a_key_of_the_reader_of_another_type_stops_it_too(
    view: Held, client: Redis, keys: Keys, family: str
) -> None:
    await client.delete(name := f"{{{keys.namespace}:{PART}}}:reader:%40history.1{family}")
    await client.set(name, "mine")
    before = await stored(client, keys)
    await refused(ServerError, view.write(whole()))
    assert await stored(client, keys) == before


@pytest.mark.parametrize("value", ["x", "", "1.5", "1e3", "-0", "007", " 1", str(2**62), str(-(2**62)), str(2**70)])
@pytest.mark.parametrize("end", ["sums:acme/support", "totals:acme"])
async def test_a_sum_that_is_none_or_too_large_stops_the_step_before_it_writes(
    view: Held, client: Redis, keys: Keys, end: str, value: str
) -> None:
    await view.write(whole())
    await client.hset(key(keys, end), "n", value)
    before = await stored(client, keys)
    error = await refused(Unreadable, view.write(whole()))
    assert f"sum b'n' in partition {PART} of group '@history.1' is no number below 2**62, or would be none" in str(
        error
    )
    for attempt in (view.write(whole(fresh=True)), view.views.forget(VIEW, LOG)):
        error = await refused(Unreadable, attempt)
        assert str(error).endswith(": rebuild the view") or "rebuild the view, or count in a larger unit" in str(error)
    assert await stored(client, keys) == before


async def test_what_others_put_there_is_unreadable(view: Held, client: Redis, keys: Keys) -> None:
    await view.write(whole())
    views = view.views
    await client.zadd(key(keys, "index:acme/by"), {"no line": 0})
    await refused(Unreadable, view.lines("by"))
    await client.hset(key(keys, "entries:acme/support"), "k", "no entry")
    await refused(Unreadable, view.contents())
    await refused(Unreadable, view.write(whole(fresh=True)))
    await client.hset(key(keys, "totals:acme"), "n", "no number")
    await refused(Unreadable, view.totals())
    await client.hset(key(keys, "kept"), "acme/support", "no place")
    await refused(Unreadable, views.read(VIEW, LOG))
    await refused(Unreadable, views.load(VIEW, PART, [LOG]))
    await refused(Unreadable, views.kept(VIEW, PART).__anext__())


async def test_a_line_whose_entry_was_moved_meanwhile_has_no_document(view: Held, client: Redis, keys: Keys) -> None:
    await view.write(writing(entries={name: filed(name, by="x") for name in "klm"}))
    await client.hdel(key(keys, "entries:acme/support"), "k")
    await client.hset(key(keys, "entries:acme/support"), "l", b'{"by":"y"}\0l')
    assert [(line.key, line.document) for line in await view.lines("by")] == [("k", None), ("l", None), ("m", b"m")]


async def test_what_changes_while_a_conversation_is_forgotten_is_forgotten_too(
    view: Held, store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = RedisViews(store)
    run, changes = views._run, [{"k": filed("e", by="y")}, {"l": filed("d", by="z")}, {"k": None}]

    async def changing(*arguments: Any) -> Any:
        if changes:
            await view.write(writing(entries=changes.pop(0)))
        return await run(*arguments)

    monkeypatch.setattr(views, "_run", changing)
    await view.write(whole())
    await views.forget(VIEW, LOG)
    assert changes == []
    assert await view.contents() is None
    assert await views.indexes(VIEW, PART) == []
    assert await view.totals() == {}


async def test_whoever_may_only_read_can_read_all_of_it(
    view: Held, client: Redis, keys: Keys, server: str, store: RedisStore
) -> None:
    await view.write(whole(), scanned="1")
    await view.views.replace("p", None, b"record")
    await put(store, 1, "op-1")
    user = f"reader-{keys.namespace}"
    reading = ("+@read", "+eval_ro", "+evalsha_ro", "+ping", "+hello", "+auth", "+time", "+client", "+select")
    await client.execute_command(
        "ACL", "SETUSER", user, "on", ">secret", "resetkeys", f"%R~*{keys.namespace}*", "-@all", *reading
    )
    url = server.replace("redis://", f"redis://{user}:secret@")
    if url == server:
        url = f"{server}{'&' if '?' in server else '?'}username={user}&password=secret"
    async with connected(url, keys) as far:
        views = RedisViews(far)
        for _ in range(2):  # by the whole script, then by its digest
            snapshot = await views.read(VIEW, LOG)
            assert (snapshot.present, snapshot.kept, snapshot.rows, len(snapshot.behind)) == (True, kept(), [b"row"], 1)
            assert await views.contents(VIEW, LOG) == await view.contents()
        assert await views.progress(VIEW, PART) == "1"
        assert await views.load(VIEW, PART, [LOG]) == [kept()]
        assert [log async for log, _ in views.kept(VIEW, PART)] == [LOG]
        assert [line.document for line in await views.index(VIEW, PART, "acme", "by", count=9)] == [b"d"]
        assert await views.indexes(VIEW, PART) == [("acme", "by")]
        assert await views.totals(VIEW, PART, "acme") == {"n": 1}
        assert await views.tenants(VIEW, PART) == ["acme"]
        assert await views.size(VIEW) == await view.views.size(VIEW)
        assert (await views.names(), await views.record("p")) == (["p"], b"record")
        for attempt in (views.create(ViewId("q", 1)), views.forget(VIEW, LOG), views.replace("p", None, b"")):
            await refused(ServerUnfit, attempt)
    await client.execute_command("ACL", "DELUSER", user)


async def test_a_server_that_knows_no_script_is_sent_it(own_store: RedisStore, own_client: Redis) -> None:
    view = await held(own_store, RedisReaders(own_store), RedisViews(own_store))
    for number in range(2):
        await own_client.script_flush()
        await view.write(whole())
        assert (await view.views.read(VIEW, LOG)).total == number + 1
        assert await view.contents() is not None
        assert await view.views.replace("p", b"%d" % number if number else None, b"%d" % (number + 1))
    await own_client.script_flush()
    await view.views.forget(VIEW, LOG)
    assert await view.contents() is None


async def test_the_size_is_the_memory_of_all_its_keys_or_near_it(
    view: Held, store: RedisStore, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    for log in beside(store, 300):
        await view.write(whole(log))
    names = [name async for name in client.scan_iter(f"*{store._keys.namespace}*:view:*", count=1_000)]
    exact = sum([await client.memory_usage(name) or 0 for name in names])
    assert await view.views.size(VIEW) == exact
    monkeypatch.setattr(redis_views, "_SAMPLE", 30)
    assert abs(await view.views.size(VIEW) - exact) < exact / 20
    assert await view.views.size(ViewId("never", 1)) == 0


async def test_a_row_costs_little_more_than_its_bytes(view: Held, client: Redis, keys: Keys) -> None:
    await view.write(writing(rows=[b"[%d,%d]" % (number, number + 1) for number in range(10_000, 20_000)]))
    rows = key(keys, "rows:acme/support")
    assert await client.memory_usage(rows, samples=0) < 10_000 * (13 + 5)


async def test_names_that_are_no_text_are_refused(view: Held) -> None:
    for attempt in (
        view.views.record("\ud800"),
        view.views.read(ViewId("\ud800", 1), LOG),
        view.totals("\ud800"),
        view.lines("\ud800"),
        view.write(scanned="\ud800"),
    ):
        with pytest.raises(EventLogError, match="has a lone surrogate: give well-formed text"):
            await attempt
