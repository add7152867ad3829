"""A short run without faults, whose keys and ledgers the checker's own tests change."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from chaos import ledger, raw
from chaos.report import Report
from chaos.run import RAW, run
from tests.chaos.planting import Plot


@pytest.fixture(scope="session")
def calm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    """A run in which nothing goes wrong, long enough for something of everything; and where its files are."""
    for seconds in (4, 8, 16):
        home = tmp_path_factory.mktemp("calm")
        report = asyncio.run(run(7, seconds, home, with_faults=False))
        if report.findings or Plot(raw.kept(home / RAW), ledger.read(home)).is_rich():
            break
    return report, home


@pytest.fixture
def plot(calm: tuple[Report, Path]) -> Plot:
    """A copy of what it left."""
    home = calm[1]
    return Plot(raw.kept(home / RAW), ledger.read(home))
