"""The checker's own fold gives the golden scenarios their expected histories, without a line of the product's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.checker.fold import Fold
from chaos.checker.state import Entry
from eventlog import EventLog
from tests.conftest import CASES
from tests.history import scenario

pytestmark = pytest.mark.anyio
OWN = Path(scenario.__file__).parent / "cases.json"
SCENARIOS = [case for path in (CASES, OWN) if path.exists() for case in json.loads(path.read_text())]


@pytest.mark.parametrize("case", SCENARIOS, ids=[case["id"] for case in SCENARIOS])
async def test_a_scenario_gives_the_expected_history_and_open_calls(case: dict[str, Any]) -> None:
    async with EventLog.open("memory://") as log:
        conversation = log.tenant("golden").conversation(case["id"])
        await scenario.play(conversation, case["steps"])
        stored = await log.store.read(conversation.log, 1, None, 10_000)
        fold = Fold([Entry(one.version, one.stamp, json.loads(one.document)) for one in stored])
    last = len(stored)
    history = [
        {"role": role, "parts": [scenario._from_part(part) for part in parts]} for role, _, parts in fold.messages(last)
    ]
    assert history == case["service"]["history"]
    calls = [fold.documents[version]["data"]["call_id"] for version in fold.open_calls(last)]
    assert calls == case["service"]["open_calls"]


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) > 10
