"""Ours stands where the SDK's RedisSession stood: the same forms, and what it takes back stays in the log."""

from __future__ import annotations

import inspect
from typing import Any
from uuid import uuid4

import pytest
from agents.extensions.memory import RedisSession
from agents.memory.session import Session
from agents.memory.session_settings import SessionSettings
from redis.asyncio import Redis

from eventlog import EventLog
from gateway.adapters.openai_agents import EventLogSession
from tests.adapters.openai_agents.conftest import MakeSession

ASKED, ANSWERED = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}


def forms(function: Any) -> dict[str, tuple[Any, Any]]:
    """Each named parameter: its kind, and its default."""
    found = inspect.signature(function).parameters.values()
    return {one.name: (one.kind, one.default) for one in found if one.kind is not one.VAR_KEYWORD}


@pytest.mark.parametrize(
    "name", [name for name, _ in inspect.getmembers(RedisSession, callable) if not name.startswith("_")] + ["__init__"]
)
def test_whatever_theirs_takes_ours_takes_under_the_same_name_and_by_default_the_same(name: str) -> None:
    theirs, ours = forms(getattr(RedisSession, name)), forms(getattr(EventLogSession, name))
    for parameter, (kind, default) in theirs.items():
        assert ours[parameter][0] == kind, parameter
        if (name, parameter) != ("__init__", "redis_client"):  # a tenant may stand in its place
            assert ours[parameter][1] == default, parameter


def test_its_methods_are_those_of_theirs() -> None:
    public = {name for name, _ in inspect.getmembers(RedisSession) if not name.startswith("_")}
    assert public <= {name for name, _ in inspect.getmembers(EventLogSession)}
    assert isinstance(EventLogSession.from_url("s", url="memory://"), Session)


@pytest.mark.anyio
async def test_each_form_of_the_constructor_makes_the_same_session(server: str) -> None:
    name, prefix = uuid4().hex, uuid4().hex
    given: dict[str, Any] = {"key_prefix": prefix, "ttl": 60, "session_settings": SessionSettings(limit=5)}
    async with Redis.from_url(server) as client:
        made = [
            EventLogSession(name, redis_client=client, **given),
            EventLogSession.from_url(name, url=server, **given),
            EventLogSession.from_url(name, url=server, redis_kwargs={"decode_responses": True}, **given),
        ]
        for session in made:
            assert await session.ping() is True
            await session.add_items([ASKED])
        for session in made:
            assert (session.session_id, session.session_settings) == (name, SessionSettings(limit=5))
            assert await session.get_items() == [ASKED] * 3
            await session.close()


@pytest.mark.anyio
@pytest.mark.parametrize("taken_back", ["pop_item", "clear_session"])
async def test_what_is_taken_back_is_a_rewind_that_another_rewind_undoes(make: MakeSession, taken_back: str) -> None:
    session = make()
    await session.add_items([ASKED, ANSWERED])
    chat = await session.conversation()
    before = (await chat.head()).last
    given = await getattr(session, taken_back)()
    assert given == (ANSWERED if taken_back == "pop_item" else None)
    assert await session.get_items() == ([ASKED] if taken_back == "pop_item" else [])
    added = [event async for event in chat.read() if event.version > before.version]
    assert [event.type for event in added] == ["history-rewound"]
    assert len([event async for event in chat.read(types=["message-added"])]) == 2
    await chat.rewind(before.version, expected=(await chat.head()).last)
    assert await session.get_items() == await make().get_items() == [ASKED, ANSWERED]


@pytest.mark.anyio
async def test_nothing_is_written_where_there_is_nothing_to_take_back(log: EventLog) -> None:
    session = EventLogSession("s", tenant=log.tenant("t"))
    assert await session.pop_item() is None
    await session.clear_session()
    await session.add_items([])
    assert (await log.tenant("t").conversation("s").head()).last.version == 0
