"""The process that is killed: it runs one turn, says when the tool's result is appended, and waits there.

The order comes in as one line of JSON (no secret of a URL shows in the list of processes), the word
goes out as one line. Where nobody kills it, the end of its input lets it finish the turn and end.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TypedDict

import anyio
import anyio.to_thread

from eventlog import EventLog, Mode
from gateway.demo.agent import turn
from gateway.demo.script import Model


class Order(TypedDict):
    """Where and what to run."""

    url: str | None
    data: str | None
    durability: str
    tenant: str
    conversation: str
    mode: str
    question: str


class Word(TypedDict):
    """What the process says of itself: its id, and the version of the event that it saw appended last."""

    pid: int
    appended: int


async def main() -> None:
    """Run the turn that is ordered."""
    order: Order = json.loads(sys.stdin.readline())
    async with EventLog.open(order["url"], data=order["data"], durability=order["durability"]) as log:
        chat = log.tenant(order["tenant"]).conversation(order["conversation"])
        await turn(chat, Mode(order["mode"]), Model(), order["question"], pause=_say_and_wait)


async def _say_and_wait(version: int) -> None:
    word: Word = {"pid": os.getpid(), "appended": version}
    print(json.dumps(word), flush=True)
    await anyio.to_thread.run_sync(sys.stdin.read)


if __name__ == "__main__":
    anyio.run(main)
