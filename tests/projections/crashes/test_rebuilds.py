"""A rebuild under writers and readers, killed on its way, by a user who may write to nothing but views and readers."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import redis.exceptions
from redis.asyncio import Redis

from eventlog import Conversation, EventLog, user
from eventlog.errors import ViewMissing
from eventlog.identity import LogId
from eventlog.store.views import Found
from projections import history, maintained
from projections.index import page
from projections.live import Live
from projections.projector import Projector
from tests.loss.server import Server
from tests.projections.crashes.conftest import OPTIONS, Nursery, Scene, scene
from tests.projections.crashes.kinds import Marked, made

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]
READS = int(os.environ.get("EVENTLOG_PROJECTION_READS", "2000"))
"""10,000 is the full size."""
CHATS = 10
BEFORE, AFTER = Marked(1, "before"), Marked(1, "after")
KINDS = ["history", "marked:1:after"]
ACL = Path(__file__).parents[3] / "docs" / "acl.md"


def chats(log: EventLog) -> list[Conversation]:
    return [log.tenant("a").conversation(f"c{number}") for number in range(CHATS)]


@asynccontextmanager
async def writing(here: Scene) -> AsyncIterator[None]:
    """Messages that say their version."""
    over = False

    async def write() -> None:
        last = {chat.id: (await chat.head()).last.version for chat in chats(here.log)}
        while not over:
            for chat in chats(here.log):
                last[chat.id] += 1
                await chat.add(user(str(last[chat.id])))
            await asyncio.sleep(0.05)

    task = asyncio.create_task(write())
    try:
        yield
    finally:
        over = True
        await task


class Reading:
    """Reads all the time, and compares what one read gives with itself."""

    def __init__(self, here: Scene) -> None:
        self.live = here.raw.live
        self.chats = chats(here.log)
        self.reads = 0
        self.marks: Counter[str] = Counter()
        self.over = False

    async def run(self) -> None:
        while not self.over:
            for chat in self.chats:
                await self.history(chat)
                await self.rows(chat.log)
            await self.lines()
            await asyncio.sleep(0)

    async def history(self, chat: Conversation) -> None:
        view = await history.load(chat)
        texts = [one.text for one in view.messages]
        assert texts == [str(number) for number in range(1, view.version + 1)]
        self.reads += 1

    async def rows(self, log: LogId) -> None:
        snapshot = await self.live.views.read(await self.live.view(BEFORE), log)
        assert snapshot.kept is not None
        rows = [row.decode() for row in snapshot.rows]
        marks = {row.split('"')[1] for row in rows}
        assert len(marks) == 1, f"one read of {log} holds {marks}"
        [mark] = marks
        assert rows == [f'["{mark}",{number}]' for number in range(1, snapshot.kept.cursor.version + 1)]
        self.marks[mark] += 1
        self.reads += 1

    async def lines(self) -> None:
        def read(found: Found) -> bytes | None:
            return found.document

        view = await self.live.view(BEFORE)
        try:
            found = await page(self.live.store, self.live.readers, self.live.views, view, "a", "all", read, limit=50)
        except ViewMissing:
            return
        assert len(found.items) == 50
        assert len(set(found.items)) == 1, f"one page holds {set(found.items)}"
        self.marks[found.items[0].decode()] += 1
        self.reads += 1


@asynccontextmanager
async def reading(here: Scene) -> AsyncIterator[Reading]:
    found = Reading(here)
    task = asyncio.create_task(found.run())
    try:
        yield found
    finally:
        found.over = True
        await task


async def until(reading: Reading, reads: int) -> None:
    """Wait for so many more reads."""
    goal = reading.reads + reads
    while reading.reads < goal:
        await asyncio.sleep(0.01)


async def in_a_thread(nursery: Nursery, order: Any) -> int:
    """Let a projector live while this process reads and writes; the signal that ended it."""
    return (await asyncio.get_running_loop().run_in_executor(None, nursery.run, order)).signal


async def test_a_rebuild_by_a_user_without_rights_to_logs_is_whole_though_it_is_killed_three_times(
    executable: str, nursery: Nursery
) -> None:
    async with Server(executable) as server, scene(server.url, seed=80) as here:
        await rights(server, here)
        for number in range(1, 13):
            for chat in chats(here.log):
                await chat.add(user(str(number)))
        logs = [chat.log for chat in chats(here.log)]
        await Projector(here.log, [made("history"), BEFORE], **OPTIONS).catch_up()
        order = here.order(KINDS, "rebuild", pause=0.005)
        order["url"] = f"unix://projector:PASSWORD@{server.socket}"
        async with reading(here) as reads, writing(here):
            for place in (("scanned", 1), ("committed", 5), ("applied", 2)):
                await until(reads, READS // 10)
                assert await in_a_thread(nursery, {**order, "dies_at": place}) == signal.SIGKILL
                assert await maintained.load(chats(here.log)[0], None) is not None, "the live one is read meanwhile"
            assert await in_a_thread(nursery, order) == 0
            await until(reads, READS - reads.reads)
            with anyio.fail_after(20):  # what is live is looked at every second
                while len(reads.marks) < 4:
                    await anyio.sleep(0.01)
            assert {"before", "after"} <= reads.marks.keys()
            assert {'{"mark":"before"}', '{"mark":"after"}'} <= reads.marks.keys()
        await Projector(here.log, [made("history"), AFTER], **OPTIONS).catch_up()
        await here.raw.all_equal([made("history"), AFTER], logs)
        for name in ("history", "marked"):
            here.raw.live.forget(name)
            record = await here.raw.live.record(name)
            assert (record.live, record.before, [one.state for one in record.generations]) == (2, 1, ["ready"] * 2)


async def test_flips_and_rollbacks_are_atomic_for_readers(server: str) -> None:
    async with scene(server, seed=81) as here:
        for number in range(1, 8):
            for chat in chats(here.log):
                await chat.add(user(str(number)))
        await Projector(here.log, [made("history"), BEFORE], **OPTIONS).catch_up()
        await Projector(here.log, [AFTER], **OPTIONS).rebuild("marked")
        await Projector(here.log, [made("history")], **OPTIONS).rebuild("history")
        other = Live(here.raw.live.store, here.raw.live.open_readers, here.raw.live.views)
        async with reading(here) as reads, writing(here):
            for turn in range(8):
                for name in ("marked", "history"):
                    await other.change(name, lambda record: record.rollback())
                    here.raw.live.forget(name)
                before = reads.marks.copy()
                await until(reads, READS // 10)
                grown = {mark for mark in reads.marks if reads.marks[mark] > before[mark] + 1}
                wanted = "before" if turn % 2 == 0 else "after"
                assert grown == {wanted, f'{{"mark":"{wanted}"}}'}


async def rights(server: Server, here: Scene) -> None:
    """A user who may read all, and write to nothing but readers and views."""
    keys = here.raw.keys
    async with Redis(unix_socket_path=str(server.socket)) as admin:
        [line] = re.findall(r"^ACL SETUSER projector .*$", ACL.read_text(), re.MULTILINE)
        await admin.execute_command(*line.replace("eventlog:", f"{here.namespace}:").split(" "))
    log = keys.of_log(LogId("a", "c0"))
    async with Redis(unix_socket_path=str(server.socket), username="projector", password="PASSWORD") as client:
        for command in (
            ("XADD", log.log, "*", "e", "x"),
            ("XADD", log.feed, "*", "e", "x"),
            ("XTRIM", log.feed, "MAXLEN", "0"),
            ("HSET", log.head, "last", "1-1"),
            ("HSET", log.ops, "a", "b"),
            ("ZADD", log.conversations, "1", "x"),
            *(("DEL", key) for key in log),
        ):
            with pytest.raises(redis.exceptions.NoPermissionError):
                await client.execute_command(*command)
