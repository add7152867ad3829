"""How this program is called, so that the commands that the demo prints run as they stand."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

_NAME = "eventlog"


def called() -> str:
    """``eventlog`` where the shell finds this one, else its path; else the module, run by this Python."""
    script, found = Path(sys.argv[0]), shutil.which(_NAME)
    if script.name == _NAME and script.is_file():
        if found is not None and Path(found).resolve() == script.resolve():
            return _NAME
        return _path(script)
    return _NAME if found is not None else f"{_path(Path(sys.executable))} -m gateway.command"


def options(url: str | None, data: Path | None, durability: str) -> list[str]:
    """The options that a command needs to look at the same place. A password is shown to nobody."""
    told = []
    if url is not None:
        known = _without_password(url)
        # The environment gives a URL to the next command, too.
        if known == url or os.environ.get("EVENTLOG_URL") != url:
            told.append(f"--url {shlex.quote(known)}")
    elif data is not None:
        told.append(f"--data {shlex.quote(str(data))}")
    if durability != os.environ.get("EVENTLOG_DURABILITY", "everysec"):
        told.append(f"--durability {shlex.quote(durability)}")
    if os.environ.get("EVENTLOG_NAMESPACE", _NAMESPACE) != _NAMESPACE:
        told.append(f"--namespace {_NAMESPACE}")
    return told


_NAMESPACE = "eventlog"
"""Where the demo writes, whatever the environment says."""


def _path(file: Path) -> str:
    """The path as a shell takes it: from the working directory on where it lies below that."""
    whole = Path(os.path.abspath(file))  # not resolved: a virtual environment's Python is known by its link
    here = Path.cwd()
    short = str(whole.relative_to(here)) if whole.is_relative_to(here) else str(whole)
    return shlex.quote(short if os.sep in short else f".{os.sep}{short}")


def _without_password(url: str) -> str:
    """The URL as it may stand on a screen."""
    password = urlsplit(url).password
    return url if password is None else url.replace(f":{password}@", ":PASSWORD@", 1)
