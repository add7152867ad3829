"""The stage of a cluster: three primaries with replicas; primaries are killed and replaced, slots move."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from random import Random
from typing import Self

import anyio

from chaos import moving, raw
from chaos.chance import chance
from chaos.nodes import PRIMARIES, Node, Nodes, until
from chaos.order import NAMESPACE, PARTITIONS
from chaos.raw import Raw
from chaos.schedule import Fault, cluster_schedule
from eventlog.server.binary import find
from eventlog.store.redis.routing import slot_of

_LONGEST_HOLD = 0.5
"""Seconds: a node that is silent for longer is taken for dead."""


class Cluster:
    """Its nodes. The last pair is never killed: processes find the others through it."""

    durability = "replicated(1)"

    def __init__(self, seed: int) -> None:
        self.counts = Counter[str]()
        self._draw: Random = chance(seed, "cluster")
        self._nodes = Nodes(str(find(None).path), die_with_us=True)
        self._changing = threading.Lock()
        """One node dies, or one slot moves, at a time."""

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._nodes.__enter__)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._nodes.__exit__(None, None, None)

    def url(self, kind: str) -> str:
        """A replica: it tells of the others."""
        return self._nodes.replicas[-1].url

    def plan(self, seed: int, seconds: float) -> list[Fault]:
        """By the seed."""
        return cluster_schedule(seed, seconds)

    async def harm(self, fault: Fault) -> None:
        """What ``cluster_schedule`` knows."""
        await asyncio.to_thread(self._harm, fault)

    def _harm(self, fault: Fault) -> None:
        match fault.kind:
            case "cut":
                self._cut(fault.amount)
            case "hold":
                self._hold(fault.amount)
            case "promote":
                self._promote()
            case "move":
                self._move()

    def mend(self) -> None:
        """What is done here ends by itself."""

    def read(self) -> Raw:
        """From the primaries."""
        return raw.of_ports([node.port for node in self._primaries()])

    async def read_again(self) -> tuple[str, Raw]:
        """From the replicas, when they have all that their primaries have."""
        await asyncio.to_thread(until, self._are_in_step, "the replicas have what the primaries have")
        ports = [node.port for node in self._nodes.all if not node.is_primary()]
        return "on the replicas", await asyncio.to_thread(raw.of_ports, ports)

    def _primaries(self) -> list[Node]:
        return [node for node in self._nodes.all if node.is_primary()]

    def _are_in_step(self) -> bool:
        told = [node.client.info("replication") for node in self._primaries()]
        return all(one["slave0"]["offset"] == one["master_repl_offset"] for one in told)

    def _cut(self, part: float) -> None:
        """Cut about this part of the connections to the primaries: replies under way are lost with them."""
        for node in self._primaries():
            for client in node.client.client_list(_type="normal"):
                if client["name"] != Node.OURS and self._draw.random() < part:
                    self.counts["cut"] += node.client.client_kill_filter(_id=client["id"])

    def _hold(self, seconds: float) -> None:
        """A primary does nothing for a while."""
        with self._changing:
            node = self._draw.choice(self._primaries())
            node.stall()
            try:
                threading.Event().wait(min(seconds, _LONGEST_HOLD))
            finally:
                node.go_on()

    def _promote(self) -> None:
        """Kill a primary; when its replica has taken its place, it comes back as that one's replica."""
        with self._changing:
            self._nodes.settle()
            number = self._draw.randrange(PRIMARIES - 1)
            pair = [self._nodes.primaries[number], self._nodes.replicas[number]]
            killed, heir = sorted(pair, key=Node.is_primary, reverse=True)
            killed.kill()
            self.counts["kills"] += 1
            until(heir.is_primary, "the replica of the killed one is a primary")
            killed.start()
            self._nodes.settle()

    def _move(self) -> None:
        """A partition's slot goes to another primary, as a whole or key by key."""
        with self._changing:
            key = f"{{{NAMESPACE}:{self._draw.randrange(PARTITIONS)}}}:feed"
            source = self._nodes.primary_of(key)
            target = self._draw.choice([node for node in self._primaries() if node is not source])
            way = self._draw.choice([moving.atomically, moving.key_by_key])
            anyio.run(way, self._nodes, slot_of(key.encode()), source, target)
            self.counts["moved"] += 1
