"""The scripted model refuses what a model service refuses."""

from __future__ import annotations

import pytest

from eventlog import Message, assistant, tool, tool_call, tool_result, user
from gateway.demo.script import HIKE, Model, RequestRefused, StreamBroken
from gateway.demo.validity import problems

ASKED, CALL, ANSWER = user("?"), assistant(tool_call("a", "f"), tool_call("b", "f")), tool(tool_result("a", 1))


@pytest.mark.parametrize(
    ("messages", "wrong"),
    [
        ([ASKED], []),
        ([ASKED, CALL, ANSWER, tool(tool_result("b", 2))], []),
        ([ASKED, CALL, tool(tool_result("b", 2), tool_result("a", 1)), assistant("!"), ASKED], []),
        ([ASKED, CALL, ANSWER], ["call b has no result"]),
        (
            [ASKED, CALL, ANSWER, ASKED, tool(tool_result("b", 2))],
            ["call b has no result before the next message", "result b answers no call before it"],
        ),
        ([ASKED, ANSWER], ["result a answers no call before it"]),
        ([ASKED, CALL, ANSWER, ANSWER, tool(tool_result("b", 2))], ["result a answers no call before it"]),
        ([ASKED, assistant("!")], ["nothing to reply to"]),
        ([], ["nothing to reply to"]),
    ],
)
def test_each_call_must_be_answered_at_once_and_no_result_stand_alone(
    messages: list[Message], wrong: list[str]
) -> None:
    assert problems(messages) == wrong


@pytest.mark.anyio
async def test_the_model_takes_no_invalid_request() -> None:
    model = Model()
    with pytest.raises(RequestRefused, match="call a has no result"):
        await model([ASKED, CALL, ASKED])
    assert model.requests == []


@pytest.mark.anyio
async def test_the_model_breaks_one_stream_and_answers_the_retry() -> None:
    model = Model()
    calls = await model([user(HIKE)])
    request = [user(HIKE), calls, tool(tool_result("call_1", "dry"), tool_result("call_2", 4))]
    with pytest.raises(StreamBroken) as broken:
        await model(request)
    reply = await model(request)
    assert reply.text.startswith(broken.value.partial)
