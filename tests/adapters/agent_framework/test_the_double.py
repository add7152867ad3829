"""The scripted service is a judge of its own: it knows nothing of our code, and it is strict."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from agent_framework import Content, Message

from tests.adapters.agent_framework.service import Broken, InvalidRequest, Service, call, text

pytestmark = pytest.mark.anyio
DOUBLE = Path(__file__).with_name("service.py")
OURS = ("eventlog", "projections", "gateway", "tests")


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found.add(str(node.module).partition(".")[0])
    return found


def test_it_imports_nothing_of_ours_and_looks_nothing_up_by_name() -> None:
    assert not imported(DOUBLE) & set(OURS)
    assert imported(DOUBLE) == {"__future__", "agent_framework", "asyncio", "collections", "dataclasses", "typing"}
    assert "importlib" not in DOUBLE.read_text()
    assert "__import__" not in DOUBLE.read_text()


def said(role: str, *contents: Content) -> Message:
    return Message(role, list(contents))


RESULT = Content.from_function_result("c1", result="3 C")
HI, HELLO = said("user", text("hi")), said("assistant", text("hello"))
BAD = {
    "a result of no call": [HI, said("tool", RESULT)],
    "a result that comes twice": [said("assistant", call("c1", "look")), said("tool", RESULT), said("tool", RESULT)],
    "a call without a result": [HI, said("assistant", call("c1", "look")), said("user", text("well?"))],
    "a call that is open at the end": [HI, said("assistant", call("c1", "look"))],
    "one id open twice": [said("assistant", call("c1", "look"), call("c1", "look")), said("tool", RESULT)],
}


@pytest.mark.parametrize("name", BAD)
async def test_it_refuses_what_a_service_would(name: str) -> None:
    service = Service([[text("fine")]])
    with pytest.raises(InvalidRequest):
        await service.get_response(BAD[name])
    assert service.faults
    assert service.held == []


@pytest.mark.parametrize(
    "second",
    [
        [said("user", text("and?"))],  # forgets
        [HI, HI, HELLO, said("user", text("and?"))],  # doubles
        [HI, said("assistant", text("hallo")), said("user", text("and?"))],  # changes
        [HELLO, HI, said("user", text("and?"))],  # turns round
    ],
    ids=["forgets", "doubles", "changes", "turns round"],
)
async def test_it_refuses_a_history_that_is_not_what_it_remembers(second: list[Message]) -> None:
    service = Service([[text("hello")], [text("fine")]])
    await service.get_response([HI])
    with pytest.raises(InvalidRequest, match="does not continue"):
        await service.get_response(second)
    await service.get_response([HI, HELLO, said("user", text("and?"))])


async def test_it_remembers_only_what_it_accepted_and_replied() -> None:
    service = Service([Broken("gone"), [text("hello")]])
    with pytest.raises(Broken):
        await service.get_response([HI])
    assert service.held == []
    await service.get_response([HI])
    assert service.held == [("user", ("text", "hi")), ("assistant", ("text", "hello"))]


async def test_it_knows_only_the_conversations_that_it_gave() -> None:
    service = Service([[text("hello")], [text("fine")]], stores=True)
    given = await service.get_response([HI])
    with pytest.raises(InvalidRequest, match="elsewhere is not known"):
        await service.get_response([HI], options={"conversation_id": "elsewhere"})
    again = await service.get_response([said("user", text("and?"))], options={"conversation_id": given.conversation_id})
    assert len(service.conversations[str(again.conversation_id)]) == 4
