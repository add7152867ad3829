"""A log in memory, and agents on a scripted service."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from eventlog import EventLog, Tenant


@pytest.fixture
async def tenant() -> AsyncIterator[Tenant]:
    async with EventLog.open("memory://") as log:
        yield log.tenant("t")
