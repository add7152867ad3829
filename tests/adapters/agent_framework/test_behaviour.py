"""Nothing of the framework's own behaviour changes because a run is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog import EventLog, Mode
from tests.adapters.agent_framework.play import Played, Scenario, play
from tests.adapters.agent_framework.scenarios import SCENARIOS

pytestmark = pytest.mark.anyio
_bare: dict[tuple[str, bool, bool], Any] = {}
"""What was seen of each scenario that was played without a recorder; it does not depend on our mode."""


def cases() -> list[object]:
    found = []
    for one in SCENARIOS:
        for streams in (False, True) if one.streams is None else (one.streams,):
            for per_call in (False, True):
                for mode in Mode:
                    where = f"{mode.value}, {'loads per call' if per_call else 'loads per run'}"
                    name = f"{one.name}, {where}{', streams' if streams else ''}"
                    found.append(pytest.param(one, per_call, streams, mode, id=name))
    return found


def seen(played: Played) -> tuple[Any, ...]:
    """What the callers saw, which tools ran, and how often the service was called."""
    return played.outcomes, played.stage.ran, len(played.service.requests)


@pytest.mark.parametrize(("scenario", "per_call", "streams", "mode"), cases())
async def test_answers_events_and_errors_are_the_same(
    scenario: Scenario, per_call: bool, streams: bool, mode: Mode
) -> None:
    async with EventLog.open("memory://") as log:
        recorded = await play(
            scenario, tenant=log.tenant("t"), mode=mode, streams=streams, per_call=per_call, strict=False
        )
    key = scenario.name, per_call, streams
    if key not in _bare:
        _bare[key] = seen(await play(scenario, tenant=None, streams=streams, per_call=per_call, strict=False))
    assert seen(recorded) == _bare[key]
