"""The golden scenarios, through the recorder and every store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eventlog import EventLog
from tests.conftest import CASES
from tests.history import scenario

pytestmark = pytest.mark.anyio
OWN = Path(__file__).parent / "cases.json"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        paths = metafunc.config.getoption("cases") or [path for path in (CASES, OWN) if path.exists()]
        cases = [case for path in paths for case in json.loads(path.read_text())]
        assert cases, "no golden scenarios were found: name a file with --cases"
        metafunc.parametrize("case", cases, ids=[case["id"] for case in cases])


async def test_a_scenario_gives_the_expected_views(log: EventLog, case: dict[str, Any]) -> None:
    conversation = log.tenant("golden").conversation(case["id"])
    await scenario.play(conversation, case["steps"])
    for view in ("service", "untrimmed"):
        if view in case:
            assert await scenario.read(conversation, view) == case[view]
