"""The stage of one server, with a way to it that can be made bad for each kind of process."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

from chaos import raw
from chaos.chance import chance
from chaos.proxy import Proxy
from chaos.raw import Raw
from chaos.schedule import Fault, schedule
from chaos.server import Server


class Single:
    """The server, killed and started again on the same data; and the ways."""

    durability = "always"

    def __init__(self, seed: int, home: Path, kinds: list[str]) -> None:
        self._sockets = Path(tempfile.mkdtemp(prefix="chaos-"))  # a socket's path must be short
        self._server = Server(home / "data", chance(seed, "server"))
        self._ways = {
            kind: Proxy(self._sockets / kind, lambda: self._server.socket, chance(seed, "way", kind)) for kind in kinds
        }
        self._opened = AsyncExitStack()
        self._restarting = asyncio.Lock()

    async def __aenter__(self) -> Self:
        try:
            await self._server.start()
            for way in self._ways.values():
                await self._opened.enter_async_context(way)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        try:
            await self._opened.aclose()
        finally:
            await self._server.close()
            shutil.rmtree(self._sockets, ignore_errors=True)

    @property
    def counts(self) -> Counter[str]:
        """As ``Stage`` says."""
        ways = self._ways.values()
        return Counter(
            kills=self._server.kills,
            cut=sum(way.cuts for way in ways),
            lost=sum(way.lost for way in ways),
            dropped=sum(way.dropped for way in ways),
        )

    def url(self, kind: str) -> str:
        """That of its way."""
        return self._ways[kind].url

    def plan(self, seed: int, seconds: float) -> list[Fault]:
        """By the seed."""
        return schedule(seed, seconds)

    async def harm(self, fault: Fault) -> None:
        """What ``schedule`` knows."""
        if fault.kind == "server":
            async with self._restarting:
                await self._server.kill(fault.amount)
            return
        way = self._ways[fault.target]
        match fault.kind:
            case "cut":
                way.cut(fault.amount)
            case "lose":
                way.lose += int(fault.amount)
            case "drop":
                way.drop += int(fault.amount)
            case "hold":
                await way.hold(fault.amount)
            case "blackout":
                way.black_out(fault.amount)
            case "refuse":
                await way.refuse(fault.amount)

    def mend(self) -> None:
        """The ways are good."""
        for way in self._ways.values():
            way.mend()

    def read(self) -> Raw:
        """From the server itself."""
        return raw.of_socket(self._server.socket)

    async def read_again(self) -> tuple[str, Raw]:
        """From the same data, after another kill."""
        await self._server.kill(0.0)
        return "after the server was killed and started again", await asyncio.to_thread(self.read)
