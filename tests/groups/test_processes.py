"""Members in processes of their own, killed as processes are."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import anyio
import pytest

from eventlog import EventLog
from eventlog.consumer_group import ConsumerGroup, GroupStatus
from eventlog.store.conformance.suite import notes
from tests.groups.sink import Sink, Story

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]
EVENTS = int(os.environ.get("EVENTLOG_GROUP_EVENTS", "4000"))
"""20,000 is the full size."""
CONVERSATIONS = 200
MEMBERS = 4
KILLS = max(5, EVENTS // 800)


class Members:
    """Processes of one group."""

    def __init__(self, url: str, namespace: str, sink: Path, most: int = 20) -> None:
        self._environment = {**os.environ, "MOST": str(most)}
        self._command = [sys.executable, "-m", "tests.groups.member", url, namespace, "g", str(sink)]
        self.alive: list[subprocess.Popen[bytes]] = []

    def start(self, killer: str = "") -> subprocess.Popen[bytes]:
        member = subprocess.Popen([*self._command, killer], env=self._environment, stderr=subprocess.DEVNULL)
        self.alive.append(member)
        return member

    def kill(self, member: subprocess.Popen[bytes]) -> None:
        member.kill()
        member.wait()
        self.alive.remove(member)


@asynccontextmanager
async def members(url: str, namespace: str, sink: Path, most: int = 20) -> AsyncIterator[Members]:
    found = Members(url, namespace, sink, most)
    try:
        yield found
    finally:
        for member in list(found.alive):
            found.kill(member)


async def passed(group: ConsumerGroup, seconds: float) -> GroupStatus:
    """Wait until nothing lags behind and nothing is to be delivered again."""
    with anyio.fail_after(seconds):
        while True:
            status = await group.status()
            if status.lag == 0 and status.waiting == 0:
                return status
            await anyio.sleep(0.1)


async def append(log: EventLog, events: int, seconds: float) -> None:
    """So many events, spread over the conversations and over the time."""
    chance, left = random.Random(4), events
    chats = [log.tenant("t").conversation(f"c{number}") for number in range(CONVERSATIONS)]
    while left:
        size = min(left, 40)
        async with anyio.create_task_group() as tasks:
            for chat in chance.sample(chats, size // 2):
                tasks.start_soon(chat.append, *notes(1, 2))
        left -= size // 2 * 2
        await anyio.sleep(seconds * size / events)


async def test_members_that_are_killed_handle_each_event_in_order_never_two_at_once(
    server: str, tmp_path: Path
) -> None:
    namespace, chance = f"t{uuid4().hex[:12]}", random.Random(7)
    async with EventLog.open(server, namespace=namespace) as log, members(server, namespace, tmp_path / "sink") as them:
        group = log.group("g")
        await group.create()
        for _ in range(MEMBERS):
            them.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(append, log, EVENTS, KILLS + 1.0)
            for _ in range(KILLS):
                await anyio.sleep(1.0)
                them.kill(chance.choice(them.alive))
                them.start()
        status = await passed(group, 60 + EVENTS / 200)
        assert len(status.roll.members) <= MEMBERS + KILLS
        ends = [
            (await chat.head()).last.version
            for chat in map(log.tenant("t").conversation, map("c{}".format, range(CONVERSATIONS)))
        ]
    sink = Sink(tmp_path / "sink")
    story = Story(sink)
    sink.close()
    appended = {(f"c{number}", version) for number, end in enumerate(ends) for version in range(1, end + 1)}
    assert len(appended) == EVENTS
    assert {key for key, times in story.handled.items() if times} == appended
    assert status.parked == 0
    assert 0 < story.redelivered < EVENTS
    assert all(count >= 2 for counts in story.begun.values() for count in counts[1:]), "each delivery again is counted"
    assert all(place.place.holder for place in status.partitions)


async def test_an_event_that_kills_its_process_is_parked_and_replayed_when_that_is_mended(
    server: str, tmp_path: Path
) -> None:
    namespace = f"t{uuid4().hex[:12]}"
    async with EventLog.open(server, namespace=namespace, partitions=4) as log:
        group = log.group("g")
        chats = [log.tenant("t").conversation(f"c{number}") for number in range(10)]
        for chat in chats:
            await chat.append(*notes(1, 2, 3, 4))
        async with members(server, namespace, tmp_path / "sink", most=3) as them:
            deaths = 0
            with anyio.fail_after(90):
                while not [one async for one in group.parked()]:
                    member = them.start("c3:2")
                    while member.poll() is None and not [one async for one in group.parked()]:
                        await anyio.sleep(0.05)
                    deaths += member.poll() is not None
            [parked] = [one async for one in group.parked()]
            assert (parked.log, parked.version) == (chats[3].log, 2)
            assert "process ended" in parked.error
            await passed(group, 30)
            them.kill(them.alive[-1])
            them.start()
            assert await group.replay(parked.log, parked.version)
            with anyio.fail_after(30):
                while [one async for one in group.parked()] or (await group.status()).waiting:
                    await anyio.sleep(0.05)
    sink = Sink(tmp_path / "sink")
    ends = [(conversation, version) for what, conversation, version, *_ in sink.steps() if what == "end"]
    begun = [
        count
        for what, conversation, version, count, _ in sink.steps()
        if (what, conversation, version) == ("begin", "c3", 2)
    ]
    sink.close()
    assert set(ends) == {(f"c{number}", version) for number in range(10) for version in range(1, 5)}
    assert ends[-1] == ("c3", 2)
    assert len(begun) == deaths + 1
    assert [one for one in begun if one > 1] == sorted({one for one in begun if one > 1})


async def test_a_member_that_stands_still_past_its_lease_is_taken_over_and_refused_by_the_sink(
    server: str, tmp_path: Path
) -> None:
    namespace = f"t{uuid4().hex[:12]}"
    async with EventLog.open(server, namespace=namespace) as log, members(server, namespace, tmp_path / "sink") as them:
        group = log.group("g")
        await group.create()
        stalled = them.start()
        with anyio.fail_after(30):
            while sum(bool(one.place.holder) for one in (await group.status()).partitions) < 16:
                await anyio.sleep(0.02)
        them.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(append, log, 600, 3.0)
            await anyio.sleep(0.7)
            stalled.send_signal(signal.SIGSTOP)
            try:
                with anyio.fail_after(30):  # nobody else has what it holds, until its lease is over
                    while any(f":{stalled.pid}/" in one.place.holder for one in (await group.status()).partitions):
                        await anyio.sleep(0.05)
            finally:
                stalled.send_signal(signal.SIGCONT)
        await passed(group, 60)
        assert stalled.poll() is None, "it goes on as a member"
    sink = Sink(tmp_path / "sink")
    story = Story(sink)
    sink.close()
    assert sum(times > 0 for times in story.handled.values()) == 600
