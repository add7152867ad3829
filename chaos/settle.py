"""Waits until nothing is left to be done, by looking at the keys and the ledgers as the checker does."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from chaos import ledger
from chaos.checker.evidence import Evidence
from chaos.checker.finding import Finding
from chaos.checker.followed import followed
from chaos.checker.handled import handled
from chaos.checker.lags import lag
from chaos.checker.state import parse
from chaos.order import NAMESPACE
from chaos.stage import Stage


async def settled(stage: Stage, records: Path, seconds: float) -> tuple[float | None, str]:
    """How many seconds it took, None when something still lags after so many; and what lagged last."""
    begun, reading, last = time.monotonic(), ledger.Reading(records), ""
    while time.monotonic() < begun + seconds:
        lagging = await asyncio.to_thread(_lagging, stage, reading)
        if lagging is None:
            return time.monotonic() - begun, last
        last = f"{lagging} ({time.monotonic() - begun:.1f} s)"
        await asyncio.sleep(0.5)
    return None, last


def _lagging(stage: Stage, reading: ledger.Reading) -> Finding | None:
    evidence = Evidence(parse(stage.read(), NAMESPACE), reading.read())
    return next((finding for one in (followed, handled, lag) for finding in one(evidence)), None)
