"""A run with faults: whatever is killed, cut and lost, everything that was told is true."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from chaos.run import run

SECONDS = float(os.environ.get("CHAOS_SECONDS") or 60)
SEED = int(os.environ.get("CHAOS_SEED") or 20_261_201)


@pytest.mark.timeout(SECONDS + 400)
def test_whatever_is_killed_cut_and_lost_everything_that_was_told_is_true(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = asyncio.run(run(SEED, SECONDS, tmp_path))
    with capsys.disabled():
        print(f"\n{report.text()}")
    assert not report.findings, report.text()
    assert report.operations > 10 * SECONDS, "next to nothing was done: this run proves nothing"
    assert report.kills.total() > SECONDS / 6
