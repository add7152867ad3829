"""What goes wrong when: drawn from the seed alone. Pure."""

from __future__ import annotations

from typing import NamedTuple

from chaos.chance import chance

PROCESSES = {"agent": 4, "follower": 2, "group": 2, "projector": 2}
"""How many of each kind there are."""
_SHIFTS = (0.0, 0.0, 3600.0, -3600.0, 400_000.0, -400_000.0)
_KINDS = {
    "kill": 34,
    "freeze": 8,
    "server": 7,
    "cut": 18,
    "lose": 16,
    "drop": 8,
    "hold": 5,
    "refuse": 4,
    "blackout": 10,
}

_OF_NODES = {"promote": (5.0, 40.0), "move": (3.0, 9.0)}
"""When the first one is, and how long it is to the next, in seconds."""


class Fault(NamedTuple):
    """Something that goes wrong."""

    at: float
    """Seconds from the beginning."""
    kind: str
    """What, as ``faults`` knows it."""
    target: str = ""
    """The process; of what happens on the way to the server, the kind of process whose way it is."""
    amount: float = 0.0
    """Seconds; the part of the connections that are cut; or how many requests."""


def schedule(seed: int, seconds: float) -> list[Fault]:
    """All faults of a run of so many seconds. A longer run begins with the same ones."""
    draw = chance(seed, "faults")
    names = [f"{kind}-{number}" for kind, count in PROCESSES.items() for number in range(count)]
    faults: list[Fault] = []
    at = 1.5
    while True:
        at += draw.uniform(0.1, 1.3)
        (kind,) = draw.choices(list(_KINDS), list(_KINDS.values()))
        target, part = draw.choice(names), draw.random()
        way = target.partition("-")[0]
        if at >= seconds:
            return faults
        match kind:
            case "kill":
                faults.append(Fault(at, kind, target, 0.6 * part * part))
            case "freeze":
                faults.append(Fault(at, kind, target, 0.3 + 4.5 * part))
            case "server":
                faults.append(Fault(at, kind, "", 1.5 * part * part))
            case "cut":
                faults.append(Fault(at, kind, way, 0.2 + 0.8 * part))
            case "lose" | "drop":
                faults.append(Fault(at, kind, way, 1 + int(12 * part)))
            case _:
                faults.append(Fault(at, kind, way, 0.2 + 1.5 * part))


def cluster_schedule(seed: int, seconds: float) -> list[Fault]:
    """Of a run on a cluster: what befalls processes and connections, and at fixed times what befalls nodes."""
    faults = [fault for fault in schedule(seed, seconds) if fault.kind in ("kill", "freeze", "cut", "hold")]
    for kind, (first, every) in _OF_NODES.items():
        faults += [Fault(first + number * every, kind) for number in range(1 + int(max(0, seconds - first) / every))]
    return sorted(fault for fault in faults if fault.at < seconds)


def clock_of(seed: int, name: str, life: int) -> tuple[float, float]:
    """By how many seconds the clock of a process is wrong, and by how many it jumps."""
    draw = chance(seed, "clock", name, life)
    return draw.choice(_SHIFTS), draw.choice((0.0, 0.0, 0.0, 90.0, -7.5))
