"""Planted faults in the directory, the open calls, trimmed feeds and what deletions leave."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from chaos.ledger import Line
from chaos.order import NAMESPACE
from tests.chaos.planting import Plot

pytestmark = pytest.mark.timeout(300)
Document = dict[str, Any]


# The directory and the open calls


def rewrite(plot: Plot, projection: str, change: Callable[[Document], object]) -> None:
    """Change the first document that a view holds."""
    entries, name = filed(plot, projection)
    under, _, document = entries[name].partition(b"\0")
    changed = json.loads(document)
    change(changed)
    entries[name] = under + b"\0" + json.dumps(changed).encode()


def filed(plot: Plot, projection: str) -> tuple[dict[bytes, bytes], bytes]:
    """The documents of the first conversation that has some, and the key of the first of them."""
    key = next(key for key in sorted(plot.raw) if f":{plot.view(projection)}:entries:" in key and plot.raw[key][1])
    entries: dict[bytes, bytes] = plot.raw[key][1]
    return entries, min(entries)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("title", "other"),
        ("labels", {"other": "label"}),
        ("agents", []),
        ("messages", 1),
        ("runs", 0),
        ("first_text", "other"),
        ("last_text", None),
        ("created_ms", 7),
        ("active_ms", 7),
    ],
)
def test_a_directory_that_tells_something_else_than_the_log_is_caught(plot: Plot, field: str, wrong: object) -> None:
    rewrite(plot, "directory", lambda document: document.update({field: wrong}))
    assert plot.properties() == {"filed"}


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("call_id", "other"),
        ("name", "other"),
        ("run", "other"),
        ("agent", "other"),
        ("in_open_run", 7),
        ("since_ms", 7),
        ("result", 7_000_000),
        ("awaits_since_ms", 7),
    ],
)
def test_an_open_call_of_which_something_else_is_told_is_caught(plot: Plot, field: str, wrong: object) -> None:
    rewrite(plot, "open_calls", lambda document: document.update({field: wrong}))
    assert plot.properties() == {"filed"}


@pytest.mark.parametrize("projection", ["directory", "open_calls"])
@pytest.mark.parametrize("harm", ["forgotten", "invented"])
def test_a_document_that_was_forgotten_or_invented_is_caught(plot: Plot, projection: str, harm: str) -> None:
    entries, name = filed(plot, projection)
    if harm == "forgotten":
        del entries[name]
    else:
        entries[b"1000000"] = entries[name]
    assert plot.properties() == {"filed"}


# Trimming


def trim(plot: Plot, count: int) -> int:
    """Trim so many entries from the feed of the longest log, as it should be done; its partition."""
    path = plot.longest()
    feed, partition = plot.feed(path), plot.state.places[path]
    fields = feed[count - 1][1]
    del feed[:count]
    base = {b"seq": str(count).encode(), b"stamp": fields[b"s"], b"announced": str(count + 1).encode()}
    plot.raw[f"{{{NAMESPACE}:{partition}}}:feed-base"] = "hash", base
    return partition


def test_a_feed_that_was_trimmed_in_order_is_as_it_should_be(plot: Plot) -> None:
    trim(plot, 5)
    assert plot.found() == []


@pytest.mark.parametrize("base", [4, 6])
def test_a_feed_that_begins_elsewhere_than_its_base_says_is_caught(plot: Plot, base: int) -> None:
    partition = trim(plot, 5)
    plot.raw[f"{{{NAMESPACE}:{partition}}}:feed-base"][1][b"seq"] = str(base).encode()
    assert "feed" in plot.properties()


def test_a_feed_of_which_more_is_gone_than_was_trimmed_is_caught(plot: Plot) -> None:
    """An entry behind the base is that of another operation now: numbers are dense, and its own is not named."""
    trim(plot, 5)
    feed = plot.feed(plot.longest())
    del feed[1]
    for number, (_, fields) in enumerate(feed, 6):
        feed[number - 6] = f"0-{number}".encode(), fields
    assert "feed" in plot.properties()


# Deletions


def gone(plot: Plot) -> str:
    """The path of a conversation that was deleted."""
    return min(plot.state.deleted)


def test_a_conversation_that_was_said_to_be_deleted_and_is_not_is_caught(plot: Plot) -> None:
    path = min(plot.state.logs)
    plot.lives[0].lines.extend([{"do": "delete", "path": path}, {"do": "deleted", "path": path}])
    assert plot.properties() == {"deleted"}


def test_a_conversation_that_nobody_deleted_and_is_gone_is_caught(plot: Plot) -> None:
    path = gone(plot)
    plot.remove(lambda line: line["do"] in ("delete", "deleted") and line["path"] == path)
    assert plot.properties() == {"deleted"}


def test_a_tombstone_that_stands_before_what_was_acknowledged_is_caught(plot: Plot) -> None:
    plot.head(gone(plot))[b"last"] = b"0-0"
    assert "deleted" in plot.properties()


@pytest.mark.parametrize("what", ["ops", "old-ops", "kept", "rows", "entries", "listed"])
def test_something_that_is_left_of_a_deleted_conversation_is_caught(plot: Plot, what: str) -> None:
    path = gone(plot)
    partition = int(plot.key("head", path).partition(":")[2].partition("}")[0])
    base = f"{{{NAMESPACE}:{partition}}}:"
    if what in ("ops", "old-ops"):
        plot.raw[f"{base}{what}:{path}"] = "hash", {b"op": b"1:1:1:x"}
    elif what == "kept":
        plot.kept("usage", partition)[path.encode()] = b"1-1|"
    elif what == "rows":
        plot.raw[f"{base}{plot.view('history')}:rows:{path}"] = "list", [b"1"]
    elif what == "entries":
        plot.raw[f"{base}{plot.view('runs')}:entries:{path}"] = "hash", {b"1": b"\0{}"}
    else:
        plot.listed(partition)[path.encode()] = 1.0
    assert plot.properties() == {"deleted"}


def test_a_feed_that_does_not_end_with_the_deletion_is_caught(plot: Plot) -> None:
    path = gone(plot)
    for key, (_, entries) in plot.raw.items():
        if key.endswith("}:feed"):
            for _, fields in entries:
                if (fields[b"c"].decode(), fields[b"n"]) == (path, b"0"):
                    fields[b"k"] = b"message-added"
    assert plot.properties() == {"deleted"}


@pytest.mark.parametrize("seen", [[2], [1, 1], [1, 1_000_000]], ids=["skipped", "doubled", "invented"])
def test_a_follower_that_was_given_something_else_of_a_deleted_conversation_is_caught(
    plot: Plot, seen: list[int]
) -> None:
    path = gone(plot)
    tenant = path.partition("/")[0].replace("%2F", "/")
    begun = next(line for line in plot.each("began") if line["who"].endswith(f"tenant {tenant}"))
    plot.remove(lambda line: line["do"] == "saw" and line["path"] == path)
    lines: list[Line] = [{"do": "saw", "who": begun["who"], "path": path, "v": version, "s": 1} for version in seen]
    plot.life_of(begun).lines.extend(lines)
    assert plot.properties() == {"followed"}


def test_a_key_that_two_nodes_of_a_cluster_have_is_caught(plot: Plot) -> None:
    path = plot.longest()
    plot.raw[plot.key("ops", path)] = "on two nodes", None
    assert plot.properties() == {"keys"}
