"""Runs once, says what happened, and fails when something was found. See the package's docstring."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from chaos.report import Report
from chaos.run import run


def main() -> int:
    """The seed is that of the environment, else the time of day: it is printed."""
    seed = int(os.environ.get("CHAOS_SEED") or time.time())
    seconds = float(os.environ.get("CHAOS_SECONDS") or 300)
    home = Path(os.environ.get("CHAOS_HOME") or tempfile.mkdtemp(prefix="chaos-run-"))
    on_cluster = os.environ.get("CHAOS_CLUSTER", "") not in ("", "0")
    print(f"seed {seed}, {seconds:g} s{' on a cluster' if on_cluster else ''}", flush=True)
    report = asyncio.run(_ended_in_order(run(seed, seconds, home, on_cluster=on_cluster)))
    print(report.text())
    if not report.findings and not os.environ.get("CHAOS_HOME"):
        shutil.rmtree(home, ignore_errors=True)
    return 1 if report.findings else 0


async def _ended_in_order(work: Coroutine[Any, Any, Report]) -> Report:
    """SIGTERM ends it as Ctrl-C does: with nothing left behind."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


if __name__ == "__main__":
    sys.exit(main())
