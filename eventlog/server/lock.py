"""A lock on a file of the data directory that the kernel drops when its holder dies, however it dies.

``flock`` belongs to the open file, not to the process: it is inherited with the file, and two openings in one
process exclude each other. Nothing here waits: whoever wants to wait asks again.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class Lock:
    """One opening of a lock file. Closing it, or the end of the last process that has it, frees the lock."""

    def __init__(self, path: Path) -> None:
        """Open ``path``, making it if need be, and hold nothing yet. Raises OSError."""
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self) -> bool:
        """Hold it alone, if nobody else holds it. A shared hold may be lost when this fails."""
        return self._lock(fcntl.LOCK_EX)

    def share(self) -> bool:
        """Hold it together with others, if nobody holds it alone."""
        return self._lock(fcntl.LOCK_SH)

    def close(self) -> None:
        """Hold it no more; may be called twice. A process that inherited the opening still holds the lock."""
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            os.close(fd)

    def _lock(self, how: int) -> bool:
        try:
            fcntl.flock(self.fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock at ``path`` alone."""
    lock = Lock(path)
    try:
        return lock.share()
    finally:
        lock.close()
