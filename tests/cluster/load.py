"""Writers that go on whatever happens, each in a conversation of its own, and what must be true of it afterwards."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from chaos.nodes import PATIENCE
from eventlog import Appended, Conversation, EventLog, Kind, OutcomeUnknown, user
from eventlog.store.redis.store import RedisStore


class Writer:
    """Appends one message after the other; each is sent with its operation id until it is acknowledged."""

    def __init__(self, log: EventLog, chat: Conversation) -> None:
        self.chat = chat
        self._store = log.store
        self.acknowledged: dict[str, Appended] = {}
        self.times: list[float] = []
        """When each was acknowledged, by ``time.monotonic``."""
        self.unknown = 0
        """How often an outcome was not known at first."""

    async def run(self) -> None:
        number = 0
        while True:
            number += 1
            await self._append(f"op-{number}")
            await anyio.sleep(0.002)

    async def _append(self, operation: str) -> None:
        while True:
            try:
                self.acknowledged[operation] = await self.chat.add(user(operation), operation_id=operation)
            except OutcomeUnknown:
                self.unknown += 1
            else:
                self.times.append(time.monotonic())
                return

    def since(self, moment: float) -> int:
        """How many were acknowledged after that."""
        return sum(when > moment for when in self.times)

    async def assert_nothing_is_lost_or_doubled(self) -> None:
        events = [event async for event in self.chat.read()]
        assert [event.version for event in events] == list(range(1, len(events) + 1))
        operations = [event.id.rpartition(".")[0] for event in events]
        # The last one may have been written and not acknowledged: the writer was stopped.
        assert operations[: len(self.acknowledged)] == list(self.acknowledged)
        assert len(operations) <= len(self.acknowledged) + 1
        entries = await self._store.read(self.chat.log, 1, None, len(events))
        for entry, appended in zip(entries, self.acknowledged.values(), strict=False):
            assert (entry.version, entry.stamp) == (appended.cursor.version, appended.cursor.stamp)


@asynccontextmanager
async def following(log: EventLog) -> AsyncIterator[dict[str, list[int]]]:
    """The versions of each conversation, as a follower of the tenant gets them while the block lasts."""
    seen: dict[str, list[int]] = {}

    async def follow() -> None:
        async for item in log.tenant("acme").follow():
            if item.kind is Kind.EVENT and item.event is not None and item.conversation is not None:
                seen.setdefault(item.conversation, []).append(item.event.version)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow)
        yield seen
        tasks.cancel_scope.cancel()


async def caught_up(seen: dict[str, list[int]], writers: list[Writer]) -> None:
    """Wait until the follower has as much as is there, and see that it has each event once, in order."""
    there = {writer.chat.log.conversation: len([e async for e in writer.chat.read()]) for writer in writers}
    with anyio.fail_after(PATIENCE):
        while {name: len(versions) for name, versions in seen.items()} != there:
            await anyio.sleep(0.02)
    assert seen == {name: list(range(1, count + 1)) for name, count in there.items()}


@asynccontextmanager
async def writing(log: EventLog, writers: int) -> AsyncIterator[list[Writer]]:
    """That many writers at work while the block lasts."""
    tenant = log.tenant("acme")
    found = [Writer(log, tenant.conversation(f"c{number}")) for number in range(writers)]
    async with anyio.create_task_group() as tasks:
        for writer in found:
            tasks.start_soon(writer.run)
        yield found
        tasks.cancel_scope.cancel()


async def wrote(writers: list[Writer], since: float, count: int = 5) -> None:
    """Wait until each of them was acknowledged so much since then."""
    with anyio.fail_after(PATIENCE):
        while not all(writer.since(since) >= count for writer in writers):
            await anyio.sleep(0.02)


async def assert_feeds_are_dense(log: EventLog, writers: list[Writer]) -> None:
    """Each partition's feed counts without a gap, and names each append once."""
    assert isinstance(log.store, RedisStore)
    named: list[tuple[str, int]] = []
    for partition in range(log.store.partitions):
        entries = await log.store.read_feed(partition, 1, 100_000)
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
        named += [(entry.log.path, entry.first) for entry in entries]
    assert len(named) == len(set(named))
    for writer in writers:
        first = [version for path, version in named if path == writer.chat.log.path]
        assert sorted(first) == first
        assert {one.first for one in writer.acknowledged.values()} <= set(first)
