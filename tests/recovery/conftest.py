"""Agents that are killed, and logs on a real server that they wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.recovery.nursery import Order

ROOT = Path(__file__).parents[2]


class Ended(NamedTuple):
    """How an agent ended."""

    signal: int
    """The number of the signal that ended it, or 0."""
    code: int
    seconds: float
    """How long its turn took."""


@dataclass
class Nursery:
    """Where agents come from."""

    process: subprocess.Popen[str]

    def run(self, order: Order) -> Ended:
        """Let an agent live."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        ended = Ended(**json.loads(self.process.stdout.readline()))
        assert ended.code == 0, "the agent failed; its stderr tells"
        return ended


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.recovery.nursery"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield Nursery(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=30)
