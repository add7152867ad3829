"""The process that starts the server of a data directory, stays as long as it has users, and then stops it.

Run as a script by `embedded.py`, with its order as JSON and the data directory as working directory; imports
nothing but the standard library, so that it starts fast and finds everything wherever it is run from. It has
a session of its own, so Ctrl-C in a terminal reaches neither it nor the server.

On Linux the server gets SIGTERM when the keeper is killed, and ends in order. Elsewhere it goes on until
somebody opens the data directory, who ends it and starts another.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import TypeAlias, TypedDict

Process: TypeAlias = "subprocess.Popen[bytes]"

_PR_SET_PDEATHSIG = 1


class Order(TypedDict):
    """What the keeper is told."""

    command: list[str]
    """The server to start."""
    lock: int
    """The file descriptor of the server's lock, for the server to inherit."""
    socket: str
    tied: bool
    """Whether the server shall end when the keeper is killed, where the system can do that."""


def write(order: Order) -> str:
    """The order as an argument for this script."""
    return json.dumps(order)


def main(order: Order) -> None:
    """Keep one server until nobody uses it, or it dies."""
    keeping = os.open("keeper", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(keeping, fcntl.LOCK_EX)  # a former keeper may hold it yet; its server died, so it ends too
    if os.fork():
        os._exit(0)  # whoever sent us need not reap us; the lock is held when we are left alone
    users = os.open("users", os.O_RDWR | os.O_CREAT, 0o600)
    server = _start(order)
    unused = threading.Event()
    watcher = threading.Thread(target=_watch, args=(server, unused), daemon=True)
    watcher.start()
    fcntl.flock(users, fcntl.LOCK_EX)
    # Whoever wants to use or start a server waits for this lock, so nobody comes in between.
    unused.set()
    _stop(server, order["socket"])
    watcher.join()
    shutil.rmtree(os.path.dirname(order["socket"]), ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink("server.json")


def _start(order: Order) -> Process:
    server = subprocess.Popen(
        order["command"],
        stdin=subprocess.DEVNULL,
        pass_fds=(order["lock"],),
        env={**os.environ, "LC_ALL": "C"},  # it refuses to start under a locale the machine does not have
        preexec_fn=_tie() if order["tied"] else None,  # noqa: PLW1509 - no thread runs yet
    )
    os.close(order["lock"])  # from here on the lock lives exactly as long as the server
    return server


def _stop(server: Process, path: str) -> None:
    """Ask it to end in order: all it acknowledged is then on the disk. It is never killed."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(b"SHUTDOWN\r\n")  # done at once, where a signal is seen only at the next tick
    server.terminate()  # heard also by a server that is busy, or does not listen yet


def _watch(server: Process, unused: threading.Event) -> None:
    server.wait()
    if not unused.is_set():
        os._exit(1)  # it died under its users; the next one who opens the data directory starts another


def _tie() -> Callable[[], None] | None:
    """What the child does before it becomes the server, so that it ends when this process does."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # looked up before the fork: the child must not load anything
    parent = os.getpid()

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    return tie


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
