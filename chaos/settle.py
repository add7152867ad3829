"""Waits until nothing is left to be done, by looking at the keys and the ledgers as the checker does."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from chaos import ledger, raw
from chaos.checker.evidence import Evidence
from chaos.checker.followed import followed
from chaos.checker.handled import handled
from chaos.checker.lags import lag
from chaos.checker.state import parse
from chaos.order import NAMESPACE


async def settled(socket: Path, records: Path, seconds: float) -> float | None:
    """How many seconds it took; None when something still lags after so many."""
    begun = time.monotonic()
    while time.monotonic() < begun + seconds:
        await asyncio.sleep(0.5)
        if await asyncio.to_thread(_is_settled, socket, records):
            return time.monotonic() - begun
    return None


def _is_settled(socket: Path, records: Path) -> bool:
    evidence = Evidence(parse(raw.of_socket(socket), NAMESPACE), ledger.read(records))
    return not any(next(iter(one(evidence)), None) for one in (lag, followed, handled))
