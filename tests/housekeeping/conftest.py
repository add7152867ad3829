"""Logs with one partition, in memory and on each real server: one feed that everything is in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from eventlog import EventLog
from tests import servers


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "one" in metafunc.fixturenames:
        kinds = servers.kinds(metafunc.config.getoption("server"))
        metafunc.parametrize("one", ["memory", *kinds], indirect=True)


@pytest.fixture
async def one(request: pytest.FixtureRequest, started: servers.Started) -> AsyncIterator[EventLog]:
    url = "memory://" if request.param == "memory" else started.url(request.param)
    async with EventLog.open(url, namespace=f"t{uuid4().hex[:12]}", partitions=1) as opened:
        yield opened
