"""Kills a process in the middle of its turn, once it has said that its tool's result is appended."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

if TYPE_CHECKING:
    from gateway.demo.child import Order, Word

PATIENCE = 60.0
"""Seconds that the process may take to get there; it takes less than one."""
_WORD_BYTES = 1000
_ROOT = Path(__file__).parents[2]


class Killed(NamedTuple):
    """How the process ended."""

    pid: int
    signal: int
    """The number of the signal that ended it."""
    appended: int
    """The version of the event that it had seen appended last."""


async def kill_midway(order: Order) -> Killed:
    """Start the process, wait for its word, kill it by its id, and wait for its end.

    Raises ``ChildProcessError`` when it ends without a word, or otherwise than by the signal.
    """
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    process = await anyio.open_process(
        [sys.executable, "-P", "-m", "gateway.demo.child"],
        env={**os.environ, "PYTHONPATH": path},
        stderr=None,
        start_new_session=True,  # Ctrl-C is for the parent; the child ends with its input
    )
    try:
        with anyio.fail_after(PATIENCE):
            word = await _word(process, order)
            os.kill(word["pid"], signal.SIGKILL)
            code = await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()
    if code != -signal.SIGKILL:
        raise ChildProcessError(f"process {process.pid} ended with {code}, not by SIGKILL")
    return Killed(process.pid, -code, word["appended"])


async def _word(process: Process, order: Order) -> Word:
    assert process.stdin is not None
    assert process.stdout is not None
    await process.stdin.send(json.dumps(order).encode() + b"\n")
    try:
        line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", _WORD_BYTES)
    except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError) as error:
        raise ChildProcessError(f"process {process.pid} ended before its tool's result was appended") from error
    word: Word = json.loads(line)
    if word["pid"] != process.pid:
        raise ChildProcessError(f"process {process.pid} says that it is {word['pid']}")
    return word
