from __future__ import annotations

import pytest

from benchmarks.ratio import ratio


def test_the_ratio_is_the_median_of_the_rounds_and_not_the_ratio_of_the_medians() -> None:
    row = ratio("work, µs", {"ours": [10, 30, 20], "theirs": [10, 10, 40]}, "ours", "theirs")
    assert row.ratio == 1.0
    assert row.spread == (0.5, 3.0)
    assert row.median == 20


@pytest.mark.parametrize(("at_most", "met"), [(1.99, False), (2.0, True), (2.5, True)])
def test_at_most_is_met_up_to_the_target_itself(at_most: float, met: bool) -> None:
    row = ratio("work, µs", {"ours": [20], "theirs": [10]}, "ours", "theirs", at_most=at_most)
    assert (row.target, row.met) == (f"≤ {at_most:g}", met)


@pytest.mark.parametrize(("at_least", "met"), [(0.4, True), (0.5, True), (0.6, False)])
def test_at_least_is_met_from_the_target_itself(at_least: float, met: bool) -> None:
    row = ratio("work, /s", {"ours": [5], "theirs": [10]}, "ours", "theirs", at_least=at_least)
    assert (row.target, row.met) == (f"≥ {at_least:g}", met)


def test_times_as_fast_turns_the_ratio_round_and_keeps_the_median() -> None:
    found = {"ours": [10, 20, 10], "theirs": [400, 820, 390]}
    row = ratio("work, µs", found, "ours", "theirs", at_least=40, times_as_fast=True)
    assert row.ratio == 40
    assert row.met is True
    assert row.spread == (39, 41)
    assert row.median == 10


def test_without_a_target_nothing_is_met_or_missed() -> None:
    row = ratio("work, µs", {"ours": [1], "theirs": [1]}, "ours", "theirs")
    assert (row.target, row.met) == ("", None)


def test_a_row_has_one_target() -> None:
    with pytest.raises(ValueError, match="at_most=1 and at_least=2: a row has one target"):
        ratio("work", {"ours": [1], "theirs": [1]}, "ours", "theirs", at_most=1, at_least=2)


@pytest.mark.parametrize(("ours", "theirs"), [([], []), ([1.0, 2.0], [1.0])])
def test_contenders_that_were_not_measured_together_have_no_ratio(ours: list[float], theirs: list[float]) -> None:
    with pytest.raises(ValueError, match=f"ours has {len(ours)} rounds, theirs has {len(theirs)}: measure them"):
        ratio("work", {"ours": ours, "theirs": theirs}, "ours", "theirs")
