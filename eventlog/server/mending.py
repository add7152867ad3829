"""Mending a torn append-only file before the server reads it. Runs the check tool; changes one file.

This is done at each start, whatever the server would do itself, for two reasons. Neither Redis 7.0 nor Valkey
9.1 starts over NUL bytes at the end. And Redis 7.0 with ``aof-load-truncated yes`` cuts a half-written
transaction *behind* its MULTI; what it appends from then on belongs to a transaction without end, and is gone
at the next start. The check tool cuts before the MULTI. Checking costs about a second for each gigabyte.
"""

from __future__ import annotations

import mmap
import shlex
import shutil
import subprocess
import time
from pathlib import Path

from eventlog.errors import ServerUnfit
from eventlog.server import aof
from eventlog.server.binary import Binary, CheckTool, check_tool

TORN = "torn"
"""The folder, below the data directory, with copies of files as they were before a cut."""


def mend(home: Path, binary: Binary) -> str | None:
    """Cut a torn tail off the last append-only file below ``home``; tell what was cut, or None if all was
    well.

    The caller must own the directory: no server may run on it. Raises ``ServerUnfit`` where a cut would lose
    whole commands; the file is then as it was.
    """
    file = _last_file(home)
    if file is None:
        return None
    tool = check_tool(binary)
    if tool is None:
        return None
    up_to = _check(tool, file)
    size = file.stat().st_size
    if up_to is None or up_to >= size:
        return None
    kept = _whole_command_behind(file, up_to)
    path, spare = shlex.quote(str(file)), shlex.quote(f"{file}.copy")
    cut = f"cp {path} {spare} && truncate -s {up_to} {path}"
    if kept is not None:
        raise ServerUnfit(
            f"the append-only file {file} is damaged at byte {up_to} of {size}, and whole commands follow "
            f"(at byte {kept}); it was left as it is. Restore it from a backup; or, to give up "
            f"{size - up_to} bytes from there on: {cut}"
        )
    copy = _copy(home, file)
    _check(tool, file, "--fix")
    if file.stat().st_size != up_to:
        raise ServerUnfit(
            f"the append-only file {file} is torn at byte {up_to} of {size}, and {tool.called} --fix did not "
            f"cut it there. Cut it by hand: {cut}"
        )
    return f"cut {size - up_to} bytes of an unfinished write off the end of {file}; a copy from before is {copy}"


def _last_file(home: Path) -> Path | None:
    folder = home / aof.FOLDER
    try:
        name = aof.last_incremental((folder / aof.MANIFEST).read_text(errors="surrogateescape"))
    except FileNotFoundError:
        return None
    if name is None or not (folder / name).is_file() or (folder / name).stat().st_size == 0:
        return None
    return folder / name


def _check(tool: CheckTool, file: Path, *options: str) -> int | None:
    answer = subprocess.run(
        [tool.called, *options, str(file)],
        executable=tool.executable,
        input=b"y\n",
        capture_output=True,
        check=False,
    )
    return aof.readable_up_to(answer.stdout)


def _whole_command_behind(file: Path, start: int) -> int | None:
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return aof.whole_command_behind(data, start)


def _copy(home: Path, file: Path) -> Path:
    folder = home / TORN
    folder.mkdir(mode=0o700, exist_ok=True)
    copy = folder / f"{file.name}.{time.time_ns()}"
    shutil.copyfile(file, copy)
    return copy
