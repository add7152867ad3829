"""Every kind of fault in what deleting and trimming leave behind is found and named."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import pytest

from eventlog import EventLog
from eventlog.identity import partition_of
from eventlog.store.beside import readers_beside
from eventlog.store.readers import Mark, Settings
from tests.verify.conftest import CHAT, OTHER, PARTITIONS, Namespace
from tests.verify.harm import Plant, head

pytestmark = pytest.mark.anyio
PARTITION = partition_of(CHAT.path, PARTITIONS)


def base_key(namespace: Namespace) -> str:
    return namespace.keys.feed_base(PARTITION)


def base(**fields: str | int) -> Plant:
    return lambda ns: ns.client.hset(base_key(ns), mapping=fields)


def reader_key(namespace: Namespace, group: str) -> str:
    return f"{{{namespace.keys.namespace}:{PARTITION}}}:reader:{group}"


DELETED_FAULTS: dict[str, tuple[Plant, str]] = {
    "a log": (
        lambda ns: ns.client.xadd(ns.chat.log, {"e": "x"}, id="1-5"),
        r"the log: it holds an event, '1-5'; a deleted conversation should have only its head",
    ),
    "operations": (
        lambda ns: ns.client.hset(ns.chat.ops, "op", "1:1:5:" + "0" * 40),
        r"the operations: there are 1 records; a deleted conversation should have only its head",
    ),
    "old operations": (
        lambda ns: ns.client.hset(ns.chat.old_ops, "op", "1:1:5:" + "0" * 40),
        r"the old operations: there are 1 records; a deleted",
    ),
    "a place among the conversations": (
        lambda ns: ns.client.zadd(ns.chat.conversations, {CHAT.path: 1}),
        r"the set of conversations: its path is there; it should not be: it was deleted",
    ),
    "an open run": (
        head(open=1),
        r"field 'open' of the head: it is b'1'; it should not be there: the conversation was",
    ),
    "no last version": (
        lambda ns: ns.client.hdel(ns.chat.head, "last"),
        r"field 'last' of the head: it is missing; it should be <version>-<stamp> of the last event it had",
    ),
    "a last version that is none": (
        head(last="0-0"),
        r"field 'last' of the head: it is b'0-0'; it should be <version>",
    ),
    "no reason": (head(why="moved"), r"field 'why' of the head: it is b'moved'; it should be 'deleted' or 'expired'"),
    "no time": (head(deleted="then"), r"field 'deleted' of the head: it is b'then'; it should be when, in ms"),
}


@pytest.mark.parametrize("kind", DELETED_FAULTS)
async def test_what_a_deleted_conversation_should_not_have_is_named(namespace: Namespace, kind: str) -> None:
    async with EventLog.open(namespace.url, namespace=namespace.keys.namespace) as log:
        assert await log.store.delete(CHAT, force=True)
    assert await namespace.texts() == []
    harm, expected = DELETED_FAULTS[kind]
    await harm(namespace)
    for only in (None, CHAT):
        [told] = await namespace.faults(only)
        assert told.owner == "conversation 'chat' of 'blue'"
        assert_matches(expected, str(told))
    assert await namespace.texts(OTHER) == []


async def test_a_feed_that_says_it_was_deleted_though_it_lives_is_told(namespace: Namespace) -> None:
    fields = ("c", CHAT.path, "f", 38, "n", 0, "k", "conversation-deleted", "s", 5)
    await namespace.client.execute_command("XADD", namespace.chat.feed, "0-*", *fields)  # type: ignore[no-untyped-call]
    [told] = await namespace.texts()
    assert_matches(r"entry 0-\d+: it says that 'blue/chat' was deleted; its head should say so, too", told)


async def _string(namespace: Namespace) -> None:
    await namespace.client.delete(base_key(namespace))
    await namespace.client.set(base_key(namespace), "x")


BASE_FAULTS: dict[str, tuple[Plant, str]] = {
    "a base that is none": (base(seq="x"), r"feed-base', field 'seq': it is b'x'; it should be a whole number"),
    "a stamp that is none": (base(stamp="x"), r"feed-base', field 'stamp': it is b'x'; it should be a whole number"),
    "a field of nobody": (base(odd=1), r"feed-base', field b'odd': nobody writes it; it should not be there"),
    "a base beyond the feed": (
        base(seq=999),
        r"feed-base', field 'seq': it is b'999'; the feed, which ends with \d+, should go on behind",
    ),
    "a base that is behind": (base(seq=2), r"entry 0-6: the entry before is 0-2; 0-3 should be between them"),
    "a base that is ahead": (base(seq=7), r"entry 0-6: entries up to 0-7 were trimmed; it should not be there"),
    "no base": (
        lambda ns: ns.client.delete(base_key(ns)),
        r"entry 0-6: the entry before is 0-0; 0-1 should be between",
    ),
    "another type": (_string, r"feed-base', its type: it is a string; it should be a hash"),
}


@pytest.mark.parametrize("kind", BASE_FAULTS)
async def test_a_fault_of_a_trimmed_feed_is_named(namespace: Namespace, kind: str) -> None:
    await trimmed(namespace)
    assert await namespace.texts() == []
    harm, expected = BASE_FAULTS[kind]
    await harm(namespace)
    told = await namespace.texts()
    assert any(_matches(expected, text) for text in told), "\n".join(told) or "no fault was found"


async def test_an_append_that_a_trimmed_feed_should_name_is_missed(namespace: Namespace) -> None:
    await trimmed(namespace)
    newest = (await namespace.client.xrevrange(namespace.chat.feed, count=1))[0][0]
    await namespace.client.xdel(namespace.chat.feed, newest)
    assert any("the feed does not name this append" in text for text in await namespace.texts())


def stored(mark: Callable[[Mark], str]) -> Callable[[Namespace, Mark], Awaitable[object]]:
    return lambda ns, at: ns.client.hset(reader_key(ns, "a%20group"), "mark", mark(at))


MARK_FAULTS: dict[str, tuple[Callable[[Namespace, Mark], Awaitable[object]], str]] = {
    "a mark below the base": (
        stored(lambda at: "4-77"),
        r"reader:a%20group', field 'mark': it is entry 4, and the feed was trimmed up to entry 5; no feed should be",
    ),
    "a mark before everything": (
        stored(lambda at: "0-0"),
        r"field 'mark': it is entry 0, and the feed was trimmed up to",
    ),
    "a mark at the base of another stamp": (
        stored(lambda at: f"5-{at.stamp ^ 1}"),
        r"field 'mark': it is '5-\d+', and the last trimmed entry had the stamp \d+; they should be the same",
    ),
    "a mark that is none": (stored(lambda at: "x"), r"field 'mark': it is b'x'; it should be <number>-<stamp>"),
}


@pytest.mark.parametrize("kind", MARK_FAULTS)
async def test_a_mark_where_the_feed_was_trimmed_is_a_fault(namespace: Namespace, kind: str) -> None:
    at = await trimmed(namespace)
    await namespace.client.hset(reader_key(namespace, "a%20group"), "mark", str(at))  # type: ignore[misc]
    assert await namespace.texts() == [], "a mark at the base is right"
    harm, expected = MARK_FAULTS[kind]
    await harm(namespace, at)
    [told] = await namespace.texts()
    assert_matches(expected, told)


async def test_a_group_that_is_to_begin_where_the_feed_was_trimmed_is_a_fault(namespace: Namespace) -> None:
    await trimmed(namespace)
    async with EventLog.open(namespace.url, namespace=namespace.keys.namespace) as log:
        readers = readers_beside(log.store)[1]()
        await readers.create("a group", Settings(None, (Mark(3, 7),) * PARTITIONS))
        await namespace.client.hset(reader_key(namespace, "a%20group"), "generation", 1)  # type: ignore[misc]
        [told] = await namespace.texts()
        assert_matches(r"reader:a%20group', field 'mark': it is entry 3, and the feed was trimmed up to entry 5", told)


async def trimmed(namespace: Namespace) -> Mark:
    """Trim the chat's feed up to entry 5, and tell that entry."""
    async with EventLog.open(namespace.url, namespace=namespace.keys.namespace) as log:
        store, _ = readers_beside(log.store)
        await store.trim_feed(PARTITION, 6)
        found = await store.feed_base(PARTITION)
        return Mark(found.seq, found.stamp)


def _matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text) is not None


def assert_matches(pattern: str, text: str) -> None:
    assert _matches(pattern, text), text
