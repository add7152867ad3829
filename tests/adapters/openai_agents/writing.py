"""A process that adds to a session: ``python -m tests.adapters.openai_agents.writing URL NAMESPACE NAME``."""

from __future__ import annotations

import asyncio
import sys

from eventlog import EventLog
from gateway.adapters.openai_agents import EventLogSession


async def write(url: str, namespace: str, name: str) -> None:
    """Add pairs of a call and its result, one after the other."""
    async with EventLog.open(url, namespace=namespace) as log:
        session = EventLogSession("s", tenant=log.tenant("t"))
        for number in range(25):
            call_id = f"{name}-{number}"
            call = {"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"}
            await session.add_items([call, {"type": "function_call_output", "call_id": call_id, "output": "seen"}])
            print(call_id, flush=True)


if __name__ == "__main__":
    asyncio.run(write(*sys.argv[1:]))
