"""An agent in a process of its own: killed in its tool or its second service call, hanging, or asking for approval.

python -m tests.adapters.agent_framework.other_process URL NAMESPACE MODE STORES PLACE
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any

from agent_framework import Agent, tool

from eventlog import EventLog
from gateway.adapters.agent_framework import record
from tests.adapters.agent_framework.service import Service, call

LEASE = 0.2
"""Seconds after which a run of this process may be taken for dead."""


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Deadly(Service):
    """Kills the process when it is asked more often than its script is long."""

    def _receive(self, *arguments: Any) -> Any:
        if not self.script:
            die()
        return super()._receive(*arguments)


def agent_on(log: EventLog, mode: str, service: Service, place: str) -> Agent[Any]:
    @tool
    async def weather(city: str) -> str:
        """The weather in a city."""
        if place == "tool":
            die()
        if place == "hangs":
            print("hanging", flush=True)
            await asyncio.Event().wait()
        return f"3 C in {city}"

    @tool(approval_mode="always_require")
    async def book(city: str) -> str:
        """Must be approved."""
        return f"booked {city} in {place}"

    return record(Agent(service, name="agent", tools=[weather, book]), log.tenant("t"), mode, lease=LEASE)


async def main(url: str, namespace: str, mode: str, stores: str, place: str) -> None:
    async with EventLog.open(url, namespace=namespace) as log:
        asks = "book" if place == "asks" else "weather"
        service = Deadly([[call("c1", asks, '{"city": "Oslo"}')]], stores=stores == "stores")
        agent = agent_on(log, mode, service, place)
        session = agent.create_session(session_id="s")
        response = await agent.run("Oslo?", session=session)
        requests = [request.to_dict() for request in response.user_input_requests]
        print(json.dumps({"session": session.to_dict(), "requests": requests}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
