"""The embedded server: one for each data directory, shared by all who use it, gone with the last of them.

Three locks in the data directory say who lives. They are ``flock``s, so the kernel frees them when a process
ends, also by SIGKILL; no process id is ever trusted, and nothing stale can mislead.

    users    shared by every user as long as it lives. The keeper (`keeper.py`) waits to hold it alone, which
             it does when there are no users, and holds it until the server has ended: nobody can join a
             server that is leaving.
    start    held by one user at a time while it joins or starts: two starters make one server.
    server   its opening is inherited by the server, so it is held exactly as long as the server lives: two
             servers can never write one append-only file.

``keeper`` is a fourth, held by the keeper as long as it lives, so that a server without one is noticed. A
user takes ``users`` before ``start``, and the keeper takes only ``users``: nobody waits in a circle.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import anyio
import anyio.to_thread
import redis.exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from eventlog.errors import ServerUnavailable, ServerUnfit
from eventlog.server import address, aof, keeper, mending
from eventlog.server.address import Address
from eventlog.server.binary import Binary, find
from eventlog.server.lock import Lock, is_free

Fsync = Literal["everysec", "always"]

LOG = "server.log"
_AGAIN = 0.01  # seconds between two looks at a lock or the socket
_LEAVING = 10.0  # seconds that close waits for a server that is ending
_UNREADABLE = re.compile(
    "(reading|loading) the (append only file|DB)|load(ing)? DB|AOF MANIFEST|obtain the AOF file"
    "|rdb file reading|in RDB|RDB (has|CRC|check)",
    re.IGNORECASE,
)
_CRASHED = "BUG REPORT START"  # hundreds of lines follow, of no use to people
_SENDING = 30.0  # seconds that the keeper may take to start; it takes some 0.02
_TIED = True


class EmbeddedServer:
    """A running server, and this user's hold on it. Made by ``open``; several may be open at once."""

    url: str
    """For ``redis.asyncio.from_url``. A server started on the same data after a crash has the same one."""
    data: Path
    """The data directory, absolute."""
    pid: int
    """The server's process id, to look at; it is the keeper that ends the server."""
    notes: tuple[str, ...]
    """What was repaired when the server started, for people to read."""

    def __init__(self, data: Path, where: Address, pid: int, users: Lock) -> None:
        self.url = where.url
        self.data = data
        self.pid = pid
        self.notes = where.notes
        self._users = users

    @classmethod
    async def open(
        cls,
        data: str | Path | None = None,
        *,
        executable: str | None = None,
        fsync: Fsync = "everysec",
        patience: float = 60.0,
    ) -> EmbeddedServer:
        """Join the server of the data directory, or start one.

        Args:
            data: its directory, made if need be. None: ``$XDG_STATE_HOME/agent-eventlog``, else
                ``~/.local/state/agent-eventlog``.
            executable: the server to start; None: see `binary.py`. Without effect where one runs already.
            fsync: when the append-only file reaches the disk. ``always`` holds for a server that runs
                already, too, and for all its users.
            patience: seconds to wait for others who start or leave, and for the server to read its data.

        Raises:
            ServerNotFound: no executable.
            ServerUnavailable: the directory cannot be used, or the server does not start or answer.
            ServerUnfit: the executable is too old, or the data is damaged other than by a torn end.
        """
        home = _home(data)
        opening = _Opening(home, executable, fsync)
        try:
            with anyio.fail_after(patience):
                where, pid = await opening.run()
        except TimeoutError:
            opening.users.close()
            raise ServerUnavailable(
                f"{home}: {opening.waiting_for}, for {patience:g} s. See {home / LOG}, or give it more time: patience="
            ) from None
        except BaseException:
            opening.users.close()
            raise
        return cls(home, where, pid, opening.users)

    async def close(self) -> None:
        """Use it no more; may be called twice. The last user waits, up to 10 s, for the server to end."""
        if self._users.fd < 0:
            return
        is_last = self._users.take()
        self._users.close()
        if not is_last:
            return
        with suppress(FileNotFoundError), anyio.move_on_after(_LEAVING):  # somebody may delete the directory
            while not is_free(self.data / "keeper") and not _is_used(self.data):
                await anyio.sleep(_AGAIN)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class _Opening:
    """One way through ``open``. ``waiting_for`` says what it waits for, should time run out."""

    def __init__(self, home: Path, executable: str | None, fsync: Fsync) -> None:
        self._home = home
        self._executable = executable
        self._fsync = fsync
        self.waiting_for = "nothing yet"
        with _writing(home):
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.users = Lock(home / "users")

    async def run(self) -> tuple[Address, int]:
        self.waiting_for = "the former server is ending and its directory not free"
        while not self.users.share():
            await anyio.sleep(_AGAIN)
        async with self._alone():
            return await self._reach()

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        self.waiting_for = "another process is starting the server"
        with _writing(self._home):
            start = Lock(self._home / "start")
        try:
            while not start.take():
                await anyio.sleep(_AGAIN)
            yield
        finally:
            start.close()

    async def _reach(self) -> tuple[Address, int]:
        """Whoever calls this holds ``users`` and ``start``."""
        binary: Binary | None = None
        while True:
            with _writing(self._home):
                server = Lock(self._home / "server")
            try:
                if server.take():
                    if binary is not None:
                        raise _ended(self._home, binary)
                    binary = await anyio.to_thread.run_sync(find, self._executable)
                    self.waiting_for = f"{binary.text} does not answer yet; it may still be reading its data"
                    await anyio.to_thread.run_sync(self._start, binary, server)
                elif binary is None:
                    self.waiting_for = (
                        "its server runs and does not answer here; it may still be reading its data, or run "
                        "in another container that shares this directory but not that of its socket"
                    )
            finally:
                server.close()
            where = address.read(self._home)
            pid = await self._answer(where) if where else None
            if where and pid:
                return where, pid
            await anyio.sleep(_AGAIN)

    async def _answer(self, where: Address) -> int | None:
        """The process id of the server at this address. None: it does not answer yet, or is ending."""
        client = Redis(unix_socket_path=str(where.socket), socket_timeout=5.0, retry=Retry(NoBackoff(), 0))
        try:
            await client.ping()
            if is_free(self._home / "keeper"):
                # Its keeper was killed. It is about to end for that, or would stay for ever: it ends now.
                await client.shutdown()
                return None
            if self._fsync == "always":
                await client.config_set("appendfsync", self._fsync)
            return int((await client.info("server"))["process_id"])
        except (
            redis.exceptions.ConnectionError,
            redis.exceptions.TimeoutError,
        ):  # loading is one of the former
            return None
        finally:
            await client.aclose()

    def _start(self, binary: Binary, server: Lock) -> None:
        """Start it on data that is whole. ``server`` is held, and inherited by what is started."""
        with _writing(self._home):
            note = mending.mend(self._home, binary)
            where = address.renew(self._home, (note,) if note else ())
            if (self._home / LOG).exists():
                (self._home / LOG).replace(self._home / f"{LOG}.1")
        command = _command(binary, where.socket, self._fsync)
        _send_keeper(
            self._home,
            {"command": command, "lock": server.fd, "socket": str(where.socket), "tied": _TIED},
        )


