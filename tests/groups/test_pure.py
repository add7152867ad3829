"""The rules by themselves: shares, backoff, the window, what is stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.errors import Unreadable
from eventlog.identity import LogId
from eventlog.parking import MOST_ERROR, MOST_TRACE, Failure, Parked, parked_field, parse_field
from eventlog.sharing import Backoff, share
from eventlog.store.readers import BEGINNING, Mark, Waiting
from eventlog.window import Window

numbers = st.integers(0, 1 << 53)


@given(st.integers(1, 64), st.lists(st.text(), min_size=1, max_size=80, unique=True))
def test_shares_are_fair_and_cover_every_partition(partitions: int, members: list[str]) -> None:
    shares = [share(partitions, members, member) for member in members]
    assert sum(shares) == partitions
    assert max(shares) - min(shares) <= 1
    assert shares == sorted(shares, reverse=True)


def test_one_that_is_no_member_has_no_share() -> None:
    assert share(16, ["a"], "b") == 0
    assert share(16, [], "b") == 0


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_pauses_grow_up_to_the_cap_and_spread_below_it(count: int, random: float) -> None:
    backoff = Backoff(first=0.5, factor=2.0, most=60.0, jitter=0.25)
    whole = min(0.5 * 2.0 ** min(count - 1, 60), 60.0)
    assert whole * 0.75 <= backoff.seconds(count, random) <= whole


@given(st.lists(st.integers(0, 4), max_size=30), st.randoms())
def test_the_mark_moves_past_settled_entries_only(sizes: list[int], random: object) -> None:
    window = Window(BEGINNING)
    cells = [window.add(Mark(seq, seq), size) for seq, size in enumerate(sizes, 1)]
    pending = [cell for cell, size in zip(cells, sizes, strict=True) for _ in range(size)]
    random.shuffle(pending)  # type: ignore[attr-defined]
    while True:
        mark = window.advance()
        unsettled = [cell.mark.seq for cell in cells if cell.left]
        assert mark.seq == (unsettled[0] - 1 if unsettled else len(sizes))
        assert window.left == len(pending)
        if not pending:
            break
        window.settle(pending.pop())
    assert window.mark == window.end


def test_entries_that_do_not_follow_and_events_that_are_not_there_are_refused() -> None:
    window = Window(Mark(3, 3))
    with pytest.raises(ValueError, match="does not follow"):
        window.add(Mark(5, 5), 1)
    cell = window.add(Mark(4, 4), 1)
    window.settle(cell)
    with pytest.raises(ValueError, match="0 events left"):
        window.settle(cell)


@given(st.builds(Waiting, numbers, numbers, numbers, numbers, numbers, st.integers(-1, 1 << 53), st.booleans()))
def test_what_waits_is_read_as_it_was_stored(waiting: Waiting) -> None:
    assert Waiting.parse(waiting.pack()) == waiting


@given(numbers, st.integers(0, (1 << 63) - 1))
def test_a_mark_is_read_as_it_was_stored(seq: int, stamp: int) -> None:
    assert Mark.parse(str(Mark(seq, stamp))) == Mark(seq, stamp)


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(st.builds(LogId, texts, texts), numbers, texts)
def test_a_parked_event_is_read_as_it_was_stored(log: LogId, version: int, error: str) -> None:
    parked = Parked(*log, version, 5, 3, error, "", 7, True)
    assert Parked.decode(parked.encode()) == parked
    assert parse_field(parked_field(log, version)) == (log, version)


@pytest.mark.parametrize("document", [b"", b"{}", b"[1]", b'{"tenant":"t"}', b"\xff"])
def test_a_damaged_parked_event_is_said(document: bytes) -> None:
    with pytest.raises(Unreadable):
        Parked.decode(document)


def test_errors_and_traces_are_kept_at_a_bounded_size_and_can_always_be_stored() -> None:
    try:
        raise ValueError("\ud800" + "x" * 100_000)
    except ValueError as error:
        failure = Failure.of(error)
    assert failure.error.startswith("ValueError: \\ud800xxx")
    assert (len(failure.error), len(failure.trace)) == (MOST_ERROR, MOST_TRACE)
    assert Parked("t", "c", 1, 1, 1, failure.error, failure.trace, 0, False).encode()
