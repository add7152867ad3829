"""Which key a command has, which slot that is, and where a node sends us."""

from __future__ import annotations

import pytest
from redis.crc import key_slot

from eventlog.store.conformance.tenancy import HOSTILE
from eventlog.store.redis.routing import Redirect, key_of, node_url, redirect, slot_of, stretches, uncovered
from eventlog.store.redis.wire import pack


@pytest.mark.parametrize(
    "key",
    [
        "a",
        "{a}b",
        "x{a}b",
        "{}a",
        "x{}{a}",
        "{a",
        "a}",
        "}{",
        "{{a}}b",
        "{a}{b}",
        "",
        *(f"{{n:1}}:{id}" for id in HOSTILE),
    ],
)
def test_the_slot_is_the_one_that_clusters_use(key: str) -> None:
    assert slot_of(key.encode()) == key_slot(key.encode())


@pytest.mark.parametrize(
    ("command", "key"),
    [
        (("EVALSHA", "ab" * 20, 2, "k\r\n$1", "other", "argument"), b"k\r\n$1"),
        (("EVAL", "return 1\r\n", 1, "k"), b"k"),
        (("EVALSHA_RO", "ab" * 20, 1, "k"), b"k"),
        (("EVAL", "return 1", 0), None),
        (("XRANGE", "k", "-", "+"), b"k"),
        (("DEL", "k", "other"), b"k"),
        (("hget", "k", "f"), b"k"),
        (("MEMORY", "USAGE", "k"), b"k"),
        (("GET", ""), b""),
        (("TIME",), None),
        (("INFO", "cluster"), None),
    ],
)
def test_the_key_of_a_command_is_its_first(command: tuple[str | int, ...], key: bytes | None) -> None:
    assert key_of(pack(*command)) == key


@pytest.mark.parametrize(
    ("url", "host", "found"),
    [
        ("redis://a:1", "b", "redis://b:7"),
        ("rediss://me:p%40ss@a:1/0?x=y", "b", "rediss://me:p%40ss@b:7/0?x=y"),
        ("redis://a:1", "::1", "redis://[::1]:7"),
        ("unix:///s?x=y", "b", "redis://b:7?x=y"),
        ("unix://me:word@/s", "b", "redis://me:word@b:7"),
    ],
)
def test_nodes_are_reached_as_the_first_one_was(url: str, host: str, found: str) -> None:
    assert node_url(url, host, 7) == found


@pytest.mark.parametrize(
    ("error", "found"),
    [
        ("MOVED 3999 10.0.0.2:6381", Redirect("redis://10.0.0.2:6381", False)),
        ("ASK 3999 10.0.0.2:6381", Redirect("redis://10.0.0.2:6381", True)),
        ("MOVED 3999 :6381", Redirect("redis://a:6381", False)),
        ("MOVED 3999 ::1:6381", Redirect("redis://[::1]:6381", False)),
        ("TRYAGAIN Multiple keys request during rehashing of slot", None),
        ("CLUSTERDOWN Hash slot not served", None),
    ],
)
def test_a_node_sends_us_elsewhere(error: str, found: Redirect | None) -> None:
    assert redirect(error, "redis://a:1") == found


def test_the_slots_are_told_with_the_nodes_that_hold_them() -> None:
    reply = [
        [0, 5, [b"b", 1, b"id", []], [b"c", 2, b"id", []]],
        [7, 16_383, [b"", 3, b"id"]],
        [6, 6, [None, 4, b"id"]],
    ]
    found = stretches(reply, "redis://a:9")
    assert [tuple(one) for one in found] == [
        (0, 5, "redis://b:1", ("redis://c:2",)),
        (7, 16_383, "redis://a:3", ()),
        (6, 6, "redis://a:4", ()),
    ]
    assert (uncovered(found), uncovered(found[:1])) == (0, 16_378)


@pytest.mark.parametrize("reply", [7, [7], [[0]], [[0, 1]], [["x", 1, [b"b", 1]]], [[0, 1, [b"b"]]]])
def test_what_tells_no_slots_is_said_to(reply: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - that of int() as well
        stretches(reply, "redis://a:9")
