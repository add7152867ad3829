"""What a caller gives is kept as it was sent, or refused with a clear error."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from eventlog import Draft, EventLog
from eventlog.errors import InvalidEvent, InvalidId

pytestmark = pytest.mark.anyio


def nested(depth: int) -> Any:
    """Lists in lists, so many levels of them."""
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


KEPT: dict[str, Any] = {
    "one MB of text": "añb🦜" * 125_000,
    "NUL characters": "\x00a\x00\x00",
    "protocol text": "\r\n$5\r\n*3\r\n-ERR\r\n",
    "control characters": "".join(map(chr, range(32))) + "\x7f\x80\u2028\u2029\ufeff\uffff",
    "the ends of 64 bits": [-(1 << 63), (1 << 63) - 1, (1 << 64) - 1, (1 << 53) + 1, 0, -1],
    "numbers": [1, 1.0, -0.0, 0.1, 1e308, 5e-324, 1e16, 123456789.123456789],
    "truth": [True, False, None, 1, 0],
    "strange keys": {"": 1, "\x00": 2, "a.b": 3, "é": 4, "e\u0301": 5, "__proto__": 6, "constructor": 7},
    "empty things": [[], {}, "", [[]], [{}]],
    "order of keys": {"b": 1, "a": 2, "c": {"z": 1, "y": 2}},
    "surrogate pairs as text": "\\ud800 \\u0000",
    "199 levels in an object": nested(199),
}


@pytest.mark.parametrize("what", KEPT)
async def test_it_is_kept_as_sent(log: EventLog, what: str) -> None:
    conversation = log.tenant("acme").conversation("support")
    await conversation.append(Draft("note", {"value": KEPT[what]}, meta={"value": KEPT[what]}))
    (event,) = [event async for event in conversation.read()]
    assert orjson.dumps(event.data) == orjson.dumps({"value": KEPT[what]})
    assert orjson.dumps(event.meta) == orjson.dumps({"value": KEPT[what]})


REFUSED: dict[str, tuple[Any, str]] = {
    "not a number": (float("nan"), "events[0].data.value: nan is not a finite number: send null or a string instead"),
    "infinity": (float("inf"), "events[0].data.value: inf is not a finite number: send null or a string instead"),
    "65 bits": (
        [1, 1 << 64],
        "events[0].data.value[1]: the integer 18446744073709551616 does not fit in 64 bits: send it as a string",
    ),
    "a lone surrogate": (
        {"a": "x\ud800"},
        "events[0].data.value.a: 'x\\ud800' has a lone surrogate: give well-formed text",
    ),
    "a key with a lone surrogate": (
        {"\udfff": 1},
        "events[0].data.value: the key '\\udfff' is not well-formed text",
    ),
    "a key that is no text": ({1: 2}, "events[0].data.value: the key 1 is not well-formed text"),
    "bytes": (b"x", "events[0].data.value: a bytes is not JSON: give None, bool, int, float, str, list or dict"),
    "a tuple": ((1,), "events[0].data.value: a tuple is not JSON: give None, bool, int, float, str, list or dict"),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_it_is_refused(log: EventLog, what: str) -> None:
    value, text = REFUSED[what]
    conversation = log.tenant("acme").conversation("support")
    with pytest.raises(InvalidEvent) as refused:
        await conversation.append(Draft("note", {"value": value}))
    assert str(refused.value) == text
    with pytest.raises(InvalidEvent) as refused:
        await conversation.append(Draft("note", {}, meta={"value": value}))
    assert str(refused.value) == text.replace("[0].data", "[0].meta")
    assert (await conversation.head()).last.version == 0


async def test_200_levels_are_kept_and_201_refused(log: EventLog) -> None:
    conversation = log.tenant("acme").conversation("support")
    with pytest.raises(InvalidEvent, match="nested deeper than 200 levels: flatten it or send it as a string"):
        await conversation.append(Draft("note", {"value": nested(200)}))
    with pytest.raises(InvalidEvent, match="nested deeper than 200 levels"):
        await conversation.append(Draft("note", {"value": nested(100_000)}))
    await conversation.append(Draft("note", {"value": nested(199)}))
    assert [event.data async for event in conversation.read()] == [{"value": nested(199)}]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x\ud800", "has a lone surrogate: give well-formed text"),
        (float("nan"), "nan is not a finite number"),
        (1 << 64, "does not fit in 64 bits"),
        ({"deep": nested(200)}, "nested deeper than 200 levels"),
    ],
)
async def test_known_types_are_refused_in_the_same_words(log: EventLog, value: Any, text: str) -> None:
    conversation = log.tenant("acme").conversation("support")
    data = {"message_id": "m", "call_id": "c", "output": value}
    with pytest.raises(InvalidEvent, match=text):
        await conversation.append(Draft("function-result", data))


async def test_a_known_type_keeps_deep_values(log: EventLog) -> None:
    conversation = log.tenant("acme").conversation("support")
    data = {"message_id": "m", "call_id": "c", "output": nested(199)}
    await conversation.append(Draft("function-result", data))
    assert [event.data async for event in conversation.read()] == [data]


async def test_a_lone_surrogate_in_a_message_is_refused_in_the_same_words(log: EventLog) -> None:
    conversation = log.tenant("acme").conversation("support")
    data = {"message_id": "m", "role": "user", "parts": [{"type": "text", "content": "x\ud800"}]}
    with pytest.raises(InvalidEvent, match="has a lone surrogate: give well-formed text"):
        await conversation.append(Draft("message-added", data))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", "has 0 bytes; 1 to 1,000 are allowed: give a non-empty one"),
        ("x" * 1_001, "has 1,001 bytes; 1 to 1,000 are allowed: give a shorter one"),
        ("🦜" * 251, "has 1,004 bytes; 1 to 1,000 are allowed: give a shorter one"),
        ("\ud800", "has a lone surrogate: give well-formed text"),
        (b"x", "must be text, not bytes: give a str"),
        (None, "must be text, not NoneType: give a str"),
    ],
)
async def test_ids_that_are_none_are_refused(log: EventLog, name: Any, text: str) -> None:
    tenant = log.tenant("acme")
    with pytest.raises(InvalidId, match=text):
        log.tenant(name)
    with pytest.raises(InvalidId, match=text):
        tenant.conversation(name)
    if name is not None:
        with pytest.raises(InvalidId, match=text):
            await tenant.conversation("support").append(Draft("note", {}), operation_id=name)
