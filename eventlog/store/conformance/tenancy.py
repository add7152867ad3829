"""Tenants and conversations are apart, whatever their ids are made of."""

from __future__ import annotations

from itertools import product

from eventlog.identity import LogId, partition_of
from eventlog.store.conformance.suite import Suite, put, start
from eventlog.store.port import NONE, LogStore

HOSTILE = (
    "a", "b", "a/b", "b/c", "/", "//", ":", "a:b", "{", "}", "{}", "{a}", "%", "%2F", "%25", "a%2Fb", " ", " a", "a ",
    "\n", "\r\n", "\t", "*", "?", "[a]", "\\", "'", '"', "..", "~", "\x00", "a\x00b", "\x7f", "é", "e\u0301", "🦜",
    "log", "head", "A", "x" * 1_000, "🦜" * 250,
)  # fmt: skip
"""Ids of 1 to 1,000 bytes, each a trap for some way of joining or quoting."""


class Tenancy(Suite):
    async def test_every_pair_of_hostile_ids_is_a_log_of_its_own(self, store: LogStore) -> None:
        some = HOSTILE[::2]
        logs = [LogId(*pair) for pair in product(some, some)] + [LogId("t", name) for name in HOSTILE[1::2]]
        for number, log in enumerate(logs):
            outcome = await put(store, number, "op-1", log=log, expected=NONE)
            assert (outcome.first, outcome.duplicate) == (1, False)
        for number, log in enumerate(logs):
            (entry,) = await store.read(log, 1, None, 10)
            assert entry.document.endswith(b'"data":{"value":%d}}' % number)
            assert (await store.head(log)).last == log.cursor(1, entry.stamp)

    async def test_joined_ids_do_not_meet(self, store: LogStore) -> None:
        pairs = [
            ("a/b", "c"), ("a", "b/c"), ("a:b", "c"), ("a", "b:c"), ("a%2Fb", "c"), ("a%", "2Fb/c"),
            ("a}", "b"), ("a", "}b"), ("a ", "b"), ("a", " b"), ("a\n", "b"), ("a", "\nb"),
        ]  # fmt: skip
        for pair in pairs:
            await put(store, 1, "op-1", log=LogId(*pair), expected=NONE)
            await start(store, "run-1", log=LogId(*pair))

    async def test_hostile_conversations_are_listed_as_they_were_named(self, store: LogStore) -> None:
        logs = {LogId(name, other) for name, other in zip(HOSTILE, reversed(HOSTILE), strict=True)}
        for log in logs:
            await put(store, 1, "op-1", log=log)
        listed = [log for p in range(store.partitions) for log in await store.conversations(p, 0, 1_000)]
        assert len(listed) == len(logs)
        assert set(listed) == logs

    async def test_the_feed_names_hostile_conversations_by_their_path(self, store: LogStore) -> None:
        for name in HOSTILE:
            log = LogId(name, name)
            await put(store, 1, "op-1", log=log)
            entry = (await self.feed(store, log))[-1]
            assert LogId.of_path(entry.path) == log

    async def test_hostile_operation_ids_are_told_apart(self, store: LogStore) -> None:
        log = LogId("acme", "support")
        for number, name in enumerate(HOSTILE, 1):
            assert (await put(store, number, name, log=log)).first == number
        for number, name in enumerate(HOSTILE, 1):
            again = await put(store, number, name, log=log)
            assert (again.first, again.duplicate) == (number, True)

    async def test_each_conversation_is_on_the_partition_that_its_path_says(self, store: LogStore) -> None:
        logs = [LogId("acme", f"c{number}") for number in range(50)]
        for log in logs:
            await put(store, 1, "op-1", log=log)
        for partition in range(store.partitions):
            there = await store.conversations(partition, 0, 100)
            assert there == [log for log in logs if partition_of(log.path, store.partitions) == partition]
