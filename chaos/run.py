"""One run from its start to its report. Whatever happens, no process and no server is left behind."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from chaos import faults, ledger, raw
from chaos.checker.check import check
from chaos.checker.finding import Finding
from chaos.checker.state import parse
from chaos.cluster import Cluster
from chaos.order import NAMESPACE
from chaos.report import Report
from chaos.schedule import PROCESSES, Fault
from chaos.settle import settled
from chaos.single import Single
from chaos.stage import Stage
from chaos.supervisor import MODULES, Supervisor

_PATIENCE = 120.0
"""Seconds within which everything must have settled."""
RAW = "raw.pickle"


async def run(seed: int, seconds: float, home: Path, *, with_faults: bool = True, on_cluster: bool = False) -> Report:
    """Run for so many seconds, let it settle, and check. The ledgers and the raw keys are left in ``home``."""
    home.mkdir(parents=True, exist_ok=True)
    report = Report(seed, seconds, str(home), on_cluster=on_cluster)
    stage: Stage = Cluster(seed) if on_cluster else Single(seed, home, list(MODULES))
    async with stage:
        supervisor = Supervisor(seed, stage, home)
        try:
            await _through(report, stage.plan(seed, seconds) if with_faults else [], home, supervisor, stage)
        finally:
            supervisor.end_all()
        await _check(report, home, stage)
    return report


async def _through(report: Report, planned: list[Fault], home: Path, supervisor: Supervisor, stage: Stage) -> None:
    supervisor.start_all()
    watching = asyncio.create_task(supervisor.watch())
    try:
        await _at_work(home)
        report.faults = await faults.carry_out(planned, report.seconds, supervisor, stage)
        stage.mend()
        for name in await supervisor.stop_agents(_PATIENCE):
            report.findings.append(Finding("stuck", name, f"did not finish within {_PATIENCE:g} s"))
        report.settled, report.lagged = await settled(stage, home, _PATIENCE)
        code = await supervisor.read_all(_PATIENCE)
        if code != 0:
            report.findings.append(Finding("stuck", "reader-0", f"ended with {code}"))
    finally:
        watching.cancel()
        await asyncio.wait([watching])
    report.stage = stage.counts.copy()
    report.kills = supervisor.kills + type(supervisor.kills)(server=report.stage["kills"])
    report.lives, report.left = supervisor.lives, supervisor.left.total()


async def _at_work(home: Path) -> None:
    """Wait until every agent has begun: on a busy machine that takes longer than a short run."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            while sum(path.stat().st_size > 0 for path in home.glob("agent-*.0.jsonl")) < PROCESSES["agent"]:
                await asyncio.sleep(0.05)


async def _check(report: Report, home: Path, stage: Stage) -> None:
    """Of what is there now, and that another who was told of every write has the same."""
    before = await asyncio.to_thread(stage.read)
    raw.keep(before, home / RAW)
    where, after = await stage.read_again()
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            report.findings.append(Finding("again", key, f"is another {where}"))
    lives = ledger.read(home)
    report.count(lives, parse(before, NAMESPACE))
    report.findings += await asyncio.to_thread(check, before, lives, NAMESPACE)
