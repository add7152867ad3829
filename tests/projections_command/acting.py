"""Recording conversations for the commands to find, and running what a test waits for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventlog import Conversation, Draft, assistant, tool_call, user
from eventlog.messages import Message
from tests.gateway.cli import Cli

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0


def say(cli: Cli, conversation: str, *texts: str) -> None:
    """Add a user's messages."""

    async def work(chat: Conversation) -> None:
        await chat.add(*map(user, texts))

    cli.record(conversation, work)


def ask_weather(cli: Cli, conversation: str, *, approval: bool = False) -> None:
    """A run of one service call that calls a tool which never returns."""

    async def work(chat: Conversation) -> None:
        async with chat.run(agent="weather") as run:
            await run.add(user("Weather in Oslo?"))
            async with run.service_call(model="large") as call:
                reply: Message = assistant(tool_call("call_1", "look", {"city": "Oslo"}))
                await call.complete(reply, usage={"input_tokens": 10, "output_tokens": 4})
        if approval:
            await chat.append(Draft("approval-requested", {"function_call": call.function_calls[0].version}))

    cli.record(conversation, work)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from gateway.command import main; main()", *arguments]


def environment(cli: Cli, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    return {**kept, **cli.env, "PYTHONWARNINGS": "error", **more}


@contextmanager
def started(cli: Cli, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own, which the block's end kills."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command(*arguments), cwd=ROOT, env=environment(cli), stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], what: str) -> str:
    """What the process says on stderr up to a line that holds this."""
    assert process.stderr is not None
    said = ""
    while what not in said:
        line = process.stderr.readline()
        assert line, f"it ended without {what!r}: {said}"
        said += line
    return said
