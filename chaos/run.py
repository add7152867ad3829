"""One run from its start to its report. Whatever happens, no process and no server is left behind."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from chaos import faults, ledger, raw
from chaos.chance import chance
from chaos.checker.check import check
from chaos.checker.finding import Finding
from chaos.checker.state import parse
from chaos.order import NAMESPACE
from chaos.proxy import Proxy, Ways
from chaos.report import Report
from chaos.schedule import Fault, schedule
from chaos.server import Server
from chaos.settle import settled
from chaos.supervisor import MODULES, Supervisor

_PATIENCE = 120.0
"""Seconds within which everything must have settled."""
RAW = "raw.pickle"


async def run(seed: int, seconds: float, home: Path, *, with_faults: bool = True) -> Report:
    """Run for so many seconds, let it settle, and check. The ledgers and the raw keys are left in ``home``."""
    home.mkdir(parents=True, exist_ok=True)
    report = Report(seed, seconds, str(home))
    planned = schedule(seed, seconds) if with_faults else []
    sockets = Path(tempfile.mkdtemp(prefix="chaos-"))  # a socket's path must be short
    server = Server(home / "data", chance(seed, "server"))
    try:
        await server.start()
        async with AsyncExitStack() as opened:
            ways: Ways = {}
            for kind in MODULES:
                way = Proxy(sockets / kind, lambda: server.socket, chance(seed, "way", kind))
                ways[kind] = await opened.enter_async_context(way)
            supervisor = Supervisor(seed, {kind: way.url for kind, way in ways.items()}, home)
            try:
                await _through(report, planned, home, supervisor, ways, server)
            finally:
                supervisor.end_all()
        await _check(report, home, server)
    finally:
        await server.close()
        shutil.rmtree(sockets, ignore_errors=True)
    return report


async def _through(
    report: Report, planned: list[Fault], home: Path, supervisor: Supervisor, ways: Ways, server: Server
) -> None:
    supervisor.start_all()
    watching = asyncio.create_task(supervisor.watch())
    try:
        report.faults = await faults.carry_out(planned, report.seconds, supervisor, ways, server)
        for way in ways.values():
            way.mend()
        for name in await supervisor.stop_agents(_PATIENCE):
            report.findings.append(Finding("stuck", name, f"did not finish within {_PATIENCE:g} s"))
        report.settled, report.lagged = await settled(server.socket, home, _PATIENCE)
        code = await supervisor.read_all(_PATIENCE)
        if code != 0:
            report.findings.append(Finding("stuck", "reader-0", f"ended with {code}"))
    finally:
        watching.cancel()
        await asyncio.wait([watching])
    report.kills = supervisor.kills + type(supervisor.kills)(server=server.kills)
    report.lives, report.left = supervisor.lives, supervisor.left.total()
    report.cut_connections = sum(way.cuts for way in ways.values())
    report.lost_replies = sum(way.lost for way in ways.values())
    report.dropped_requests = sum(way.dropped for way in ways.values())


async def _check(report: Report, home: Path, server: Server) -> None:
    """Of what is there now, and that it is there when the server was killed once more."""
    before = await asyncio.to_thread(raw.of_socket, server.socket)
    raw.keep(before, home / RAW)
    await server.kill(0.0)
    after = await asyncio.to_thread(raw.of_socket, server.socket)
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            report.findings.append(Finding("restart", key, "is another after the server was killed and started again"))
    lives = ledger.read(home)
    report.count(lives, parse(before, NAMESPACE))
    report.findings += await asyncio.to_thread(check, before, lives, NAMESPACE)
