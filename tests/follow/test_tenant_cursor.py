"""The cursor of a tenant: one text for each, and nothing else is one."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog import CursorInvalid, TenantCursor
from eventlog.tenant_cursor import Position, Within, check_tenant_cursor, tenant_tag

NUMBERS = st.integers(1, (1 << 63) - 1)
POSITIONS = st.just(Position(0, 0)) | st.builds(Position, NUMBERS, NUMBERS)


@st.composite
def cursors(draw: st.DrawFn, tenant: str = "t") -> TenantCursor:
    positions = tuple(draw(st.lists(POSITIONS, min_size=1, max_size=20)))
    passed = [number for number, position in enumerate(positions) if position.seq]
    within = st.none() | st.builds(Within, st.sampled_from(passed), NUMBERS) if passed else st.none()
    return TenantCursor(tenant_tag(tenant), positions, draw(within))


@given(cursors())
def test_it_comes_back_from_its_text(cursor: TenantCursor) -> None:
    assert TenantCursor.parse(str(cursor)) == cursor


@given(cursors(), st.data())
def test_a_text_with_one_character_changed_is_refused_or_another_cursor_with_this_very_text(
    cursor: TenantCursor, data: st.DataObject
) -> None:
    text = str(cursor)
    index = data.draw(st.integers(0, len(text) - 1))
    changed = text[:index] + data.draw(st.sampled_from("tAB-_=x9 .\n")) + text[index + 1 :]
    try:
        parsed = TenantCursor.parse(changed)
    except CursorInvalid:
        return
    assert str(parsed) == changed


@given(st.binary(max_size=60))
def test_any_other_bytes_are_refused_or_have_one_text(packed: bytes) -> None:
    text = "t1." + urlsafe_b64encode(packed).decode().rstrip("=")
    with suppress(CursorInvalid):
        assert str(TenantCursor.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "t1.", "t2.AAAAAAAA", "start", "1-1~00000000", "t1.AAAAAAAA\n", "t1.ÄAAAAAAA", "t1." + "A" * 9]
)
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(CursorInvalid):
        TenantCursor.parse(text)


@given(cursors())
def test_one_cut_short_is_refused_or_another_cursor_of_fewer_numbers(cursor: TenantCursor) -> None:
    text = str(cursor)
    for length in range(len(text)):
        try:
            assert len(TenantCursor.parse(text[:length]).positions) == len(cursor.positions)
        except CursorInvalid:
            continue


@given(cursors())
def test_one_of_another_tenant_or_another_number_of_partitions_is_refused(cursor: TenantCursor) -> None:
    count = len(cursor.positions)
    assert check_tenant_cursor("t", count, str(cursor)) == cursor
    for tenant, partitions in (("u", count), ("t", count + 1)):
        with pytest.raises(CursorInvalid):
            check_tenant_cursor(tenant, partitions, cursor)


@given(cursors())
def test_one_that_was_put_together_by_hand_is_checked_like_a_text(cursor: TenantCursor) -> None:
    broken = cursor._replace(within=Within(len(cursor.positions), 1))
    with pytest.raises(CursorInvalid):
        check_tenant_cursor("t", len(cursor.positions), broken)


def test_it_is_short() -> None:
    positions = tuple(Position(10**6, (1 << 62) + number) for number in range(16))
    assert len(str(TenantCursor(tenant_tag("t"), positions))) < 300
