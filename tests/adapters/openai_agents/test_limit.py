"""A limit gives the newest items and cuts nothing that belongs together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.openai_agents.kinds import answers, asks
from gateway.adapters.openai_agents.limit import newest
from tests.adapters.openai_agents.conftest import MakeSession
from tests.adapters.openai_agents.scripted import shapes


def said(role: str, text: str = "x") -> dict[str, Any]:
    return {"role": role, "content": text}


def call(call_id: str, kind: str = "function_call") -> dict[str, Any]:
    return {"type": kind, "call_id": call_id, "name": "look", "arguments": "{}"}


def result(call_id: str, kind: str = "function_call_output") -> dict[str, Any]:
    return {"type": kind, "call_id": call_id, "output": "seen"}


THOUGHT = {"type": "reasoning", "id": "r", "summary": []}
TURN = [said("user"), THOUGHT, call("a"), call("b"), result("b"), result("a"), said("assistant")]


@pytest.mark.parametrize(
    ("limit", "given"),
    [
        (1, 1),  # the answer
        (2, 1),  # would begin with a result: the window shrinks to the answer
        (3, 6),  # grows to the reasoning that led to the calls
        (4, 6),
        (5, 6),
        (6, 6),
        (7, 7),
        (100, 7),
    ],
)
def test_the_window_moves_to_where_nothing_is_cut(limit: int, given: int) -> None:
    assert len(TURN) - newest(TURN, limit) == given


def test_it_never_shrinks_to_nothing() -> None:
    items = [said("user"), *(call(f"c{n}") for n in range(10)), *(result(f"c{n}") for n in range(10))]
    assert newest(items, 1) == 1


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (call("a", "computer_call"), result("a", "computer_call_output")),
        (call("a", "custom_tool_call"), result("a", "custom_tool_call_output")),
        (call("a", "tool_search_call"), result("a", "tool_search_output")),
        (
            {"type": "mcp_approval_request", "id": "q"},
            {"type": "mcp_approval_response", "approval_request_id": "q", "approve": True},
        ),
    ],
)
def test_every_kind_of_call_keeps_its_answer(asked: dict[str, Any], answered: dict[str, Any]) -> None:
    assert newest([said("user"), asked, answered], 1) == 1


KINDS = st.sampled_from(["user", "assistant", "reasoning", "call", "result"])


@given(st.lists(st.tuples(KINDS, st.sampled_from("abc")), max_size=20), st.integers(1, 25))
def test_no_window_holds_a_result_without_its_call_or_the_other_way_round(
    script: list[tuple[str, str]], limit: int
) -> None:
    makers = {
        "user": said,
        "assistant": said,
        "call": lambda _, name: call(name),
        "result": lambda _, name: result(name),
    }
    items = [THOUGHT if kind == "reasoning" else makers[kind](kind, name) for kind, name in script]
    start = newest(items, limit)
    assert not items or start < len(items)
    waiting: dict[Any, int] = {}
    for index, item in enumerate(items):
        if asks(item):
            waiting[asks(item)] = index
        if answers(item) in waiting:
            assert (index >= start) == (waiting[answers(item)] >= start)
    assert start == 0 or items[start - 1].get("type") != "reasoning"


@pytest.mark.anyio
@pytest.mark.parametrize("warm", [False, True])
async def test_a_session_reads_the_same_window_from_the_log_and_from_memory(make: MakeSession, warm: bool) -> None:
    writer = make()
    for _ in range(30):
        await writer.add_items(TURN)
    reader = make()
    if warm:
        await reader.get_items()
    items = await make().get_items()
    for limit in (1, 2, 3, 7, 8, 20, 209, 210, 211):
        assert await reader.get_items(limit) == items[newest(items, limit) :]
    assert await reader.get_items(0) == await reader.get_items(-1) == []
    assert shapes(await reader.get_items(3)) == shapes(TURN[1:])


@pytest.mark.anyio
async def test_the_settings_give_the_limit_where_the_call_does_not(make: MakeSession) -> None:
    session = make(session_settings={"limit": 2})
    await session.add_items([said("user", str(number)) for number in range(5)])
    assert [item["content"] for item in await session.get_items()] == ["3", "4"]
    assert len(await session.get_items(4)) == 4


@pytest.mark.anyio
async def test_a_result_whose_call_was_never_there_is_given_as_it_is(make: MakeSession) -> None:
    session = make()
    await session.add_items([said("user"), result("lost"), said("assistant"), said("user")])
    assert shapes(await make().get_items(3)) == ["function_call_output", "assistant", "user"]


@pytest.mark.anyio
async def test_a_call_that_is_far_away_is_looked_for_before_its_result_is_given(make: MakeSession) -> None:
    session = make()
    await session.add_items([call("far")])
    for _ in range(40):
        await session.add_items([said("user"), said("assistant")] * 5)
    await session.add_items([result("far"), said("user", "last")])
    assert await make().get_items(2) == [said("user", "last")]
