"""The page on backup and restore, done as it says: its commands are the ones that are run here."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from eventlog import EventLog, user
from eventlog.server import aof
from eventlog.server.binary import check_tool, find
from eventlog.server.check import inspect
from eventlog.store.port import OPERATION_WINDOW
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

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "backup.md"
STOPPED, RUNNING, CHECK, RESTORE, TORN = (
    "Copy a server that is stopped",
    "Copy a server that runs",
    "Check a copy",
    "Restore",
    "After a power cut",
)
CLI = """
import sys, redis
client = redis.Redis(unix_socket_path=sys.argv[2], decode_responses=True)
def say(reply):
    if isinstance(reply, dict):
        print(*(f"{k}\\n{v}" if sys.argv[3] == "CONFIG" else f"{k}:{v}" for k, v in reply.items()), sep="\\n")
    else:
        print(reply)
say(client.execute_command(*sys.argv[3:]))
"""


class Failed(Exception):
    """The commands of the page ended with an error."""


def commands(heading: str) -> str:
    """The commands that stand under a heading of the page."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return "\n".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL))


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    return tmp_path / "backup"


@pytest.fixture
def page(tmp_path: Path, backup: Path, executable: str) -> Callable[..., None]:
    """Runs the commands under a heading, with ``eventlog`` and ``redis-cli`` on PATH."""
    tools = tmp_path / "tools"
    tools.mkdir()
    scripts = {"eventlog": "-m gateway.command"}
    if shutil.which("redis-cli") is None:
        (tools / "cli.py").write_text(CLI)
        scripts["redis-cli"] = shlex.quote(str(tools / "cli.py"))
    for name, what in scripts.items():
        (tools / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {what} "$@"\n')
        (tools / name).chmod(0o755)
    tool = check_tool(find(executable))
    assert tool is not None
    called = f"exec -a {tool.called} {shlex.quote(str(tool.executable))}"
    (tools / "redis-check-aof").write_text(f'#!/usr/bin/env bash\n{called} "$@"\n')
    (tools / "redis-check-aof").chmod(0o755)

    def run(heading: str, **variables: Path) -> None:
        ran = subprocess.run(
            ["sh", "-e", "-c", commands(heading)],
            cwd=tmp_path,
            env={
                **os.environ,
                "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
                "EVENTLOG_SERVER": executable,
                "EVENTLOG_NAMESPACE": NAMESPACE,
                "BACKUP": str(backup),
                **{name: str(value) for name, value in variables.items()},
            },
            input="y\n",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if ran.returncode != 0:
            raise Failed(ran.stdout + ran.stderr)

    return run


def test_the_page_has_commands_under_each_of_these_headings() -> None:
    for heading in (STOPPED, RUNNING, CHECK, RESTORE, TORN):
        assert commands(heading)
    assert len(re.findall("```sh", PAGE.read_text())) == 5
    assert f"more than {OPERATION_WINDOW} others" in PAGE.read_text()


async def torn(server: Server) -> None:
    """Two operations, of which the power cut leaves the first whole, and the second but for its last bytes."""
    async with opened(server.url) as log:
        for name in ("a", "b"):
            await chat(log).add(user(name), user("more"), operation_id=name)
    server.kill()
    folder = server.files / aof.FOLDER
    name = aof.last_incremental((folder / aof.MANIFEST).read_text())
    assert name is not None
    os.truncate(folder / name, (folder / name).stat().st_size - 5)


async def gone_on(server: Server) -> list[str]:
    """What is there once another operation was appended and the server started again."""
    await server.start()
    async with opened(server.url) as log:
        await chat(log).add(user("c"), user("more"), operation_id="c")
    await server.stop()
    await server.start()
    async with opened(server.url) as log:
        return operations(await events(chat(log)))


async def test_a_torn_end_is_cut_off_whole_as_the_page_says(page: Callable[..., None], executable: str) -> None:
    async with Server(executable, fsync="always", **{"aof-load-truncated": "no"}) as server:
        await torn(server)
        page(TORN, DATA=server.files)
        assert await gone_on(server) == ["a", "a", "c", "c"]


async def test_a_server_of_which_doctor_does_not_warn_cuts_a_torn_end_off_whole() -> None:
    embedded = str(find(None).path)
    async with Server(embedded, fsync="always", **{"aof-load-truncated": "yes"}) as server:
        assert (await inspect(server.url)).may_keep_half is False
        await torn(server)
        assert await gone_on(server) == ["a", "a", "c", "c"]


async def test_an_embedded_server_is_backed_up_and_restored_as_the_page_says(
    page: Callable[..., None], backup: Path, tmp_path: Path, executable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENTLOG_SERVER", executable)
    data = tmp_path / "data"
    async with EventLog.open(data=data, namespace=NAMESPACE) as log:
        kept = await add(chat(log), "a", "b")
    page(STOPPED, DATA=data)
    async with EventLog.open(data=data, namespace=NAMESPACE) as log:
        lost = await add(chat(log), "c", "d")
    page(RESTORE, DATA=data)
    async with EventLog.open(data=data, namespace=NAMESPACE) as log:
        await assert_reader_is_told(chat(log), lost.cursor, 2)
        assert await events(chat(log), kept.cursor) == []
        assert operations(await events(chat(log))) == ["a", "b"]
    async with EventLog.open(data=backup, namespace=NAMESPACE) as log:
        assert operations(await events(chat(log))) == ["a", "b"]


async def test_a_server_is_restored_as_the_page_says_under_its_readers_and_writers(
    page: Callable[..., None], primary: Server
) -> None:
    async with opened(primary.url) as log:
        before, beyond = chat(log), chat(log)
        kept = await add(before, "a", "b")
        await primary.stop()
        page(STOPPED, DATA=primary.files)
        await primary.start()
        lost = await add(beyond, "c", "d", "e")
        await primary.stop()
        page(RESTORE, DATA=primary.files)
        await primary.start()

        assert await events(chat(log), kept.cursor) == []
        await assert_reader_is_told(chat(log), lost.cursor, 2)
        await assert_writer_is_told(beyond, 2)
        # opened anew, what is still known is appended again: nothing is doubled
        await add(before, "a", "b", "x", "c", "d", "e")
        assert operations(await events(chat(log))) == ["a", "b", "x", "c", "d", "e"]
        await assert_reader_is_told(chat(log), lost.cursor, 6)
        await assert_writer_is_told(beyond, 6)


async def test_a_server_that_runs_is_copied_as_the_page_says_beside_its_writers(
    page: Callable[..., None], executable: str, backup: Path
) -> None:
    is_over = False
    async with Server(executable, fsync="always") as server, opened(server.url) as log:
        done: list[str] = []

        async def write() -> None:
            while not is_over:
                done.append((await add(chat(log), f"op-{len(done)}")).operation_id)

        async with anyio.create_task_group() as writers:
            writers.start_soon(write)
            async with server.client() as client:
                await client.config_set("auto-aof-rewrite-percentage", "70")
                with anyio.fail_after(20):
                    while len(done) < 200:
                        await anyio.sleep(0.005)
                await client.bgrewriteaof()
                before = list(done)
                await anyio.to_thread.run_sync(lambda: page(RUNNING, DATA=server.files, SOCKET=server.socket))
                assert await client.config_get("auto-aof-rewrite-percentage") == {"auto-aof-rewrite-percentage": "70"}
            is_over = True
        after = list(done)
    async with Server(executable) as copy:
        await copy.stop()
        shutil.copytree(backup, copy.files, dirs_exist_ok=True)
        await copy.start()
        async with opened(copy.url) as log:
            there = operations(await events(chat(log)))
            assert there[: len(before)] == before
            assert there == after[: len(there)]


async def test_a_copy_is_checked_as_the_page_says(page: Callable[..., None], primary: Server, backup: Path) -> None:
    async with opened(primary.url) as log:
        await add(chat(log), "a", "b")
    await primary.stop()
    page(STOPPED, DATA=primary.files)
    page(CHECK)
    assert [path.name for path in backup.iterdir()] == ["appendonlydir"]


async def test_the_check_finds_a_copy_that_lacks_a_file(
    page: Callable[..., None], primary: Server, backup: Path
) -> None:
    async with opened(primary.url) as log:
        await add(chat(log), "a", "b")
    await primary.stop()
    page(STOPPED, DATA=primary.files)
    next((backup / "appendonlydir").glob("*.incr.aof")).unlink()
    with pytest.raises(Failed, match="cannot read the append-only files"):
        page(CHECK)
