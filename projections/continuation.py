"""How the next request may build on what the service itself holds. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eventlog.ledger import Ledger, Row
from eventlog.messages import Json
from projections.view import Continuation


def continuation(ledger: Ledger) -> Continuation:
    """The service ids of the last unit in the view, and what no call of its chain has carried.

    In step only where that chain leads back to a call that sent the whole history after whatever
    made the service's memory differ: another unit that did so does not mend this chain.
    """
    in_step = ledger.state.in_step
    units = [row.unit for row in ledger.view if row.unit is not None]
    service = units[-1].service if units else None
    if not service:
        return Continuation(None, (), in_step)
    chain = _chain(ledger.view)
    root = chain[-1].unit
    assert root is not None
    traced = root.continues is None and root.started > ledger.state.cause
    return Continuation(service, tuple(_ahead(ledger.view, chain)), in_step and traced)


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
    """Whether this unit's service ids are among those that are continued."""
    service = row.unit.service if row.unit is not None else None
    return bool(service) and any(service.get(name) == value for name, value in continues.items() if value is not None)  # type: ignore[union-attr]


def _references(row: Row) -> tuple[int, ...]:
    return (row.summary,) if row.summary else row.versions
