"""A standing as JSON: short while nothing is open. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from eventlog.fold import Calls, Item, OpenRunState, StartedCall, State, Unit
from projections.projection import canonical

if TYPE_CHECKING:
    from projections.standing import Standing


def pack(standing: Standing) -> bytes:
    """Every field that is not as at the beginning."""
    state = standing.state
    fields: dict[str, Any] = {
        "version": state.version,
        "runs": [[run, _packed_run(open_run)] for run, open_run in state.runs.items()],
        "calls": state.calls.open,
        "early": _pairs(state.calls.early),
        "awaiting": _pairs(state.awaiting),
        "doubtful": [_packed_call(call) for call in state.doubtful],
        "cause": state.cause,
        "fresh": state.fresh,
        "unsent": list(standing.unsent.values()),
        "floor": standing.floor,
        "strays": standing.strays,
        "units": standing.units,
        "service": standing.service,
        "root": standing.root,
        "recent": [list(row) for row in standing.live_recent()],
    }
    packed = {name: value for name, value in fields.items() if value}
    if standing.ahead != []:
        packed["ahead"] = standing.ahead
    return canonical(packed)


def unpack(kind: type[Standing], packed: bytes) -> Standing:
    """The inverse of ``pack``."""
    fields = orjson.loads(packed)
    known = fields.get
    state = State(
        False,
        known("version", 0),
        {run: _run(open_run) for run, open_run in known("runs", ())},
        Calls(_items(known("calls", ())), _map(known("early", ()))),
        _map(known("awaiting", ())),
        [_call(call) for call in known("doubtful", ())],
        known("cause", 0),
        known("fresh", 0),
    )
    return kind(
        state,
        {item.version: item for item in _items(known("unsent", ()))},
        known("floor", 0),
        known("strays", []),
        known("units", False),
        known("service"),
        known("ahead", []),
        known("root", 0),
        kind.recents(known("recent", ())),
    )


def _packed_run(run: OpenRunState) -> list[Any]:
    return [run.mode, run.first, [_packed_call(call) for call in run.calls.values()], run.units, run.inputs]


def _run(packed: list[Any]) -> OpenRunState:
    mode, first, calls, units, inputs = packed
    started = [_call(call) for call in calls]
    return OpenRunState(mode, first, {call.call: call for call in started}, [_unit(unit) for unit in units], inputs)


def _packed_call(call: StartedCall) -> list[Any]:
    return [call.run, call.call, call.started, call.sends, call.continues, call.outputs]


def _call(packed: list[Any]) -> StartedCall:
    run, number, started, sends, continues, outputs = packed
    return StartedCall(run, number, started, tuple(sends), continues, _items(outputs))


def _unit(packed: list[Any]) -> Unit:
    run, number, started, completed, sends, outputs, continues, service = packed
    return Unit(run, number, started, completed, tuple(sends), tuple(_items(outputs)), continues, service)


def _items(packed: list[Any]) -> list[Item]:
    return [Item(*item) for item in packed]


def _pairs(known: dict[int, int]) -> list[list[int]]:
    return [[key, value] for key, value in known.items()]


def _map(packed: list[list[int]]) -> dict[int, int]:
    return dict(packed)  # type: ignore[arg-type]
