"""Durable jobs: an effect has an operation id of its own, and a transcript proves nothing.

A hundred orders are to be shipped, and the agent that ships them is started again three times, each
time knowing nothing but the transcript. Each time it asks for all hundred again. An admission is
an append under the order's own id that expects nothing to be there: it happens once, for ever. And
whether it did is read from the order's own log, not from what the agent said.

python examples/durable_jobs.py
"""

import subprocess
import sys
import tempfile
import time

import anyio

from eventlog import NONE, Draft, EventLog, Tenant, assistant
from projections import history

ORDERS = [f"order-{number}" for number in range(100)]


async def admit(tenant: Tenant, order: str) -> bool:
    """Ship an order, once; return whether this call was the one."""
    shipped = Draft("order-shipped", {"order": order})
    outcome = await tenant.conversation(f"shipping/{order}").append(shipped, operation_id=order, expected=NONE)
    return not outcome.duplicate


async def is_shipped(tenant: Tenant, order: str) -> bool:
    """Reconcile: what the order's own log says."""
    return [event.type async for event in tenant.conversation(f"shipping/{order}").read()] == ["order-shipped"]


async def agent(data: str) -> None:
    """One life of the agent: ships everything, and says so."""
    async with EventLog.open(data=data) as log:
        tenant = log.tenant("blue")
        begun = time.perf_counter()
        admitted = [await admit(tenant, order) for order in ORDERS]
        asked = time.perf_counter()
        found = [await is_shipped(tenant, order) for order in ORDERS]
        read = time.perf_counter()
        await tenant.conversation("chat").add(assistant(f"I have shipped {len(ORDERS)} orders."))
    print(
        f"  admitted {sum(admitted):3}, duplicates {admitted.count(False):3}, found shipped {sum(found):3}"
        f"   100 admissions {1000 * (asked - begun):5.1f} ms   100 reads {1000 * (read - asked):5.1f} ms",
        flush=True,
    )


async def main(data: str) -> None:
    async with EventLog.open(data=data) as log:
        print("The agent, and three fresh processes that do it all again:")
        for _ in range(4):
            await anyio.run_process([sys.executable, __file__, data], stdout=None, stderr=subprocess.STDOUT)
        tenant = log.tenant("blue")
        said = [message.text for message in (await history.load(tenant.conversation("chat"))).messages]
        print(f"The transcript says {len(said)} times: {said[0]}")
        events = [event for order in ORDERS async for event in tenant.conversation(f"shipping/{order}").read()]
        print(f"The orders' own logs hold {len(events)} shipments of {len(ORDERS)} orders.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        anyio.run(agent, sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as directory:
            anyio.run(main, directory)
