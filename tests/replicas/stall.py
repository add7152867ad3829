"""A replica that says and does nothing for a while, and its promotion after the primary was killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from tests.loss.server import Server
from tests.loss.switch import Switch

BODY = "x" * 100_000
"""Of a message. What the primary sends to a stalled replica waits in socket buffers of some MB, and arrives later
after all: only what is beyond them is lost."""
BEYOND = 300
"""So many messages are beyond them."""


@contextmanager
def stalled(replica: Server) -> Iterator[None]:
    """It is stopped while the block lasts."""
    os.kill(replica.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(replica.pid, signal.SIGCONT)


async def take_over(replica: Server, switch: Switch) -> None:
    """The replica is what clients reach from now on."""
    await replica.promote()
    switch.target = replica.socket
    switch.cut()
