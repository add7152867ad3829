"""A short run on a cluster: a primary is killed and replaced, slots move, and everything that was told is true."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from chaos.run import run

SECONDS = 15.0
SEED = int(os.environ.get("CHAOS_SEED") or 20_261_201)


@pytest.mark.timeout(SECONDS + 300)
def test_whatever_befalls_a_cluster_everything_that_was_told_is_true(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = asyncio.run(run(SEED, SECONDS, tmp_path, on_cluster=True))
    with capsys.disabled():
        print(f"\n{report.text()}")
    assert not report.findings, report.text()
    assert report.operations > 10 * SECONDS, "next to nothing was done: this run proves nothing"
    assert report.stage["kills"] == 1
    assert report.stage["moved"] == 2
