"""A process that has everything imported and forks an agent for each order, so that 50 cost little.

Each line of its input is an order. When the agent has ended it says the number of the signal that
ended it (0: none), its exit code, and how many seconds its turn took. The turn begins when the log
is open: what comes before is the same for all.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn, TypedDict

import anyio

from eventlog import EventLog
from tests.recovery.agent import begin


class Order(TypedDict):
    """Where and what to run."""

    url: str
    namespace: str
    conversation: str
    mode: str
    executions: str
    lease: float
    dies_at: str | None
    """The step at which the agent kills itself, if any."""
    killed_after: float | None
    """After how many seconds of its turn it is killed, if it still lives."""


async def act(order: Order, word: int) -> None:
    """One agent's life. It says a word, into this file, before and after its turn."""

    def step(name: str) -> None:
        if name == order["dies_at"]:
            os.kill(os.getpid(), signal.SIGKILL)

    async with EventLog.open(order["url"], namespace=order["namespace"]) as log:
        chat = log.tenant("t").conversation(order["conversation"])
        os.write(word, b".")
        await begin(chat, order["mode"], Path(order["executions"]), order["lease"], step)
        os.write(word, b".")


def main() -> None:
    """Fork until the input ends."""
    print("ready", flush=True)
    for line in sys.stdin:
        order: Order = json.loads(line)
        heard, word = os.pipe()
        child = os.fork()
        if child == 0:
            _live(order, word)
        os.close(word)
        os.read(heard, 1)
        begun = time.monotonic()
        if order["killed_after"] is not None:
            time.sleep(order["killed_after"])
            os.kill(child, signal.SIGKILL)  # its id is not given to another process before the wait
        os.read(heard, 1)
        seconds = time.monotonic() - begun
        os.close(heard)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        print(json.dumps({"signal": max(-code, 0), "code": max(code, 0), "seconds": seconds}), flush=True)


def _live(order: Order, word: int) -> NoReturn:
    code = 1
    try:
        anyio.run(act, order, word)
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
