"""The demo as a newcomer runs it: a process of its own, on the embedded server of a new directory."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from eventlog import Conversation, EventLog
from eventlog.server import address

ROOT = Path(__file__).parents[2]
MODES = ("per-service-call", "per-run")

_ROW = re.compile(r"^ +(?P<version>\d+) {2,}(?P<event>[a-z-]+) {2,}.*?(?: (?P<fate>in history|[a-z]+-[a-z]+))? *$")


@dataclass
class Ran:
    """A demo that has ended."""

    data: Path
    code: int
    out: str
    err: str
    mark: str
    """Stands in the environment of every process that it started."""

    def part(self, mode: str) -> str:
        """What it printed of one mode."""
        return self.out.split(f"Mode {mode} ")[1].split("\nMode ")[0].split("\nBoth modes")[0]

    def conversation(self, mode: str) -> str:
        return re.findall(r"^conversation (\S+)$", self.part(mode), re.MULTILINE)[0]

    def killed(self) -> list[int]:
        return [int(pid) for pid in re.findall(r"Process (\d+) ran this turn", self.out)]

    def rows(self, mode: str) -> dict[int, tuple[str, str]]:
        """Version -> the event's type and what the right column says."""
        table = self.part(mode).split("would remember")[1].split("The service-equivalent history")[0]
        rows = filter(None, map(_ROW.match, table.splitlines()))
        return {int(row["version"]): (row["event"], row["fate"] or "") for row in rows}


def run_demo(data: Path | None, **environment: str) -> Ran:
    mark = f"demo-test-{uuid4().hex}"
    done = subprocess.run(
        [sys.executable, "-m", "gateway.demo", *([] if data is None else [str(data)])],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100", "EVENTLOG_TEST_MARK": mark, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Ran(data or Path(), done.returncode, done.stdout, done.stderr, mark)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    data = tmp_path_factory.mktemp("demo") / "data"
    yield run_demo(data)
    where = address.read(data)
    if where is not None:
        shutil.rmtree(where.socket.parent, ignore_errors=True)


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def chat(ran: Ran, mode: str) -> AsyncIterator[Conversation]:
    """The conversation that the demo wrote in this mode, opened afterwards."""
    async with EventLog.open(data=ran.data) as log:
        yield log.tenant("demo").conversation(ran.conversation(mode))


def processes(mark: str) -> str:
    """The processes in whose environment the mark stands."""
    told = subprocess.run(
        ["ps", "axeww", "-o", "pid,args"],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return "\n".join(line for line in told.splitlines() if mark in line)
