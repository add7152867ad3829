"""JSON as it is: what it cannot hold is refused with the path, and never stored as something else."""

from __future__ import annotations

import math
from collections import OrderedDict, UserDict
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.codec import MAX_DEPTH, decode, encode
from eventlog.errors import InvalidEvent
from eventlog.events import Draft
from tests.events import strategies

AT = "2026-01-02T03:04:05.000006Z"


class Colour(Enum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


class Word(StrEnum):
    HI = "hi"


class MyInt(int):
    pass


class MyStr(str):
    __slots__ = ()


class MyDict(dict[str, Any]):
    pass


class MyList(list[Any]):
    pass


class MyFloat(float):
    pass


class Pair(NamedTuple):
    a: int


@dataclass
class Point:
    x: int


NOT_JSON: list[Any] = [
    (1, 2),
    Pair(1),
    {1},
    frozenset(),
    b"bytes",
    bytearray(b"x"),
    UUID(int=1),
    datetime(2026, 1, 1, tzinfo=UTC),
    date(2026, 1, 1),
    Decimal("1.5"),
    Colour.RED,
    Number.ONE,
    Word.HI,
    Point(1),
    MyInt(3),
    MyStr("s"),
    MyFloat(1.5),
    MyDict(),
    MyList(),
    OrderedDict(),
    UserDict(),
    object(),
    int,
    1j,
    range(3),
    math.nan,
    math.inf,
    -math.inf,
    1 << 64,
    -(1 << 63) - 1,
    10**40,
    "\ud800",
    "a\udfffb",
]
BAD_KEYS: list[Any] = [5, None, True, 1.5, b"k", (1,), Word.HI, MyStr("k"), "\ud800"]
PLACES: list[tuple[str, Any]] = [
    ("here", lambda value: {"here": value}),
    ("list[1]", lambda value: {"list": [0, value]}),
    ("a.b[0].c", lambda value: {"a": {"b": [{"c": value}]}}),
]
_IDS = [f"{type(value).__name__}-{ascii(value).partition(' at 0x')[0][:30]}" for value in NOT_JSON]
"""The same in every process, so without addresses."""


def refused(draft: Draft) -> InvalidEvent:
    with pytest.raises(InvalidEvent) as caught:
        encode([draft], "op", AT)
    return caught.value


@pytest.mark.parametrize("value", NOT_JSON, ids=_IDS)
@pytest.mark.parametrize(("path", "place"), PLACES, ids=[path for path, _ in PLACES])
def test_what_is_not_json_is_refused_with_the_path(value: Any, path: str, place: Any) -> None:
    assert refused(Draft("x", place(value))).path == f"events[0].data.{path}"
    assert refused(Draft("x", {}, meta=place(value))).path == f"events[0].meta.{path}"
    known = {"message_id": "m", "call_id": "c", "output": place(value)}
    assert refused(Draft("function-result", known)).path == f"events[0].data.output.{path}"
    known = {"message_id": "m", "call_id": "c", "name": "n", "x-unknown": place(value)}
    assert refused(Draft("function-call", known)).path == f"events[0].data.x-unknown.{path}"


@pytest.mark.parametrize("value", NOT_JSON, ids=_IDS)
def test_what_is_not_json_is_refused_inside_a_part(value: Any) -> None:
    for part in ({"type": "text", "content": "c", "more": value}, {"type": "x-new", "more": value}):
        error = refused(Draft("message-added", {"message_id": "m", "role": "user", "parts": [part]}))
        assert error.path == "events[0].data.parts[0].more"


@pytest.mark.parametrize("key", BAD_KEYS, ids=ascii)
def test_a_key_that_is_not_text_is_refused_with_the_path_of_its_object(key: Any) -> None:
    for outer, path in (({"a": [{key: 1}]}, ".a[0]"), ({key: 1}, "")):
        error = refused(Draft("x", outer))
        assert error.path == f"events[0].data{path}"
        assert "key" in error.problem
        assert refused(Draft("x", {}, meta=outer)).path == f"events[0].meta{path}"


@pytest.mark.parametrize(
    "value",
    [
        (1 << 64) - 1,
        -(1 << 63),
        0,
        -0.0,
        5e-324,
        1.7976931348623157e308,
        "\U0010ffff",
        "\x00",
        "\ue000",
        "\ufffe",
        "",
        {},
        [],
        {"": ""},
        {"\x00": None},
        True,
        1.0,
    ],
    ids=ascii,
)
def test_the_edges_of_json_are_kept_exactly(value: Any) -> None:
    (document,) = encode([Draft("x", {"v": value})], "op", AT).documents
    read = decode(1, 1, document).data["v"]
    assert (repr(read), type(read)) == (repr(value), type(value))


def nested(levels: int, *, lists: bool) -> dict[str, Any]:
    """An object of this many levels, itself the first."""
    value: Any = [] if lists else {}
    for _ in range(levels - 2):
        value = [value] if lists else {"k": value}
    return {"k": value}


@pytest.mark.parametrize("lists", [True, False])
def test_depth_200_is_kept_and_201_refused(lists: bool) -> None:
    assert MAX_DEPTH == 200
    (document,) = encode([Draft("x", nested(200, lists=lists), meta=nested(200, lists=lists))], "op", AT).documents
    assert decode(1, 1, document).data == nested(200, lists=lists)
    for levels in (201, 300, 100_000):
        assert "200" in refused(Draft("x", nested(levels, lists=lists))).problem
        assert refused(Draft("x", {}, meta=nested(levels, lists=lists))).path.startswith("events[0].meta.k")
    known = {"message_id": "m", "call_id": "c", "output": nested(200, lists=lists)}
    assert refused(Draft("function-result", known)).path.startswith("events[0].data.output.k")


def test_an_object_that_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    assert refused(Draft("x", loop)).path.startswith("events[0].data.loop")


@given(strategies.OBJECT, st.sampled_from(NOT_JSON), st.data())
def test_something_wrong_is_found_wherever_it_is(whole: dict[str, Any], wrong: Any, data: st.DataObject) -> None:
    inner: Any = whole
    path = "events[0].data"
    while True:
        below = [
            (k, v) for k, v in (inner.items() if type(inner) is dict else enumerate(inner)) if type(v) in (dict, list)
        ]
        if not below or data.draw(st.booleans()):
            break
        step, inner = data.draw(st.sampled_from(below))
        path += f".{step}" if type(step) is str else f"[{step}]"
    if type(inner) is dict:
        inner["wrong"] = wrong
        path += ".wrong"
    else:
        inner.append(wrong)
        path += f"[{len(inner) - 1}]"
    assert refused(Draft("x", whole)).path == path


@given(strategies.OBJECT)
def test_json_is_stored_as_it_is(value: dict[str, Any]) -> None:
    (document,) = encode([Draft("x", value)], "op", AT).documents
    assert repr(orjson.loads(document)["data"]) == repr(value)
