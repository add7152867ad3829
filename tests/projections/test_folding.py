"""One conversation folded into one projection: the same wherever it was written, and what each change means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.events import Event
from eventlog.identity import LogId
from eventlog.store.memory_views import _write
from eventlog.store.views import Contents, Filed, Kept, Writing
from projections.folding import Folding, fold
from projections.projection import REFOLD, Add, Change, Drop, Projection, Push, Put, Refold, canonical, sortable
from projections.views.history import HISTORY
from tests.history.strategies import Builder, Choice, logs
from tests.projections.counting import COUNTING, wanted

LOG = LogId("t", "c")


def kept_of(projection: Projection[Any], events: Sequence[Event], cuts: Sequence[bool], *, packed: bool) -> Any:
    """What a store holds when it was written wherever ``cuts`` says, the fold put away and taken up there."""
    stored: dict[LogId, Contents] = {}
    folding = Folding(projection, LOG)

    def put_away() -> Folding[Any]:
        writing = folding.writing()
        _write(stored, writing)
        folding.written()
        assert writing.kept is not None
        return Folding(projection, LOG, writing.kept) if packed else folding

    for index, event in enumerate(events):
        if not folding.take(event):
            folding.refold(events[: index + 1])
        if cuts and cuts[index % len(cuts)]:
            folding = put_away()
    put_away()
    found = stored[LOG]
    return found.kept, found.rows, found.entries, {name: amount for name, amount in found.sums.items() if amount}


@pytest.mark.parametrize("projection", [HISTORY, COUNTING], ids=lambda one: one.name)
@given(events=logs(), cuts=st.lists(st.booleans(), max_size=9), packed=st.booleans())
def test_what_is_kept_does_not_depend_on_where_it_was_written(
    projection: Projection[Any], events: list[Event], cuts: list[bool], packed: bool
) -> None:
    at_once = fold(projection, LOG, events)
    stored: dict[LogId, Contents] = {}
    _write(stored, at_once)
    whole = stored[LOG]
    sums = {name: amount for name, amount in whole.sums.items() if amount}
    assert kept_of(projection, events, cuts, packed=packed) == (whole.kept, whole.rows, whole.entries, sums)


@given(events=logs())
def test_the_counting_projection_counts_what_is_there(events: list[Event]) -> None:
    writing, should = fold(COUNTING, LOG, events), wanted(events)
    assert [orjson.loads(row) for row in writing.rows] == should.rows
    entries = {key: (orjson.loads(one.document), one.under) for key, one in writing.entries.items() if one}
    assert entries == should.entries
    assert {name: amount for name, amount in writing.sums.items() if amount} == should.sums


class Scripted(Projection[list[int]]):
    """Each event's data tells what it changes."""

    name = "scripted"

    def initial(self) -> list[int]:
        return []

    def apply(self, state: list[int], event: Event) -> Iterable[Change]:
        state.append(event.version)
        changes: Iterable[Change] = event.data["changes"]
        return changes

    def refold(self, events: Sequence[Event]) -> tuple[list[int], Iterable[Change]]:
        return [-event.version for event in events], [Push("anew"), Put("k", 1, {}), Add("n", 5)]


SCRIPTED = Scripted()


def does(version: int, *changes: Change) -> Event:
    at = "2026-01-01T00:00:00.000000Z"
    return Event(version, version, "x", "o.0", None, None, at, None, None, 1, {"changes": changes}, None)


def folded(*steps: Sequence[Change], kept: Kept | None = None) -> Writing:
    folding = Folding(SCRIPTED, LOG, kept)
    for version, changes in enumerate(steps, folding.cursor.version + 1):
        event = does(version, *changes)
        if not folding.take(event):
            folding.refold([does(one) for one in range(1, version + 1)])
    return folding.writing()


KEPT = Kept(LOG.cursor(3, 3), b"[1,2,3]")


def test_a_fold_begins_before_the_first_event_and_is_fresh() -> None:
    assert Folding(SCRIPTED, LOG).writing() == Writing(LOG, Kept(LOG.cursor(0, 0), b"[]"), fresh=True)