def _home(data: str | Path | None) -> Path:
    if data is None:
        # A relative value is to be ignored, says the XDG base directory specification.
        state = os.environ.get("XDG_STATE_HOME", "")
        data = Path(state if os.path.isabs(state) else "~/.local/state") / "agent-eventlog"
    if "\0" in str(data) or not str(data):
        raise ServerUnavailable(f"data={str(data)!r} is no path: name a directory that can be written")
    try:
        return Path(data).expanduser().resolve()
    except (OSError, RuntimeError) as error:
        raise ServerUnavailable(f"data={str(data)!r}: {error}: name a directory that can be written") from None


@contextmanager
def _writing(home: Path) -> Iterator[None]:
    """Turns an OSError into an error that names the data directory and the way out."""
    try:
        yield
    except OSError as error:
        at = f" ({error.filename})" if error.filename else ""
        raise ServerUnavailable(
            f"the data directory {home} cannot be used: {error.strerror or error}{at}. "
            "Name one that can be written: data="
        ) from error


def _command(binary: Binary, socket: Path, fsync: Fsync) -> list[str]:
    """The server's command line. Its directory is the working one: a path may hold what its parser minds."""
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "appendonly": "yes",
        "appendfsync": fsync,
        "aof-load-truncated": "no",  # what is cut is cut by mending.py, which tells
        "save": "",
        "maxmemory": "0",
        "maxmemory-policy": "noeviction",
        "stream-node-max-bytes": "16384",
        "daemonize": "no",
    }
    return [str(binary.path), *(word for name, value in options.items() for word in (f"--{name}", value))]


def _send_keeper(home: Path, order: keeper.Order) -> None:
    """Returns when the keeper holds its lock; it is nobody's child then."""
    if not sys.executable:
        raise ServerUnavailable("sys.executable names no Python to run the server's keeper with: set it")
    with _writing(home), (home / LOG).open("ab") as log:
        try:
            subprocess.run(
                [sys.executable, "-I", "-S", keeper.__file__, keeper.write(order)],
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(order["lock"],),
                timeout=_SENDING,
                check=False,  # a keeper that fails lets go of the server's lock: that is seen
            )
        except subprocess.TimeoutExpired:
            raise ServerUnavailable(
                f"{home}: the server's keeper did not start within {_SENDING:g} s. See {home / LOG}"
            ) from None


def _is_used(home: Path) -> bool:
    """Whether others hold ``users`` together; not so while a keeper holds it alone."""
    users = Lock(home / "users")
    try:
        return users.share() and not users.take()
    finally:
        users.close()


def _ended(home: Path, binary: Binary) -> ServerUnavailable | ServerUnfit:
    """Why a server ended that was just started, from the end of its log."""
    said = (home / LOG).read_text(errors="replace").partition(_CRASHED)[0]
    lines = [line for line in said.splitlines() if line.strip()]
    told = "\n".join(f"  {line}" for line in lines[-8:]) or "  (nothing)"
    if _UNREADABLE.search(said):
        return ServerUnfit(
            f"{binary.text} cannot read the append-only files in {home / aof.FOLDER}: restore them from a "
            f"backup, or start on another directory (data=). It said, in {home / LOG}:\n{told}"
        )
    return ServerUnavailable(f"{binary.text} ended at once on {home}. It said, in {home / LOG}:\n{told}")
