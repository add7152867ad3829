"""A run that is ended in its middle leaves no process and no server behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.ledger import read
from eventlog.server.lock import is_free

ROOT = Path(__file__).parents[2]
# Only Linux can tie a process to the one that started it.
SIGNALS = [signal.SIGTERM, signal.SIGKILL] if sys.platform == "linux" else [signal.SIGTERM]

# What nodes of a cluster are started by, only Linux tells.
STAGES = {"": "one server", "1": "a cluster"} if sys.platform == "linux" else {"": "one server"}


def processes_of(home: Path) -> list[str]:
    """The command lines that name the run's directory."""
    if sys.platform == "linux":  # small images have no ps
        lines = [_line(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
    else:
        command = ["ps", "-axww", "-o", "command="]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if str(home) in line]


def _line(path: Path) -> str:
    try:
        return path.read_text(errors="replace").replace("\0", " ")
    except OSError:  # it has ended
        return ""


def nodes_in(home: Path) -> list[str]:
    """The processes that work in a directory below this one, as a cluster's nodes do. On Linux."""
    return [str(path) for path in Path("/proc").glob("[0-9]*/cwd") if _link(path).startswith(f"{home}/")]


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:  # it has ended, or is somebody else's
        return ""


def wait_until(reached: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


@pytest.mark.parametrize("cluster", STAGES, ids=STAGES.get)
@pytest.mark.parametrize("ending", SIGNALS, ids=lambda ending: ending.name)
def test_nothing_is_left_behind(tmp_path: Path, ending: signal.Signals, cluster: str) -> None:
    home = tmp_path / "run"
    short = Path(tempfile.mkdtemp())  # for sockets, whose paths must be short; a killed run cannot remove them
    asked = {"CHAOS_SEED": "1", "CHAOS_SECONDS": "60", "CHAOS_HOME": str(home), "CHAOS_CLUSTER": cluster}
    environment = {**os.environ, "TMPDIR": str(short), **asked}
    run = subprocess.Popen([sys.executable, "-m", "chaos"], cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_until(
            lambda: sum(line["do"] == "acked" for life in read(home) for line in life.lines) > 50, lambda: "no run"
        )
        assert len(processes_of(home)) > 5
        if cluster:
            assert len(nodes_in(short)) == 6
        else:
            assert not is_free(home / "data" / "server")
        run.send_signal(ending)
        run.wait(timeout=60)
        wait_until(lambda: not processes_of(home), lambda: processes_of(home))
        if cluster:
            wait_until(lambda: not nodes_in(short), lambda: nodes_in(short))
        else:
            wait_until(lambda: is_free(home / "data" / "server"), lambda: "the server is still there")
    finally:
        run.kill()
        run.wait()
        shutil.rmtree(short, ignore_errors=True)