def test_a_fold_that_goes_on_writes_only_what_is_new() -> None:
    writing = folded([Push("row"), Add("n", 2)], [Add("n", -1)], kept=KEPT)
    assert writing == Writing(LOG, Kept(LOG.cursor(5, 5), b"[1,2,3,4,5]"), False, [b'"row"'], {}, {"n": 1})


def test_the_last_document_under_a_key_counts() -> None:
    writing = folded([Put("k", 1, {"a": "x"})], [Put("k", {"b": 2, "a": 1}, {"b": "y"})])
    assert writing.entries == {"k": Filed(b'{"a":1,"b":2}', {"b": "y"})}


def test_to_drop_what_may_be_kept_is_written_and_what_never_was_is_not() -> None:
    assert folded([Drop("k")], kept=KEPT).entries == {"k": None}
    assert folded([Put("k", 1, {})], [Drop("k")], kept=KEPT).entries == {"k": None}
    assert folded([Put("k", 1, {})], [Drop("k")]).entries == {}
    assert folded([Drop("k")], [Put("k", 1, {})]).entries == {"k": Filed(b"1", {})}


def test_a_refold_begins_anew_and_what_came_before_it_does_not_count() -> None:
    writing = folded([Push("old"), Put("old", 1, {}), Add("n", 1)], [Push("lost"), Refold()], [Add("n", 1)], kept=KEPT)
    assert writing.fresh
    assert writing.rows == [b'"anew"']
    assert writing.entries == {"k": Filed(b"1", {})}
    assert writing.sums == {"n": 6}
    assert writing.kept == Kept(LOG.cursor(6, 6), b"[-1,-2,-3,-4,-5,6]")


def test_after_it_was_written_changes_count_anew() -> None:
    folding = Folding(SCRIPTED, LOG)
    folding.take(does(1, Push("row"), Add("n", 1), Put("k", 1, {})))
    assert folding.weight > 0
    folding.written()
    assert folding.weight == 0
    assert folding.writing() == Writing(LOG, Kept(LOG.cursor(1, 1), b"[1]"), fresh=False)


def test_an_event_that_cannot_be_applied_leaves_the_cursor_where_it_was() -> None:
    folding = Folding(SCRIPTED, LOG, KEPT)
    with pytest.raises(TypeError, match="Type is not JSON serializable: object"):
        folding.take(does(4, Push(object())))  # type: ignore[arg-type]
    assert folding.cursor == KEPT.cursor


def test_a_projection_that_asks_for_a_refold_must_have_one() -> None:
    class Without(Scripted):
        name = "without"
        refold = Projection.refold

    with pytest.raises(NotImplementedError, match="projection 'without' gives REFOLD and has no refold"):
        fold(Without(), LOG, [does(1, *REFOLD)])


def test_equal_values_are_kept_as_equal_bytes() -> None:
    assert canonical({"b": 1, "a": (1, Add("n", 2))}) == b'{"a":[1,["n",2]],"b":1}'
    with pytest.raises(TypeError, match="Type is not JSON serializable: set"):
        canonical({1})


@given(st.integers(-(2**60), 2**60), st.integers(-(2**60), 2**60))
def test_times_as_text_sort_as_the_times_do(one: int, other: int) -> None:
    clamped = [min(max(time, 0), 10**15 - 1) for time in (one, other)]
    assert (sortable(one) < sortable(other)) == (clamped[0] < clamped[1])
    assert len(sortable(one)) == 15


def test_a_long_log_is_kept_the_same_in_pieces_of_any_size() -> None:
    builder = Builder()
    for number in range(400):
        builder.build([Choice(("start", "message", "call_completed", "result", "commit")[number % 5], 1, number, 1)])
    for every in (1, 7, 64):
        cuts = [index % every == 0 for index in range(every)]
        assert kept_of(HISTORY, builder.events, cuts, packed=True) == kept_of(HISTORY, builder.events, [], packed=False)
