"""What is summed of completed service calls."""

from __future__ import annotations

from projections.views.usage import SumName, Usage
from tests.views.content import whole
from tests.views.events import Story


def sums(story: Story) -> dict[str, int]:
    return dict(whole(Usage(), story.events).sums)


def test_a_completed_call_counts_for_the_day_in_utc_its_model_and_its_runs_agent() -> None:
    story = Story()
    story.starts("r", agent="weather")
    story.asks("r", 1, model="m1", usage={"input_tokens": 5, "output_tokens": 2, "cached_tokens": 1})
    story.asks("r", 2, model="m1", usage={"input_tokens": 7})
    assert sums(story) == {
        '["2026-12-02","m1","weather","service_calls"]': 2,
        '["2026-12-02","m1","weather","input_tokens"]': 12,
        '["2026-12-02","m1","weather","output_tokens"]': 2,
        '["2026-12-02","m1","weather","cached_tokens"]': 1,
    }


def test_a_time_with_an_offset_is_told_in_utc() -> None:
    story = Story()
    story.add("service-call-completed", {"model": "m"}, "r", 1, at="2026-12-02T01:00:00+02:00")
    assert sums(story) == {'["2026-12-01","m",null,"service_calls"]': 1}


def test_a_completion_without_a_model_counts_for_the_one_that_was_asked() -> None:
    story = Story()
    story.starts("r")
    story.add("service-call-started", {"sends": [], "model": "asked"}, "r", 1)
    story.add("service-call-started", {"sends": [], "model": "other"}, "r", 2)
    story.add("service-call-failed", {"error": "no", "outcome": "refused"}, "r", 2)
    story.add("service-call-completed", {}, "r", 1)
    story.add("service-call-completed", {}, "r", 2)
    assert sums(story) == {
        '["2026-12-02","asked",null,"service_calls"]': 1,
        '["2026-12-02",null,null,"service_calls"]': 1,
    }


def test_only_whole_token_numbers_from_0_on_count_and_none_for_more_than_a_limit() -> None:
    story = Story()
    wrong = {"a_tokens": True, "b_tokens": -1, "c_tokens": 1.0, "d_tokens": "5", "e_tokens": [5], "seconds": 5}
    story.add("service-call-completed", {"model": "m", "usage": {**wrong, "f_tokens": 10**15, "0_tokens": 0}}, "r", 1)
    found = {SumName.unpack(packed).field: amount for packed, amount in sums(story).items()}
    assert found == {"service_calls": 1, "f_tokens": 10**9}


def test_a_nul_in_a_name_comes_back() -> None:
    story = Story()
    story.starts("r", agent="a\0b")
    story.asks("r", 1, model='m"\0', usage={"token\0": 1})
    found = [SumName.unpack(packed) for packed in sums(story)]
    assert found == [("2026-12-02", 'm"\0', "a\0b", "service_calls"), ("2026-12-02", 'm"\0', "a\0b", "token\0")]
    assert not any("\0" in packed for packed in sums(story))


def test_the_state_holds_the_open_runs_and_calls_alone() -> None:
    story = Story()
    story.starts("one", agent="a")
    story.starts("two")
    story.asks("two", 1, model="m")
    story.add("run-committed", {"outcome": "completed"}, "one")
    kept = whole(Usage(), story.events).kept
    assert kept is not None
    assert Usage().unpack(kept.state) == {"two": {"agent": None, "models": {}}}
