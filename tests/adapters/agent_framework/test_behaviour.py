"""Nothing of the framework's own behaviour changes because a run is recorded."""

from __future__ import annotations

import pytest

from eventlog import EventLog, Mode
from tests.adapters.agent_framework.play import Scenario, play
from tests.adapters.agent_framework.scenarios import SCENARIOS

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streams"])
@pytest.mark.parametrize("per_call", [False, True], ids=["loads per run", "loads per call"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
async def test_answers_events_and_errors_are_the_same(
    scenario: Scenario, per_call: bool, streams: bool, mode: Mode
) -> None:
    if scenario.streams is not None:
        streams = scenario.streams
    async with EventLog.open("memory://") as log:
        recorded = await play(
            scenario, tenant=log.tenant("t"), mode=mode, streams=streams, per_call=per_call, strict=False
        )
    bare = await play(scenario, tenant=None, streams=streams, per_call=per_call, strict=False)
    assert recorded.outcomes == bare.outcomes
    assert recorded.stage.ran == bare.stage.ran
    assert len(recorded.service.requests) == len(bare.service.requests)
