"""Carries the schedule out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from chaos.schedule import Fault
from chaos.stage import Stage
from chaos.supervisor import Supervisor


async def carry_out(faults: Sequence[Fault], seconds: float, supervisor: Supervisor, stage: Stage) -> Counter[str]:
    """Each fault at its time, those that last side by side; return when all are over how many of each there were."""
    begun, counts = asyncio.get_running_loop().time(), Counter[str]()
    async with asyncio.TaskGroup() as lasting:
        for fault in faults:
            await asyncio.sleep(max(0.0, begun + fault.at - asyncio.get_running_loop().time()))
            counts[fault.kind] += 1
            match fault.kind:
                case "kill":
                    lasting.create_task(supervisor.kill(fault.target, fault.amount))
                case "freeze":
                    lasting.create_task(supervisor.freeze(fault.target, fault.amount))
                case _:
                    lasting.create_task(stage.harm(fault))
        await asyncio.sleep(max(0.0, begun + seconds - asyncio.get_running_loop().time()))
    return counts
