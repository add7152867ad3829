"""Where the server of a data directory listens: a socket in a short private directory.

The socket cannot stand in the data directory, whose path may be longer than a socket's may be; the data
directory records where it is. The directory of the socket names the data directory in turn, so that a copied
data directory never takes over the socket of the original.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from eventlog.errors import ServerUnavailable

RECORD = "server.json"
LONGEST = 103 if sys.platform == "darwin" else 107
"""Bytes in the path of a unix socket."""
_SOCKET = "s"
_OWNER = "data"


@dataclass(frozen=True)
class Address:
    """What the record says: where the server listens, and what was repaired when it started."""

    socket: Path
    notes: tuple[str, ...]

    @property
    def url(self) -> str:
        """As ``redis.asyncio.from_url`` takes it."""
        return f"unix://{quote(os.fsencode(self.socket))}"


def read(home: Path) -> Address | None:
    """The recorded address, or None where there is none that can be read."""
    try:
        record = json.loads((home / RECORD).read_text())
        return Address(Path(record["socket"]), tuple(map(str, record["notes"])))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def renew(home: Path, notes: Sequence[str]) -> Address:
    """Record the address for a server that is about to start; only whoever starts it may call this.

    The former socket is taken again if it can be, so that users of a server that crashed find the next one.
    Raises ``ServerUnavailable`` where no private directory can be made, OSError where the record cannot be
    written.
    """
    former = read(home)
    socket = former.socket if former and _belongs(former.socket, home) else _new_socket(home)
    address = Address(socket, tuple(notes))
    fresh = home / f"{RECORD}.new"
    fresh.write_text(json.dumps({"socket": str(address.socket), "notes": address.notes}))
    fresh.replace(home / RECORD)  # at once: a reader never sees half a record
    return address


def _belongs(socket: Path, home: Path) -> bool:
    try:
        folder = socket.parent.lstat()
        owner = os.readlink(socket.parent / _OWNER)
    except OSError:
        return False
    private = stat.S_ISDIR(folder.st_mode) and folder.st_uid == os.getuid() and not folder.st_mode & 0o077
    return private and owner == str(home)


def _new_socket(home: Path) -> Path:
    tried = []
    for parent in dict.fromkeys((tempfile.gettempdir(), "/tmp")):  # noqa: S108 - mkdtemp makes a private one
        length = len(os.fsencode(parent)) + len("/eventlog-12345678/") + len(_SOCKET)
        if length > LONGEST:
            tried.append(f"{parent}: a socket there has {length} bytes in its path, at most {LONGEST} are allowed")
            continue
        try:
            folder = Path(tempfile.mkdtemp(prefix="eventlog-", dir=parent))
            (folder / _OWNER).symlink_to(home)
        except OSError as error:
            tried.append(f"{parent}: {error.strerror}")
            continue
        return folder / _SOCKET
    raise ServerUnavailable(
        f"no directory for the server's socket ({'; '.join(tried)}): set TMPDIR to a short one that can be written"
    )
