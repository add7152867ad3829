"""A user of the embedded server, as a process: opens it, and closes it when its input ends."""

from __future__ import annotations

import json
import sys

import anyio
import anyio.to_thread

from eventlog.server import EmbeddedServer


async def main(data: str, executable: str) -> None:
    async with await EmbeddedServer.open(data, executable=executable) as server:
        print(json.dumps({"pid": server.pid, "url": server.url}), flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read)


anyio.run(main, sys.argv[1], sys.argv[2])
