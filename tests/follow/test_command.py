"""The command that follows: lines as they come, and a cursor to go on from when it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from eventlog import Conversation, Mode, user
from gateway.command import app
from gateway.command.follow import follow
from tests.gateway.cli import Cli

PATIENCE = 30.0
ENTRY = (
    "from gateway.command import app, main; from gateway.command.follow import follow; app.command()(follow); main()"
)


@pytest.fixture
def cli(server: str) -> Cli:
    return Cli(server, f"t{uuid4().hex[:12]}")


@contextmanager
def following(cli: Cli, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", ENTRY, "follow", *arguments]
    with subprocess.Popen(command, env={**kept, **cli.env}, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline()


def interrupt(process: subprocess.Popen[str]) -> str:
    """What it says on stderr when it is interrupted."""
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    return told


def cursor_of(told: str) -> str:
    assert told.startswith("eventlog: go on with --after ")
    assert len(told.splitlines()) == 1
    return told.rsplit(maxsplit=1)[-1]


def add(cli: Cli, *texts: str, conversation: str = "c") -> None:
    async def work(chat: Conversation) -> None:
        for text in texts:
            await chat.add(user(text))

    cli.record(conversation, work)


def test_a_conversation_is_shown_as_it_grows_and_goes_on_after_the_cursor(cli: Cli) -> None:
    add(cli, "one")
    with following(cli, "-c", "c") as process:
        assert "user: one" in line(process.stdout)
        add(cli, "two")
        assert "user: two" in line(process.stdout)
        cursor = cursor_of(interrupt(process))
    add(cli, "three")
    with following(cli, "-c", "c", "--after", cursor, "--json") as process:
        shown: dict[str, Any] = json.loads(line(process.stdout))
        assert (shown["version"], shown["data"]["parts"][0]["content"]) == (3, "three")
        assert cursor_of(interrupt(process)) == shown["cursor"]


def test_a_tenant_is_shown_with_the_names_of_its_conversations(cli: Cli) -> None:
    add(cli, "one", conversation="a")
    with following(cli, "--type", "message-added") as process:
        assert line(process.stdout).startswith("a ")
        add(cli, "two", conversation="b")
        assert line(process.stdout).startswith("b ")
        cursor = cursor_of(interrupt(process))
    add(cli, "three", conversation="a")
    with following(cli, "--after", cursor, "--json") as process:
        shown = json.loads(line(process.stdout))
        assert (shown["conversation"], shown["version"]) == ("a", 2)


def test_the_history_is_shown_and_what_leaves_it(cli: Cli) -> None:
    add(cli, "one", "two")

    async def rewind(chat: Conversation) -> None:
        await chat.rewind(1, expected=(await chat.head()).last)

    with following(cli, "-c", "c", "--history") as process:
        shown = [line(process.stdout) for _ in range(4)]
        assert shown == ["user [1]\n", "  one\n", "user [2]\n", "  two\n"]
        cli.record("c", rewind)
        assert line(process.stdout) == "-- version 3: 2 left: rewound\n"
        cursor_of(interrupt(process))
    with following(cli, "-c", "c", "--history", "--json") as process:
        assert [message["parts"][0]["content"] for message in json.loads(line(process.stdout))["messages"]] == ["one"]
        add(cli, "three")
        change = json.loads(line(process.stdout))
        assert (change["version"], change["start"], change["removed"], change["entered"]) == (4, 1, 0, [4])


def test_it_ends_with_a_run(cli: Cli) -> None:
    async def record(chat: Conversation) -> None:
        async with chat.run(Mode.PER_RUN, operation_id="ours") as run:
            await run.add(user("hello"))

    cli.record("c", record)
    with following(cli, "-c", "c", "--run", "ours", "--until-run", "ours", "--json") as process:
        shown, told = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    types = [json.loads(one)["type"] for one in shown.splitlines()]
    assert types == ["run-started", "message-added", "run-committed"]
    cursor_of(told)


@pytest.mark.parametrize("arguments", [["-c", "c"], [], ["-c", "c", "--history"]])
def test_it_ends_when_nobody_reads_any_more_though_nothing_happens(cli: Cli, arguments: list[str]) -> None:
    add(cli, "one")
    with following(cli, *arguments) as process:
        while "one" not in line(process.stdout):
            pass
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        began = time.monotonic()
        told = process.stderr.read()
        process.wait(timeout=PATIENCE)
        assert time.monotonic() - began < PATIENCE
        assert "Traceback" not in told
        cursor_of(told)


@pytest.mark.parametrize("after", ["x", "1-1~00000000", "t1.AAAAAAAA"])
@pytest.mark.parametrize("arguments", [["-c", "c"], []])
def test_a_cursor_that_is_none_ends_with_1_and_one_line(cli: Cli, after: str, arguments: list[str]) -> None:
    with following(cli, *arguments, "--after", after) as process:
        shown, told = process.communicate(timeout=PATIENCE)
    assert (process.returncode, shown) == (1, "")
    assert told.startswith("eventlog: ")
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments", ["--history", "--run r", "--until-run r", "-c c --history --type x", "-c c --history --after now"]
)
def test_what_does_not_go_together_is_wrong_usage(arguments: str) -> None:
    if "follow" not in {
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    }:
        app.command()(follow)
    result = CliRunner().invoke(app, ["follow", *arguments.split()], env={"EVENTLOG_URL": "redis://127.0.0.1:1"})
    assert (result.exit_code, result.stdout) == (2, "")
