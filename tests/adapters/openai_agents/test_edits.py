"""What others write into the conversation stands in the session, too; what they take back does not."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog import Conversation, EditRefused, Mode, assistant, tool_call, user
from eventlog.messages import Message
from gateway.adapters.openai_agents import EventLogSession
from projections import history
from tests.adapters.openai_agents.conftest import MakeSession
from tests.adapters.openai_agents.scripted import shapes

pytestmark = pytest.mark.anyio


def turn(number: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"q{number}"}, {"role": "assistant", "content": f"a{number}"}]


@pytest.fixture(params=["read-anew", "followed"])
async def session(request: pytest.FixtureRequest, make: MakeSession) -> EventLogSession:
    """A session with two turns that has read them, or one that has yet to read."""
    writer = make()
    await writer.add_items(turn(1))
    await writer.add_items(turn(2))
    reader = make()
    if request.param == "followed":
        await reader.get_items()
    return reader


async def texts(session: EventLogSession) -> list[str]:
    return [str(item.get("content")) for item in await session.get_items()]


async def last(conversation: Conversation) -> Any:
    return (await conversation.head()).last


async def test_a_message_that_was_posted_stands_in_the_session(session: EventLogSession) -> None:
    await (await session.conversation()).add(user("from a person"))
    assert (await session.get_items())[-1] == {"role": "user", "content": "from a person"}


async def test_a_rewind_takes_back_and_another_brings_back(session: EventLogSession) -> None:
    conversation = await session.conversation()
    before = await last(conversation)
    await conversation.rewind(5, expected=before)  # after the first turn
    assert await texts(session) == ["q1", "a1"]
    await session.add_items(turn(3))
    assert await texts(session) == ["q1", "a1", "q3", "a3"]
    await conversation.rewind(before.version, expected=await last(conversation))
    assert await texts(session) == ["q1", "a1", "q2", "a2"]


async def test_a_compaction_stands_in_place_of_what_it_replaced(session: EventLogSession, make: MakeSession) -> None:
    conversation = await session.conversation()
    before = await last(conversation)
    await conversation.compact(5, [user("we spoke"), assistant("we did")], expected=before)
    assert await texts(session) == ["we spoke", "we did", "q2", "a2"]
    await session.add_items(turn(3))
    assert await texts(make()) == ["we spoke", "we did", "q2", "a2", "q3", "a3"]
    assert [await session.pop_item() for _ in range(2)] == turn(3)[::-1]
    for one in (session, make()):  # a rewind to before the second turn would undo the summary
        with pytest.raises(EditRefused, match=r"in or behind a summary .* clear the session"):
            await one.pop_item()
    assert await texts(session) == await texts(make()) == ["we spoke", "we did", "q2", "a2"]
    await session.clear_session()
    assert await texts(make()) == []


async def test_a_run_of_an_agent_of_ours_is_told_in_the_form_of_the_sdk(
    session: EventLogSession, make: MakeSession
) -> None:
    conversation = await session.conversation()
    async with conversation.run() as run:
        await run.add(user("weather?"))
        async with run.service_call() as call:
            await call.complete(assistant("let me see", tool_call("c1", "weather", {"city": "Oslo"})))
        await run.add_result(call.function_calls[0], {"celsius": 3})
    items = (await session.get_items())[4:]
    assert items == [
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": "let me see"},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Oslo"}'},
        {"type": "function_call_output", "call_id": "c1", "output": '{"celsius": 3}'},
    ]
    assert await make().get_items(2) == items[2:]


@pytest.mark.parametrize("ending", ["open", "aborted", "committed"])
async def test_a_per_run_run_counts_once_it_is_committed(session: EventLogSession, ending: str) -> None:
    conversation = await session.conversation()
    run = conversation.run(Mode.PER_RUN, exclusive=False)
    async with run:
        await run.add(user("atomic?"))
        async with run.service_call() as call:
            await call.complete(assistant("yes"))
        if ending == "open":
            assert await texts(session) == ["q1", "a1", "q2", "a2"]
        elif ending == "aborted":
            await run.abort()
    expected = ["atomic?", "yes"] if ending != "aborted" else []
    assert (await texts(session))[4:] == expected


async def test_what_an_agent_of_ours_left_unsent_is_sent_by_the_next_call(session: EventLogSession) -> None:
    conversation = await session.conversation()
    async with conversation.run() as run:
        await run.add(user("unsent"))
    await session.add_items([{"role": "assistant", "content": "answered"}])
    view = await history.load(conversation)
    assert [message.text for message in view.messages] == ["q1", "a1", "q2", "a2", "unsent", "answered"]


async def test_parts_that_are_no_text_are_told_and_not_hidden(session: EventLogSession) -> None:
    picture = {"type": "uri", "uri": "https://example.com/a.png", "modality": "image"}
    await (await session.conversation()).add(Message("user", [picture]))
    assert "example.com/a.png" in (await texts(session))[-1]
    assert shapes(await session.get_items())[-1] == "user"
