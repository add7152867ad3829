"""Readers and groups are keys of the namespace that verifying knows."""

from __future__ import annotations

from uuid import uuid4

import pytest

from eventlog import EventLog
from eventlog.delivery import Delivery
from eventlog.store.conformance.suite import notes
from eventlog.store.redis.audit import Audit
from eventlog.store.redis.verification import Verification
from tests.groups.running import consuming, until

pytestmark = pytest.mark.anyio


async def test_a_namespace_with_a_group_that_parked_something_has_no_fault(server: str) -> None:
    namespace = f"t{uuid4().hex[:12]}"
    async with EventLog.open(server, namespace=namespace) as log:
        await log.tenant("t").conversation("a").append(*notes(1, 2))

        async def handle(delivery: Delivery) -> None:
            raise ValueError("poison")

        group = log.group("billing *")

        async def parked() -> bool:
            return (await group.status()).parked == 1

        async with consuming(group, handle, max_deliveries=1, on_park="wait"):
            await until(parked)
            async with Audit.open(server, namespace) as audit:
                faults = [fault async for fault in Verification(audit).faults()]
    assert faults == []
