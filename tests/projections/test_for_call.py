"""What a service call sends is the same with a view that is kept and by folding the log."""

from __future__ import annotations

import random

import pytest

from eventlog import EventLog, Mode, assistant, tool_call, user
from projections import history
from projections.maintained import for_call as maintained_for_call
from projections.projector import Projector
from projections.views.history import HISTORY

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("seed", range(6))
async def test_a_call_sends_the_same_with_a_view_and_without(mode: Mode, seed: int) -> None:
    chance = random.Random(seed)
    compared = 0
    async with EventLog.open("memory://", partitions=1) as log:
        chat = log.tenant("blue").conversation("c")
        projector = Projector(log, [HISTORY])
        for turn in range(6):
            if chance.random() < 0.5:
                await chat.add(user(f"posted {turn}"))
            async with chat.run(mode=mode) as run:
                await run.add(user(f"question {turn}"))
                for number in range(chance.randint(1, 3)):
                    if chance.random() < 0.6:
                        await projector.catch_up()
                    async with run.service_call() as call:
                        assert call.started is not None
                        found = await maintained_for_call(chat, run.id, call.sends, call.started)
                        whole = await history.for_call(call)
                        if found is not None:
                            compared += 1
                            assert found == whole
                        await call.complete(assistant(f"{turn}.{number}", tool_call(f"call-{number}", "look_up", {})))
                    for function_call in call.function_calls:
                        await run.add_result(function_call, "found")
            if chance.random() < 0.3:
                last = (await chat.head()).last
                await chat.rewind(chance.randint(1, last.version), expected=last)
    assert compared >= 3


async def test_a_view_that_is_further_than_the_call_does_not_tell() -> None:
    async with EventLog.open("memory://", partitions=1) as log:
        chat = log.tenant("blue").conversation("c")
        async with chat.run() as run:
            await run.add(user("question"))
            async with run.service_call() as call:
                await chat.add(user("posted meanwhile"))
                await Projector(log, [HISTORY]).catch_up()
                assert call.started is not None
                assert await maintained_for_call(chat, run.id, call.sends, call.started) is None
                assert [message.text for message in await history.for_call(call)] == ["question"]
                await call.complete(assistant("answer"))
