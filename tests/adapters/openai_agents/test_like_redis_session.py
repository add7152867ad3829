"""For the same calls, our session and the SDK's RedisSession give the same items."""

from __future__ import annotations

import asyncio
import copy
from typing import Any
from uuid import uuid4

import pytest
from agents.extensions.memory import RedisSession
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from eventlog import EventLog
from gateway.adapters.openai_agents import EventLogSession
from gateway.adapters.openai_agents.limit import newest
from tests.adapters.openai_agents.strategies import ITEMS

STEPS = st.one_of(
    st.tuples(st.just("add"), st.lists(ITEMS, max_size=4)),
    st.tuples(st.just("pop"), st.none()),
    st.tuples(st.just("clear"), st.none()),
    st.tuples(st.just("get"), st.none() | st.integers(-1, 8)),
)
WALKS = st.lists(st.tuples(st.sampled_from([0, 1]), STEPS), max_size=14)
"""Each step is taken by one of two sessions of the same id."""


async def walk(url: str, steps: list[tuple[int, tuple[str, Any]]]) -> None:
    name = uuid4().hex
    async with EventLog.open(url, namespace=f"t{name[:12]}") as log, Redis.from_url(url) as client:
        ours = [EventLogSession(name, tenant=log.tenant("t")) for _ in range(2)]
        theirs = RedisSession(name, redis_client=client)
        for which, (what, value) in steps:
            mine = ours[which]
            if what == "add":
                await theirs.add_items(copy.deepcopy(value))
                await mine.add_items(value)
            elif what == "pop":
                assert await mine.pop_item() == await theirs.pop_item()
            elif what == "clear":
                await theirs.clear_session()
                await mine.clear_session()
            else:
                every, expected = await theirs.get_items(), await theirs.get_items(value)
                found = await mine.get_items(value)
                cut = value is not None and value > 0 and len(every) - newest(every, value) != min(value, len(every))
                assert found == (every[newest(every, value) :] if cut and value else expected)
        assert await ours[0].get_items() == await ours[1].get_items() == await theirs.get_items()


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=WALKS)
def test_any_sequence_of_calls_gives_the_same_items(server: str, steps: list[tuple[int, tuple[str, Any]]]) -> None:
    asyncio.run(walk(server, steps))


@pytest.mark.anyio
async def test_three_equal_items_are_three(log: EventLog) -> None:
    session = EventLogSession("s", tenant=log.tenant("t"))
    for _ in range(3):
        await session.add_items([{"role": "user", "content": "yes"}])
    assert len(await session.get_items()) == 3


@pytest.mark.anyio
async def test_what_a_caller_does_to_the_items_it_got_or_gave_changes_nothing(log: EventLog) -> None:
    session = EventLogSession("s", tenant=log.tenant("t"))
    given: dict[str, Any] = {"role": "user", "content": [{"type": "input_text", "text": "a"}]}
    await session.add_items([given])
    given["content"][0]["text"] = "b"
    got = await session.get_items()
    got[0]["content"][0]["text"] = "c"
    assert (await session.get_items())[0]["content"][0]["text"] == "a"


@pytest.mark.anyio
async def test_many_items_are_added_at_once(server: str) -> None:
    session = EventLogSession.from_url("many", url=server, key_prefix=uuid4().hex)
    items = [{"role": role, "content": str(number)} for number in range(1500) for role in ("user", "assistant")]
    await session.add_items(items)
    assert await session.get_items() == items
    await session.close()
