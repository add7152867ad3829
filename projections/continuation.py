"""How the next request may build on what the service itself holds. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eventlog.fold import State
from eventlog.ledger import Ledger, Row
from eventlog.messages import Json
from projections.view import Continuation


class Chain(NamedTuple):
    """The calls that the last unit in a view builds on, itself included."""

    service: dict[str, Json] | None
    """The ids that the service gave with the last unit; None when it gave none."""
    ahead: tuple[int, ...] = ()
    """The versions of what stands in the view and none of these calls has carried."""
    root: int = 0
    """The start of the first of these calls when that sent the whole history; else 0."""


def continuation(ledger: Ledger) -> Continuation:
    """How a request may continue after what the ledger's view shows."""
    return continue_from(ledger.state, chain_of(ledger.view))


def continue_from(state: State, chain: Chain) -> Continuation:
    """In step only where the chain leads back to a call that sent the whole history after whatever
    made the service's memory differ: another unit that did so does not mend this chain.
    """
    if not chain.service:
        return Continuation(None, (), state.in_step)
    return Continuation(chain.service, chain.ahead, state.in_step and chain.root > state.cause)


def chain_of(view: Sequence[Row]) -> Chain:
    """The chain that the last unit in the view ends."""
    units = [row.unit for row in view if row.unit is not None]
    service = units[-1].service if units else None
    if not service:
        return Chain(None)
    chain = _chain(view)
    root = chain[-1].unit
    assert root is not None
    return Chain(service, tuple(_ahead(view, chain)), root.started if root.continues is None else 0)


def gave(service: Mapping[str, Json] | None, continues: Mapping[str, Json]) -> bool:
    """Whether these service ids are among those that are continued."""
    return bool(service) and any(service.get(name) == value for name, value in continues.items() if value is not None)  # type: ignore[union-attr]


def _ahead(view: Sequence[Row], chain: Sequence[Row]) -> list[int]:
    """What stands in the view and is unknown to the chain of calls that the last unit ends."""
    known: set[int] = set()
    for link in chain:
        unit = link.unit
        assert unit is not None
        if unit.continues is None:
            # The whole history was sent: all that was in the view when the call started, and its own run's units.
            for row in view:
                own = row.unit is not None and row.unit.run == unit.run and row.unit.completed < unit.started
                if own or (row.past[0].since if row.past else row.since or 0) <= unit.started:
                    known.update(_references(row))
        known.update(unit.sends)
        known.update(item.version for item in unit.outputs)
    return [version for row in view for version in _references(row) if version not in known]


def _chain(view: Sequence[Row]) -> list[Row]:
    """The units that the last one builds on, itself first, back to one that continued nothing or nothing known."""
    position = max(index for index, row in enumerate(view) if row.unit is not None)
    chain = [view[position]]
    while (unit := view[position].unit) is not None and unit.continues is not None:
        earlier = [index for index in range(position) if _gave(view[index], unit.continues)]
        if not earlier:
            break
        position = earlier[-1]
        chain.append(view[position])
    return chain


def _gave(row: Row, continues: Mapping[str, Json]) -> bool:
    return row.unit is not None and gave(row.unit.service, continues)


def _references(row: Row) -> tuple[int, ...]:
    return (row.summary,) if row.summary else row.versions
