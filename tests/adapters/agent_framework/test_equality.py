"""The log's service view is what a service that keeps conversations holds, in every mode and after every turn."""

from __future__ import annotations

import pytest

from eventlog import EventLog, Mode
from tests.adapters.agent_framework.play import Scenario, play
from tests.adapters.agent_framework.scenarios import SCENARIOS

pytestmark = pytest.mark.anyio


def cases() -> list[object]:
    found = []
    for scenario in SCENARIOS:
        for streams in (False, True) if scenario.streams is None else (scenario.streams,):
            for per_call in (False, True) if scenario.per_call else (False,):
                for mode in Mode:
                    where = f"{mode.value}, {'loads per call' if per_call else 'loads per run'}"
                    name = f"{scenario.name}, {where}{', streams' if streams else ''}"
                    found.append(pytest.param(scenario, mode, streams, per_call, id=name))
    return found


def test_there_are_enough_scenarios() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) >= 25


@pytest.mark.parametrize(("scenario", "mode", "streams", "per_call"), cases())
async def test_the_view_is_what_the_service_holds(
    scenario: Scenario, mode: Mode, streams: bool, per_call: bool
) -> None:
    async with EventLog.open("memory://") as log:
        played = await play(scenario, tenant=log.tenant("t"), mode=mode, streams=streams, per_call=per_call)
    assert played.service.faults == []
    assert played.views == played.held
    assert played.service.script == []


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streams"])
@pytest.mark.parametrize("scenario", [one for one in SCENARIOS if one.stored], ids=lambda one: one.name)
async def test_the_view_is_what_a_service_holds_that_keeps_the_conversation(scenario: Scenario, streams: bool) -> None:
    if scenario.streams is not None and streams != scenario.streams:
        streams = scenario.streams
    async with EventLog.open("memory://") as log:
        played = await play(scenario, tenant=log.tenant("t"), streams=streams, stores=True)
    assert played.service.faults == []
    assert played.views == played.held
