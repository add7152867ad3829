"""Keys that should not be there, or are of another type, are found and named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eventlog.identity import partition_of
from tests.verify.conftest import CHAT, Namespace
from tests.verify.harm import (
    Plant,
    check,
    path_beside,
)

pytestmark = pytest.mark.anyio


def partition_key(family: str, partition: int | str = 0) -> Callable[[Namespace], str]:
    return lambda ns: f"{{{ns.keys.namespace}:{partition}}}:{family}"


KEY_FAULTS: dict[str, tuple[Plant, str]] = {
    "a key of no pattern": (
        lambda ns: ns.client.set(partition_key("odd")(ns), 1),
        r"key '\{.*:0\}:odd', its name: it fits no pattern",
    ),
    "a key of no partition": (
        lambda ns: ns.client.set(partition_key("feed", 7)(ns), 1),
        r"key '\{.*:7\}:feed', its name: it fits",
    ),
    "a key outside any partition": (
        lambda ns: ns.client.set(f"{ns.keys.namespace}:odd", 1),
        r"key '.*:odd', its name: it fits no",
    ),
    "a key of no path": (
        lambda ns: ns.client.set(partition_key("log:odd")(ns), 1),
        r"log:odd', its name: it is not <tenant>/",
    ),
    "a key of bytes": (
        lambda ns: ns.client.set(partition_key("log:")(ns).encode() + b"\xff/\xfe", 1),
        r"log:\\\\xff/\\\\xfe', its name: it is not <tenant>/",
    ),
    "a log in another partition": (
        lambda ns: ns.client.xadd(
            f"{{{ns.keys.namespace}:{1 - partition_of(CHAT.path, 2)}}}:log:{CHAT.path}", {"e": 1}
        ),
        r"log:blue/chat', its name: it belongs to partition \d",
    ),
    "a member that is no path": (
        lambda ns: ns.client.zadd(ns.chat.conversations, {b"\xff": 1}),
        r"conversations', member '\\\\xff': it is not <tenant>/<conversation>",
    ),
    "a member without a log": (
        lambda ns: ns.client.zadd(ns.chat.conversations, {path_beside(CHAT): 1}),
        r"conversation 'x\d+' of 'blue', the set of conversations: its path is there; it should not be: there is no",
    ),
    "another layout": (
        lambda ns: ns.client.hset(ns.keys.meta, "layout", 9),
        r":meta', field 'layout': it is b'9'; it should be 1",
    ),
    "no partitions": (
        lambda ns: ns.client.hset(ns.keys.meta, "partitions", "x"),
        r":meta', field 'partitions': it is b'x'; it",
    ),
    "a field of the namespace that nobody writes": (
        lambda ns: ns.client.hset(ns.keys.meta, "odd", "x"),
        r"field b'odd': nobody",
    ),
    "no meta": (
        lambda ns: ns.client.delete(ns.keys.meta),
        r":meta', the namespace: it is not there; it should say layout",
    ),
}


@pytest.mark.parametrize("kind", KEY_FAULTS)
async def test_a_key_that_should_not_be_there_is_named(namespace: Namespace, kind: str) -> None:
    await check(namespace, *KEY_FAULTS[kind])


TYPES = {"log": "stream", "head": "hash", "ops": "hash", "old_ops": "hash", "feed": "stream", "conversations": "zset"}
KINDS = ("string", "list", "hash", "zset", "stream")


@pytest.mark.parametrize(
    ("family", "kind"), [(f, kind) for f, right in TYPES.items() for kind in KINDS if kind != right]
)
async def test_a_key_of_another_type_is_named(namespace: Namespace, family: str, kind: str) -> None:
    key, right = getattr(namespace.chat, family), TYPES[family]
    await namespace.client.delete(key)
    match kind:
        case "string":
            await namespace.client.set(key, b"\0\xff")
        case "list":
            await namespace.client.rpush(key, b"\0\xff")  # type: ignore[misc]
        case "hash":
            await namespace.client.hset(key, mapping={b"\0": b"\xff"})  # type: ignore[misc]
        case "zset":
            await namespace.client.zadd(key, {b"\0": 1})
        case "stream":
            await namespace.client.xadd(key, {b"\0": b"\xff"})
    told = await namespace.texts()
    assert any(key in text and f"it is a {kind}; it should be a {right}" in text for text in told), "\n".join(told)
    assert not any("'other one" in text for text in told if family not in ("feed", "conversations")), "\n".join(told)
