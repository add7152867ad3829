"""Moving a slot from one primary to another, in the two ways that servers have."""

from __future__ import annotations

import anyio

from chaos.nodes import PATIENCE, Node, Nodes


async def atomically(nodes: Nodes, slot: int, source: Node, target: Node) -> None:
    """By CLUSTER MIGRATESLOTS of Valkey 9: the slot changes hands as a whole."""
    source.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target.id)
    with anyio.fail_after(PATIENCE):
        while not _serves(target, slot):
            await anyio.sleep(0.01)


async def key_by_key(nodes: Nodes, slot: int, source: Node, target: Node) -> None:
    """By SETSLOT and MIGRATE, as every version can: meanwhile some keys are here and some there."""
    begin(slot, source, target)
    with anyio.fail_after(PATIENCE):
        while found := source.ask("CLUSTER", "GETKEYSINSLOT", slot, 1):
            carry(found[0], source, target)
            await anyio.sleep(0.005)  # so that all see the slot torn
    end(nodes, slot, source, target)


def begin(slot: int, source: Node, target: Node) -> None:
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)


def carry(key: str, source: Node, target: Node) -> None:
    source.ask("MIGRATE", "127.0.0.1", target.port, key, 0, 5_000)


def end(nodes: Nodes, slot: int, source: Node, target: Node) -> None:
    """No key of the slot is left behind: all primaries are told."""
    others = [node for node in nodes.all if node not in (source, target) and node.is_primary()]
    for node in (target, source, *others):
        node.ask("CLUSTER", "SETSLOT", slot, "NODE", target.id)


def _serves(node: Node, slot: int) -> bool:
    told = node.ask("CLUSTER", "SLOTS")
    return any(first <= slot <= last and owner[1] == node.port for first, last, owner, *_ in told)
