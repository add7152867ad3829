"""Carries the schedule out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from chaos.proxy import Ways
from chaos.schedule import Fault
from chaos.server import Server
from chaos.supervisor import Supervisor


async def carry_out(
    faults: Sequence[Fault], seconds: float, supervisor: Supervisor, ways: Ways, server: Server
) -> Counter[str]:
    """Each fault at its time, those that last side by side; return when all are over how many of each there were."""
    begun, counts = asyncio.get_running_loop().time(), Counter[str]()
    restarting = asyncio.Lock()
    async with asyncio.TaskGroup() as lasting:
        for fault in faults:
            await asyncio.sleep(max(0.0, begun + fault.at - asyncio.get_running_loop().time()))
            counts[fault.kind] += 1
            match fault.kind:
                case "kill":
                    lasting.create_task(supervisor.kill(fault.target, fault.amount))
                case "freeze":
                    lasting.create_task(supervisor.freeze(fault.target, fault.amount))
                case "server":
                    lasting.create_task(_restart(restarting, server, fault.amount))
                case "cut":
                    ways[fault.target].cut(fault.amount)
                case "lose":
                    ways[fault.target].lose += int(fault.amount)
                case "drop":
                    ways[fault.target].drop += int(fault.amount)
                case "hold":
                    lasting.create_task(ways[fault.target].hold(fault.amount))
                case "blackout":
                    ways[fault.target].black_out(fault.amount)
                case "refuse":
                    lasting.create_task(ways[fault.target].refuse(fault.amount))
        await asyncio.sleep(max(0.0, begun + seconds - asyncio.get_running_loop().time()))
    return counts


async def _restart(restarting: asyncio.Lock, server: Server, downtime: float) -> None:
    async with restarting:
        await server.kill(downtime)
