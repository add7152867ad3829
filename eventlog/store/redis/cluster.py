"""The way to a cluster: one shared connection to each node, chosen by the slot of a command's first key.

It stands where a ``Wire`` stands. Who serves which slot is learnt when it opens, from each node that
sends us elsewhere, and anew whenever a node cannot be reached, so that a promoted replica is found.
A command that is sent elsewhere (MOVED, ASK) was not executed: it goes to the other node as it is.
Whatever else goes wrong is told, and whoever sent the command tries again, as on a single server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from eventlog.errors import EventLogError, InvalidInput, LogClosed, ServerUnavailable, ServerUnfit
from eventlog.store.redis.routing import SLOTS, key_of, redirect, slot_of, stretches
from eventlog.store.redis.wire import ConnectionLost, Packed, ReplyError, Send, Way, Wire, pack

_REDIRECTS = 5
"""How often one command is sent elsewhere before its sender is told."""
_DOUBTFUL = ("CLUSTERDOWN", "LOADING")
"""What a node says that may have been replaced."""
_GREETING = 1.0
"""Seconds that a new connection waits for the node that tells the layout."""


class SlotMap:
    """Which node serves which slot, as far as it was told; nodes are named by their URLs."""

    def __init__(self, url: str, ask: Callable[[str, Packed], Awaitable[Any]]) -> None:
        self._url = url
        self._ask = ask
        self._owners: list[str | None] = [None] * SLOTS
        self._replicas: set[str] = set()
        self._learning: asyncio.Task[None] | None = None

    def owner(self, slot: int) -> str | None:
        return self._owners[slot]

    def move(self, slot: int, node: str) -> None:
        """Note that the slot is there now, and find out in the background what else moved."""
        self._owners[slot] = node
        self._begin(None)

    def doubt(self, node: str) -> None:
        """Find out in the background whether others serve what this node serves no more."""
        self._begin(node)

    async def learn(self, without: str | None = None) -> None:
        """Ask the other nodes who serves what; nothing changes when none of them answers."""
        # A task of its own: a caller that is cancelled must not take the others' answer away.
        await asyncio.wait([self._begin(without)])

    async def close(self) -> None:
        if self._learning is not None:
            self._learning.cancel()
            await asyncio.wait([self._learning])

    def _begin(self, without: str | None) -> asyncio.Task[None]:
        if self._learning is None or self._learning.done():
            self._learning = asyncio.create_task(self._learn(without))
        return self._learning

    async def _learn(self, without: str | None) -> None:
        primaries = {node for node in self._owners if node is not None}
        # Replicas know as well, and are asked only when no primary answers: each costs a connection.
        for nodes in (primaries - {without}, self._replicas - {without}, {self._url}):
            if await self._learn_from(nodes):
                return

    async def _learn_from(self, nodes: Iterable[str]) -> bool:
        """Take the first answer: a node that says nothing must not keep us from it."""
        asking = [asyncio.create_task(self._of(node)) for node in nodes]
        try:
            for first in asyncio.as_completed(asking):
                if await first:
                    return True
        finally:
            for task in asking:
                task.cancel()
        return False

    async def _of(self, node: str) -> bool:
        try:
            found = stretches(await self._ask(node, pack("CLUSTER", "SLOTS")), node)
        except (ConnectionLost, EventLogError, ValueError):
            return False
        if not found:
            return False
        owners: list[str | None] = [None] * SLOTS
        for first, last, primary, _ in found:
            owners[first : last + 1] = [primary] * (last - first + 1)
        self._owners = owners
        self._replicas = {replica for stretch in found for replica in stretch.replicas}
        return True


class Cluster:
    """One ``Wire`` for each node, made when it is first needed. Beside another, it shares what that one learnt.

    ``home`` is a key: commands that have none go to its node, so that there is one clock.
    """

    def __init__(
        self, url: str, home: str, *, timeout: float = 5.0, replicas: int = 0, beside: Cluster | None = None
    ) -> None:
        self._home = slot_of(home.encode())
        self._timeout = timeout
        self._replicas = replicas
        self._beside = beside
        self._slots: SlotMap = beside._slots if beside is not None else SlotMap(url, self._ask)
        self._wires: dict[str, Wire] = {}
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self.greet: Callable[[Send], Awaitable[None]] | None = None
        """As that of a ``Wire``; it may ask any node, for what it looks at may be on another."""

    def node_of(self, key: str) -> str | None:
        """The URL of the node that serves the key, as far as is known."""
        return self._slots.owner(slot_of(key.encode()))

    async def execute(self, packed: Packed) -> Any:
        """As ``Wire.execute``, on the node that serves the command's first key."""
        if self._closed:
            raise LogClosed("the log is closed: open it again")
        if asyncio.get_running_loop() is not self._loop:
            raise InvalidInput("the log was opened in another event loop: open one in each")
        key = key_of(packed)
        slot = self._home if key is None else slot_of(key)
        node, asking = await self._node(slot), False
        for _ in range(_REDIRECTS):
            wire = self._wire(node)
            try:
                reply = await (wire.ask(packed) if asking else wire.execute(packed))
            except (ConnectionLost, ServerUnavailable):
                await self._slots.learn(without=node)
                raise
            elsewhere = redirect(str(reply), node) if isinstance(reply, ReplyError) else None
            if elsewhere is None:
                if isinstance(reply, ReplyError) and str(reply).startswith(_DOUBTFUL):
                    self._slots.doubt(node)
                return reply
            node, asking = elsewhere
            if not asking:
                self._slots.move(slot, node)
        raise ConnectionLost(f"the nodes of the cluster send slot {slot} in circles", sent=False)

    async def close(self) -> None:
        """As ``Wire.close``, for the connections to all nodes."""
        self._closed = True
        if self._beside is None:
            await self._slots.close()
        await asyncio.gather(*(wire.close() for wire in self._wires.values()))

    async def _node(self, slot: int) -> str:
        node = self._slots.owner(slot)
        if node is None:
            await self._slots.learn()
            node = self._slots.owner(slot)
        if node is None:
            raise ServerUnavailable(
                f"no node of the cluster serves slot {slot}: see CLUSTER INFO and CLUSTER SLOTS, and give it to one"
            )
        return node

    def _wire(self, node: str) -> Wire:
        wire = self._wires.get(node)
        if wire is None:
            if self._closed:
                raise LogClosed("the log was closed: open it again")
            wire = self._wires[node] = Wire(node, timeout=self._timeout, replicas=self._replicas)
            wire.greet = self._let_in
        return wire

    async def _ask(self, node: str, packed: Packed) -> Any:
        return await self._wire(node).execute(packed)

    async def _let_in(self, _send: Send) -> None:
        if self.greet is None or self._beside is None:
            return
        try:
            async with asyncio.timeout(_GREETING):
                await self.greet(self._beside.execute)
        except (TimeoutError, ConnectionLost, ServerUnavailable):
            return  # the node that would tell is away: this one goes on without it


async def is_clustered(ask: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]], way: Way) -> bool:
    """Whether the server there is a node of a cluster; ``ask`` sends until it is answered.

    One that tells us nothing about itself is taken for a single server.
    """
    try:
        told = await ask(lambda: way.execute(pack("INFO", "cluster")))
    except ServerUnfit:
        return False
    return b"cluster_enabled:1" in told
