"""Followers under a server that is killed, connections that are cut, and cancellation at any moment.

``EVENTLOG_FOLLOW_EVENTS`` and ``EVENTLOG_FOLLOW_CANCELS`` scale the two long ones (4,000 and 5,000 by default).
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import defaultdict

import anyio
import pytest
from redis import exceptions as redis_errors

from eventlog import Conversation, Cursor, EventLog, Kind, user
from tests.loss.server import Server

pytestmark = pytest.mark.anyio

EVENTS = int(os.environ.get("EVENTLOG_FOLLOW_EVENTS", "4000"))
CANCELS = int(os.environ.get("EVENTLOG_FOLLOW_CANCELS", "5000"))
FOLLOWERS, CONVERSATIONS, TENANT_FOLLOWERS, KILLS = 100, 10, 4, 5
BATCH = 5


class Story:
    """What was written, and what each follower saw."""

    def __init__(self, log: EventLog, events: int) -> None:
        self.log = log
        self.events = events
        self.each = events // CONVERSATIONS
        self.written = 0
        self.seen: list[tuple[int, list[int]]] = []
        """Of each follower: the version it began after, and those it saw."""
        self.is_written = anyio.Event()

    def chat(self, number: int) -> Conversation:
        return self.log.tenant("t").conversation(f"c{number}")

    async def write(self, rng: random.Random) -> None:
        handles = [self.chat(number) for number in range(CONVERSATIONS)]
        turns = [number for number in range(CONVERSATIONS) for _ in range(self.each // BATCH)]
        rng.shuffle(turns)
        for turn in turns:
            await handles[turn].add(*(user("x") for _ in range(BATCH)))
            self.written += BATCH
        self.is_written.set()

    async def reach(self, written: float) -> None:
        """Wait until so much was written."""
        while self.written < min(written, self.events):
            await anyio.sleep(0.005)

    async def follow(self, number: int, joins_at: int) -> None:
        await self.reach(joins_at)
        chat = self.chat(number % CONVERSATIONS)
        after: Cursor | str = "start" if number % 3 else "now"
        seen: list[int] = []
        began = -1
        async with chat.follow(after, poll=1.0) as follower:
            async for item in follower:
                began = item.cursor.version - (item.event is not None) if began < 0 else began
                if item.event is not None:
                    seen.append(item.event.version)
                if item.cursor.version == self.each:
                    break
        self.seen.append((began, seen))

    async def follow_tenant(self, joins_at: int) -> dict[str, list[int]]:
        await self.reach(joins_at)
        seen: dict[str, list[int]] = defaultdict(list)
        async with self.log.tenant("t").follow(poll=1.0) as follower:
            async for item in follower:
                if item.event is not None and item.conversation is not None:
                    seen[item.conversation].append(item.event.version)
                if sum(map(len, seen.values())) == self.events:
                    return dict(seen)
        return dict(seen)


async def cut(own: Server, rng: random.Random, story: Story) -> None:
    """Cut a connection now and then."""
    while not story.is_written.is_set():
        await anyio.sleep(rng.uniform(0.02, 0.1))
        try:
            async with own.client() as client:
                ids = [one["id"] for one in await client.client_list() if one["id"] != str(await client.client_id())]
                if ids:
                    await client.client_kill_filter(_id=rng.choice(ids))
        except (redis_errors.RedisError, OSError):
            continue  # it is being killed, or just comes back


async def test_everyone_sees_everything_once_in_order_though_the_server_is_killed_and_connections_cut(
    own: Server,
) -> None:
    rng = random.Random(11)
    tenants: list[dict[str, list[int]]] = []
    async with EventLog.open(own.url) as log:
        story = Story(log, EVENTS)

        async def one_of_all() -> None:
            tenants.append(await story.follow_tenant(rng.randrange(EVENTS)))

        with anyio.fail_after(100):
            async with anyio.create_task_group() as tasks:
                for number in range(FOLLOWERS):
                    tasks.start_soon(story.follow, number, rng.randrange(EVENTS))
                for _ in range(TENANT_FOLLOWERS):
                    tasks.start_soon(one_of_all)
                tasks.start_soon(story.write, rng)
                tasks.start_soon(cut, own, rng, story)
                for kill in range(KILLS):
                    await story.reach(EVENTS * (kill + 1) / (KILLS + 1))
                    own.kill()
                    await own.start()
    assert len(story.seen) == FOLLOWERS
    for began, seen in story.seen:
        assert seen == list(range(began + 1, story.each + 1))
    expected = {f"c{number}": list(range(1, story.each + 1)) for number in range(CONVERSATIONS)}
    assert tenants == [expected] * TENANT_FOLLOWERS


async def test_cancelling_followers_at_any_moment_loses_nothing_and_leaks_nothing(own: Server) -> None:
    """Some are closed when they were cancelled and others go on; some live through it all."""
    rng = random.Random(13)
    before = asyncio.all_tasks()
    cancels, names, writing = 0, 8, True
    seen: dict[int, list[int]] = defaultdict(list)
    async with EventLog.open(own.url) as log:
        chats = [log.tenant("t").conversation(f"c{number}") for number in range(names)]

        async def write() -> None:
            number = 0
            while writing:
                await chats[number % names].add(user("x"))
                number += 1
                await asyncio.sleep(0.001)

        async def follow(number: int) -> None:
            """Cancelled again and again; goes on with the same follower, or with a new one from its cursor."""
            nonlocal cancels
            cursor: Cursor | str = "start"
            follower = chats[number % names].follow(cursor, poll=0.5)
            while cancels < CANCELS or not caught_up(number):
                cancels += 1
                if cancels < CANCELS:
                    scope = anyio.move_on_after(rng.choice([0, rng.uniform(0, 0.002), rng.uniform(0, 0.01)]))
                else:
                    scope = anyio.move_on_after(1)
                with scope:
                    while True:
                        item = await anext(follower)
                        cursor = item.cursor
                        if item.event is not None:
                            seen[number].append(item.event.version)
                if rng.random() < 0.3:
                    await follower.aclose()
                    follower = chats[number % names].follow(cursor, poll=0.5)
            await follower.aclose()

        ends: list[int] = []

        def caught_up(number: int) -> bool:
            return bool(ends) and bool(seen[number]) and seen[number][-1] == ends[number % names]

        async def stop() -> None:
            nonlocal writing
            while cancels < CANCELS:
                await anyio.sleep(0.01)
            writing = False

        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(follow, number)
            async with anyio.create_task_group() as writers:
                writers.start_soon(write)
                writers.start_soon(stop)
            ends += [(await chat.head()).last.version for chat in chats]
        assert not log.hub.is_followed
        for number in range(40):
            assert seen[number] == list(range(1, ends[number % names] + 1))
        assert len(await own.clients()) <= 3
        with anyio.fail_after(30):
            while len(asyncio.all_tasks() - before) > 0:
                await anyio.sleep(0.02)
    with anyio.fail_after(30):
        while await own.clients():
            await anyio.sleep(0.02)


async def test_a_follower_waits_for_a_server_that_is_away_from_the_start(own: Server) -> None:
    async with EventLog.open(own.url, deadline=0.5) as log:
        chat = log.tenant("t").conversation("c")
        await chat.add(user("a"))
        own.kill()
        found: list[int] = []

        async def follow() -> None:
            async for item in chat.follow(poll=1.0):
                if item.kind is Kind.EVENT and item.event is not None:
                    found.append(item.event.version)
                    return

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            with anyio.move_on_after(1.2):  # longer than its deadline: it is refused, and goes on
                while not found:
                    await anyio.sleep(0.05)
            assert not found
            await own.start()
        assert found == [1]
