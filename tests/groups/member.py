"""A member in a process of its own: ``python -m tests.groups.member URL NAMESPACE GROUP SINK [KILLER]``.

``KILLER`` is ``conversation:version``: handling that event ends the process, as a fault in native code does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio

from eventlog import EventLog
from eventlog.delivery import Delivery
from eventlog.sharing import Backoff
from tests.groups.sink import Sink

LEASE = 1.0


async def main(url: str, namespace: str, group: str, sink_file: str, killer: str = "") -> None:
    sink = Sink(Path(sink_file))

    async def handle(delivery: Delivery) -> None:
        sink.take("begin", delivery)
        await anyio.sleep(0.02)  # so that something is in hand when a member is killed
        if killer == f"{delivery.conversation.conversation}:{delivery.version}":
            os._exit(9)
        sink.take("end", delivery)

    async with EventLog.open(url, namespace=namespace) as log:
        await log.group(group).consume(
            handle,
            lease=LEASE,
            poll=0.2,
            concurrency=8,
            backoff=Backoff(first=0.05),
            batch=50,
            max_deliveries=int(os.environ.get("MOST", "20")),
        )


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
