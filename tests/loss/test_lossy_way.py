"""A way that drops replies and requests, delays and cuts: each operation is there once, each caller knows."""

from __future__ import annotations

from contextlib import AsyncExitStack
from random import Random

import anyio
import pytest

from eventlog import Appended, EventLog, OutcomeUnknown, ServerUnavailable
from tests.loss.log import add, chat, events, opened, operations
from tests.loss.server import Server
from tests.loss.switch import Fate, Switch

pytestmark = pytest.mark.anyio

WRITERS, APPENDS, CONVERSATIONS = 20, 50, 4
FATES = [Fate.PASS] * 13 + [Fate.CUT_REPLY] * 4 + [Fate.CUT_REQUEST] * 2 + [Fate.LATE]


async def test_a_thousand_appends_over_a_lossy_way_are_each_there_once(primary: Server, switch: Switch) -> None:
    """A fifth of the replies is lost. Whoever does not learn the outcome in time learns it by asking again."""
    random = Random(1_729)
    outcomes: dict[str, Appended] = {}
    unknown: list[tuple[str, str]] = []

    async def write(log: EventLog, writer: int) -> None:
        handle = chat(log, f"conversation-{writer % CONVERSATIONS}")
        for number in range(APPENDS):
            operation = f"{writer}-{number}"
            while operation not in outcomes:
                try:
                    outcomes[operation] = await add(handle, operation)
                except OutcomeUnknown as error:
                    unknown.append((operation, error.operation_id))
                except ServerUnavailable:
                    pass  # nothing was sent

    async with AsyncExitStack() as logs:
        # Each log is a connection: what is lost on one is not lost on the others.
        several = [await logs.enter_async_context(opened(switch.url, deadline=0.12)) for _ in range(5)]
        switch.fate = lambda _: random.choice(FATES)
        async with anyio.create_task_group() as writers:
            for writer in range(WRITERS):
                writers.start_soon(write, several[writer % len(several)], writer)

    switch.fate = lambda _: Fate.PASS

    assert len(outcomes) == WRITERS * APPENDS
    assert unknown, "nobody was left without an outcome: too little was lost to prove anything"
    assert all(asked == told for asked, told in unknown)
    assert switch.connections > 100
    async with opened(primary.url) as log:
        for number in range(CONVERSATIONS):
            there = await events(chat(log, f"conversation-{number}"))
            assert [event.version for event in there] == list(range(1, 1 + WRITERS // CONVERSATIONS * APPENDS))
            for operation, event in zip(operations(there), there, strict=True):
                assert outcomes[operation].cursor[:2] == (event.version, event.stamp)
            for writer in range(number, WRITERS, CONVERSATIONS):
                own = [operation for operation in operations(there) if operation.startswith(f"{writer}-")]
                assert own == [f"{writer}-{index}" for index in range(APPENDS)]
