"""Every kind of fault in a feed is found and named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.verify import plant
from tests.verify.conftest import CHAT, Namespace
from tests.verify.harm import (
    Plant,
    check,
    path_beside,
)

pytestmark = pytest.mark.anyio


def feed(change: Callable[[list[plant.Entry]], list[plant.Entry]]) -> Plant:
    return lambda ns: plant.rewrite(ns, change, ns.chat.feed)


def chat_entries(found: list[plant.Entry]) -> list[int]:
    return [index for index, (_, fields) in enumerate(found) if fields[b"c"] == CHAT.path.encode()]


def replace(index: int, **changed: bytes) -> Plant:
    """Change the feed's entry of the chat's append of this number."""

    def changing(found: list[plant.Entry]) -> list[plant.Entry]:
        at = chat_entries(found)[index]
        fields = found[at][1] | {name.encode(): value for name, value in changed.items()}
        return [*found[:at], (found[at][0], fields), *found[at + 1 :]]

    return feed(changing)


def without(index: int) -> Plant:
    def dropping(found: list[plant.Entry]) -> list[plant.Entry]:
        at = chat_entries(found)[index]
        ids = [entry_id for entry_id, _ in found]
        return list(zip(ids, [fields for i, (_, fields) in enumerate(found) if i != at], strict=False))

    return feed(dropping)


def swapped(found: list[plant.Entry]) -> list[plant.Entry]:
    one, two = chat_entries(found)[3:5]
    found[one], found[two] = (found[one][0], found[two][1]), (found[two][0], found[one][1])
    return found


def twice(found: list[plant.Entry]) -> list[plant.Entry]:
    return [*found, (f"0-{len(found) + 1}".encode(), found[chat_entries(found)[2]][1])]


FEED_FAULTS: dict[str, tuple[Plant, str]] = {
    "a gap": (
        feed(lambda found: [*found[:2], *found[3:]]),
        r"entry 0-4: the entry before is 0-2; 0-3 should be between",
    ),
    "an entry of another kind of id": (
        lambda ns: ns.client.xadd(ns.chat.feed, {"c": "x"}, id="5-1"),
        r"entry b'5-1': its id is not well formed; it should be 0-<number>",
    ),
    "an entry of other fields": (
        lambda ns: ns.client.execute_command("XADD", ns.chat.feed, "0-*", "c", CHAT.path),
        r"entry 0-\d+: it holds .*; it should hold c \(a path\), f, n, k and s",
    ),
    "an append that is not named": (
        without(4),
        r"before version 5 of 'blue/chat': the feed does not name this append|the feed does not name",
    ),
    "the last append that is not named": (without(-1), r"version 37: the feed does not name this append"),
    "an append named twice": (
        feed(twice),
        r"entry 0-\d+: it names version 4 of 'blue/chat'; each append should be named once",
    ),
    "appends in another order": (
        feed(swapped),
        r"the feed does not name this append|each append should be named once, in order",
    ),
    "an append that is not there": (
        replace(2, f=b"90"),
        r"entry 0-\d+: it names version 90 of 'blue/chat'; an append should begin",
    ),
    "another count": (replace(2, n=b"2"), r"entry 0-\d+: it names version 4 .* as \(4, 2, .*it should say \(4, 1,"),
    "another stamp": (replace(2, s=b"5"), r"entry 0-\d+: it names version 4 .* as \(4, 1, 5,.*it should say"),
    "other kinds": (
        replace(2, k=b"note"),
        r"entry 0-\d+: it names version 4 .*note.*it should say \(4, 1, .*message-added",
    ),
    "another place in the order of conversations": (
        lambda ns: ns.client.zadd(ns.chat.conversations, {CHAT.path: 7}),
        r"entry 0-1: it is the first of 'blue/chat', whose score .* is b'7'; that should be 1, the number",
    ),
    "a path that is none": (
        replace(2, c=b"\xff"),
        r"entry 0-\d+: its path is b'\\xff'; it should name a log of this partition",
    ),
    "a log that is not there": (
        lambda ns: ns.client.execute_command(
            "XADD", ns.chat.feed, "0-*", "c", path_beside(CHAT), "f", 1, "n", 1, "k", "note", "s", 5
        ),
        r"entry 0-\d+: it names version 1 of 'blue/x\d+'; an append should begin there",
    ),
}


@pytest.mark.parametrize("kind", FEED_FAULTS)
async def test_a_fault_of_the_feed_is_named(namespace: Namespace, kind: str) -> None:
    await check(namespace, *FEED_FAULTS[kind])
