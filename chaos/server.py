"""The embedded server of a run: started by this very process, killed, and started again on the same data."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from random import Random

from eventlog.server.embedded import EmbeddedServer


class Server:
    """One data directory and whoever serves it."""

    def __init__(self, data: Path, draw: Random) -> None:
        self._data = data
        self._draw = draw
        self._server: EmbeddedServer | None = None
        self.kills = 0

    @property
    def socket(self) -> Path:
        """Where it listens. The same after a kill while somebody still uses the data, else maybe another."""
        assert self._server is not None
        return Path(self._server.url.removeprefix("unix://"))

    async def start(self) -> None:
        """Every write is on the disk before it is acknowledged."""
        self._server = await EmbeddedServer.open(self._data, fsync="always")

    async def kill(self, downtime: float) -> None:
        """Kill it by SIGKILL; after ``downtime`` seconds there is another one on the same data."""
        before = self._server
        assert before is not None
        os.kill(before.pid, signal.SIGKILL)
        self.kills += 1
        stays = self._draw.random() < 0.5  # a user of the killed server may still be there when the next one comes
        if not stays:
            await before.close()
        await asyncio.sleep(downtime)
        await self.start()
        if stays:
            await before.close()

    async def close(self) -> None:
        """End it."""
        if self._server is not None:
            await self._server.close()
