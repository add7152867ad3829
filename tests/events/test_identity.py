"""Ids, cursors and paths: each has one text, and no two share one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eventlog.errors import CursorInvalid, InvalidId
from eventlog.identity import Cursor, LogId, check_id, check_namespace, new_fence, new_id, new_stamp, partition_of
from eventlog.identity import tenant_path as path_of_tenant
from tests.events import profiles

profiles.load()

VERSION = st.integers(0, (1 << 53) - 1)
STAMP = st.integers(0, (1 << 63) - 1)
TAG = st.from_regex(r"[0-9a-f]{8}", fullmatch=True)
CURSOR = st.builds(Cursor, VERSION, STAMP, TAG)
HOSTILE = st.text(st.sampled_from("/:{}%~-. \n\x00a2F☂é*?[]\\"), min_size=1, max_size=6)
ANY_ID = HOSTILE | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(CURSOR)
def test_a_cursor_is_read_back_from_its_text(cursor: Cursor) -> None:
    assert Cursor.parse(str(cursor)) == cursor
    assert str(cursor).startswith(cursor.entry_id + "~")


@given(CURSOR, CURSOR)
def test_cursors_differ_in_their_text_when_they_differ(one: Cursor, other: Cursor) -> None:
    assert (str(one) == str(other)) == (one == other)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "1-2",
        "1-2~",
        "1-2~abc",
        "1-2~0123456",
        "1-2~012345678",
        "1-2~0123456G",
        "1-2~0123ABCD",
        "01-2~01234567",
        "1-02~01234567",
        "-1-2~01234567",
        "1--2~01234567",
        "+1-2~01234567",
        "1-2~01234567\n",
        "\n1-2~01234567",
        " 1-2~01234567",
        "1-2~01234567 ",
        "1-2-3~01234567",
        "1~01234567",
        "1.0-2~01234567",
        "1e3-2~01234567",
        "0x1-2~01234567",
        "1_0-2~01234567",
        "١-2~01234567",  # noqa: RUF001
        "1-²~01234567",
        "1-2~0123456７",  # noqa: RUF001
        f"1-{1 << 63}~01234567",
        f"1-{'9' * 19}~01234567",
        f"1-{'9' * 5000}~01234567",
        f"{'9' * 5000}-1~01234567",
        f"{'9' * 17}-1~01234567",
        "*-1~01234567",
        "$",
        "\x00",
        "\ud800",
        None,
        5,
        b"1-2~01234567",
        ("1", "2", "01234567"),
    ],
    ids=lambda text: ascii(text)[:40],
)
def test_hostile_text_is_no_cursor(text: Any) -> None:
    with pytest.raises(CursorInvalid):
        Cursor.parse(text)
    if isinstance(text, str):
        with pytest.raises(CursorInvalid):
            LogId("t", "c").check_cursor(text)


@given(st.text(max_size=30))
def test_text_is_a_cursor_only_when_it_is_the_text_of_one(text: str) -> None:
    try:
        cursor = Cursor.parse(text)
    except CursorInvalid:
        return
    assert str(cursor) == text


@given(ANY_ID, ANY_ID)
def test_a_path_is_read_back(tenant: str, conversation: str) -> None:
    log = LogId(tenant, conversation)
    assert LogId.of_path(log.path) == log
    assert log.path.startswith(path_of_tenant(tenant))
    assert log.path.isascii()
    assert not set(log.path) & set("{}:* \n\x00")
    assert log.path.count("/") == 1


@given(ANY_ID, ANY_ID, ANY_ID, ANY_ID)
def test_no_two_logs_share_a_path(tenant: str, conversation: str, other: str, theirs: str) -> None:
    assume((tenant, conversation) != (other, theirs))
    assert LogId(tenant, conversation).path != LogId(other, theirs).path
    if tenant != other:
        assert not LogId(other, theirs).path.startswith(path_of_tenant(tenant))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a:b", "c"), ("a", "b:c")),
        (("a/b", "c"), ("a", "b/c")),
        (("a%2Fb", "c"), ("a/b", "c")),
        (("a", "%2F"), ("a", "/")),
        (("a ", "c"), ("a", " c")),
        (("a+b", "c"), ("a b", "c")),
        (("é", "c"), ("e\u0301", "c")),
        (("A", "c"), ("a", "c")),
        (("{a}", "c"), ("a", "c")),
        (("a", "."), ("a", "..")),
    ],
)
def test_ids_that_look_alike_when_joined_stay_apart(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert LogId(*one).path != LogId(*other).path
    assert LogId(*one).tag != LogId(*other).tag


@pytest.mark.parametrize(
    ("tenant", "conversation", "partitions", "expected"),
    [
        ("acme", "c1", 16, 4),
        ("acme", "c2", 16, 9),
        ("a/b", "c:{d}", 16, 12),
        ("☂", "\n", 16, 4),
        ("acme", "c1", 1, 0),
        ("acme", "c1", 1024, 532),
    ],
)
def test_the_partition_of_a_conversation_never_changes(
    tenant: str, conversation: str, partitions: int, expected: int
) -> None:
    assert partition_of(LogId(tenant, conversation).path, partitions) == expected


@given(ANY_ID, ANY_ID, st.integers(1, 2000))
def test_a_partition_is_one_of_those_there_are(tenant: str, conversation: str, partitions: int) -> None:
    assert 0 <= partition_of(LogId(tenant, conversation).path, partitions) < partitions


def test_conversations_are_spread_over_all_partitions() -> None:
    counts = [0] * 16
    for number in range(1_600):
        counts[partition_of(LogId("acme", f"c{number}").path, 16)] += 1
    assert min(counts) > 60


@pytest.mark.parametrize("value", ["a", "x" * 1000, "é" * 500, "/:{}%", " ", "\n", "\x00", "☂"], ids=lambda v: v[:5])
def test_an_id_is_any_text_of_1_to_1000_bytes(value: str) -> None:
    assert check_id(value, "tenant") == value


@pytest.mark.parametrize(
    "value", ["", "x" * 1001, "é" * 501, "\ud800", None, 5, b"a", ["a"]], ids=lambda v: ascii(v)[:9]
)
def test_anything_else_is_no_id(value: Any) -> None:
    with pytest.raises(InvalidId, match="tenant"):
        check_id(value, "tenant")


@pytest.mark.parametrize("value", ["", "a b", "a:b", "{a}", "a\n", "é", "x" * 65])
def test_a_namespace_is_plain(value: str) -> None:
    with pytest.raises(InvalidId):
        check_namespace(value)


def test_a_cursor_of_another_log_is_refused() -> None:
    mine, theirs = LogId("t", "c"), LogId("t", "d")
    assert mine.check_cursor(str(mine.cursor(3, 4))) == mine.cursor(3, 4)
    for cursor in (theirs.cursor(3, 4), str(theirs.cursor(3, 4))):
        with pytest.raises(CursorInvalid, match="another conversation or tenant"):
            mine.check_cursor(cursor)


def test_what_is_drawn_at_random_is_fresh_and_in_range() -> None:
    stamps = {new_stamp() for _ in range(1000)}
    assert len(stamps) == 1000
    assert all(0 < stamp < 1 << 63 for stamp in stamps)
    assert len({new_id() for _ in range(1000)}) == len({new_fence() for _ in range(1000)}) == 1000
