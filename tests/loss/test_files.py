"""An older or shorter append-only file is put in place: who stood beyond its end is told, and nobody else notices."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

import anyio
import pytest
from redis.asyncio import Redis, from_url

from eventlog import Appended, Cursor, Event, EventLog, LogId, LogLost, user
from eventlog.identity import partition_of
from eventlog.server import aof
from eventlog.server.embedded import EmbeddedServer
from eventlog.store.conformance.suite import put
from eventlog.store.redis.keys import Keys
from tests.loss.log import (
    NAMESPACE,
    add,
    assert_reader_is_told,
    assert_writer_is_told,
    chat,
    events,
    opened,
    operations,
)
from tests.loss.server import Server

pytestmark = pytest.mark.anyio

CUTS = 100
AT_ONCE = 2
PARTITIONS = 2


@pytest.mark.parametrize("again", [(), ("e", "f", "g")], ids=["", "versions used again"])
async def test_who_stood_beyond_a_restored_file_is_told(primary: Server, again: tuple[str, ...]) -> None:
    copy = primary.home / "copy"
    async with opened(primary.url) as log:
        before, beyond = chat(log), chat(log)
        kept = await add(before, "a", "b")
        await primary.stop()
        shutil.copytree(primary.files, copy)
        await primary.start()
        lost = await add(beyond, "c", "d")
        await primary.stop()
        shutil.rmtree(primary.files)
        copy.rename(primary.files)
        await primary.start()

        if again:
            await add(chat(log), *again)
        there = 2 + len(again)
        await assert_reader_is_told(chat(log), lost.cursor, there)
        await assert_writer_is_told(beyond, there)
        assert operations(await events(chat(log), kept.cursor)) == list(again)
        assert (await add(before, "h")).first == there + 1


class Recorded(NamedTuple):
    """An operation as it was acknowledged."""

    log: LogId
    operation: str
    events: int
    cursor: Cursor


async def record(log: EventLog) -> list[Recorded]:
    """Append operations of several sizes, in and outside runs, to three conversations, in one order."""
    told: list[Recorded] = []
    random = Random(7)

    def keep(conversation: str, outcome: Appended) -> None:
        told.append(Recorded(LogId("acme", conversation), outcome.operation_id, len(outcome.versions), outcome.cursor))

    for turn in range(12):
        for conversation in ("x", "y", "z"):
            handle = chat(log, conversation)
            keep(conversation, await handle.add(*[user("ä" * random.randint(1, 200))] * random.randint(1, 4)))
            if turn % 4 == 1:
                async with handle.run(lease=600) as run:
                    started = (await handle.head()).last
                    keep(conversation, Appended(started, started.version, run.id, False))
                    added = await run.add(user("in the run"), user("twice"))
                    assert added is not None
                    keep(conversation, added)
                    keep(conversation, await run.commit())
    return told


async def test_an_append_only_file_cut_anywhere_holds_only_whole_operations(
    executable: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("cut")
    whole = home / "whole"
    async with (
        served(whole, executable) as server,
        EventLog.open(server.url, namespace=NAMESPACE, partitions=PARTITIONS) as log,
    ):
        told = await record(log)
    folder = whole / aof.FOLDER
    name = aof.last_incremental((folder / aof.MANIFEST).read_text())
    assert name is not None
    size = (folder / name).stat().st_size
    places = Random(1).sample(range(size * 2 // 5, size), CUTS)
    kept: list[int] = []

    async def cut(place: int, worker: int) -> None:
        copy = home / f"cut-{worker}-{place}"
        shutil.copytree(whole, copy, ignore=shutil.ignore_patterns("server.json", "*.log*"))
        with (copy / aof.FOLDER / name).open("r+b") as file:
            file.truncate(place)
        async with served(copy, executable) as server:
            kept.append(await check(server.url, told))
        shutil.rmtree(copy)

    async def work(worker: int) -> None:
        for place in places[worker::AT_ONCE]:
            await cut(place, worker)

    async with anyio.create_task_group() as workers:
        for worker in range(AT_ONCE):
            workers.start_soon(work, worker)
    assert len(kept) == CUTS
    assert len(set(kept)) > len(told) // 4, "the cuts were not spread"


@asynccontextmanager
async def served(data: Path, executable: str) -> AsyncIterator[EmbeddedServer]:
    server = await EmbeddedServer.open(data, executable=executable)
    try:
        yield server
    finally:
        await server.close()


async def check(url: str, told: list[Recorded]) -> int:
    """What is there is what was acknowledged first, whole, and all that is kept of it agrees. How many there are."""
    async with EventLog.open(url, namespace=NAMESPACE) as log, from_url(url, decode_responses=True) as client:
        there = {cid: await events(chat(log, cid)) for cid in ("x", "y", "z")}
        at = {(cid, event.version, event.stamp) for cid, found in there.items() for event in found}
        kept = [one for one in told if (one.log.conversation, *one.cursor[:2]) in at]
        assert kept == told[: len(kept)], "a later operation is there and an earlier one is not"
        assert sum(one.events for one in kept) == len(at), "an operation is half there"
        for cid, found in there.items():
            mine = [one for one in kept if one.log.conversation == cid]
            assert [event.operation_id for event in found] == [one.operation for one in mine for _ in range(one.events)]
            await check_keys(client, log, mine, cid)
        for number, one in enumerate(told):
            end = len(there[one.log.conversation])
            handle = chat(log, one.log.conversation)
            if number < len(kept):
                assert len(await events(handle, one.cursor)) == end - one.cursor.version
            else:
                await assert_reader_is_told(handle, one.cursor, end)
                with pytest.raises(LogLost):
                    await put(log.store, "x", "beyond", log=one.log, cursor=one.cursor)
        for cid in there:
            mine = [one for one in kept if one.log.conversation == cid]
            if mine:
                outcome = await put(log.store, "x", "before", log=mine[-1].log, cursor=mine[-1].cursor)
                assert outcome.first == mine[-1].cursor.version + 1
        return len(kept)


async def check_keys(client: Redis, log: EventLog, mine: list[Recorded], cid: str) -> None:
    """The head, the records and the feed tell of the same operations."""
    path = LogId("acme", cid)
    keys = Keys(NAMESPACE, PARTITIONS).of_log(path)
    head = await chat(log, cid).head()
    assert head.last == (mine[-1].cursor if mine else path.cursor(0, 0))
    spans = [(one.cursor.version - one.events + 1, one.events, one.cursor.stamp) for one in mine]
    records = await client.hgetall(keys.ops)
    assert {name: value.rsplit(":", 1)[0] for name, value in records.items()} == {
        one.operation: ":".join(map(str, span)) for one, span in zip(mine, spans, strict=True)
    }
    feed = [fields for _, fields in await client.xrange(keys.feed) if fields["c"] == path.path]
    assert [(int(entry["f"]), int(entry["n"]), int(entry["s"])) for entry in feed] == spans
    listed = await client.zrange(Keys(NAMESPACE, PARTITIONS).conversations(partition_of(path.path, PARTITIONS)), 0, -1)
    assert (path.path in listed) == bool(mine)
    assert {run.run for run in head.runs} == open_runs(await events(chat(log, cid)))


def open_runs(there: list[Event]) -> set[str | None]:
    """The runs that were started and not committed."""
    started = {event.run for event in there if event.type == "run-started"}
    return started - {event.run for event in there if event.type == "run-committed"}
