"""What is told of a run, from its start to its end."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given

from eventlog.events import Event
from eventlog.fold import State
from projections.views.runs import Runs
from tests.history import strategies
from tests.views.content import whole
from tests.views.events import Story, ms


def documents(story: Story) -> dict[str, dict[str, Any]]:
    return {found["run"]: found for found in whole(Runs(), story.events).documents("started")}


@given(strategies.logs())
def test_the_states_agree_with_the_events(events: list[Event]) -> None:
    content = whole(Runs(), events)
    ends = {
        event.run: event.type.removeprefix("run-") for event in events if event.type in ("run-committed", "run-aborted")
    }
    starts = [event.run for event in events if event.type == "run-started"]
    assert {found["run"]: found["state"] for found in content.documents()} == {
        run: ends.get(run, "open") for run in starts
    }
    fold = State()
    for event in events:
        fold.apply(event)
    assert {found["run"] for found in content.documents("state:open")} == set(fold.runs)
    completed = Counter(event.run for event in events if event.type == "service-call-completed")
    failed = Counter(event.run for event in events if event.type == "service-call-failed")
    for found in content.documents():
        assert (found["completed"], found["failed"]) == (completed[found["run"]], failed[found["run"]])


def test_a_run_tells_its_start_its_calls_and_its_commit() -> None:
    story = Story()
    parent = {"conversation": "p", "run": "q"}
    story.starts("r", "per-run", agent="weather", labels={"k": "v"}, parent=parent)
    story.asks("r", 1, usage={"input_tokens": 5, "output_tokens": 2, "requests": 1, "cost": 0.5})
    story.add("service-call-failed", {"error": "no", "outcome": "refused"}, "r", 2)
    story.add("run-resumed", {"by": "b", "fence": "f"}, "r")
    story.asks("r", 3, usage={"input_tokens": 7, "output_tokens": True, "cached_tokens": -1, "total_tokens": 1.5})
    open_run = documents(story)["r"]
    assert (open_run["state"], open_run["ended_ms"], open_run["duration_ms"]) == ("open", None, None)
    story.add("run-committed", {"outcome": "max-iterations", "usage": {"input_tokens": 99}}, "r")
    assert documents(story)["r"] == {
        "run": "r",
        "version": 1,
        "state": "committed",
        "mode": "per-run",
        "agent": "weather",
        "labels": {"k": "v"},
        "parent": parent,
        "started_ms": ms(0),
        "ended_ms": ms(7),
        "duration_ms": 7000,
        "completed": 2,
        "failed": 1,
        "usage": {"input_tokens": 12, "output_tokens": 2},
        "run_usage": {"input_tokens": 99},
        "outcome": "max-iterations",
        "reason": None,
        "error": None,
        "resumed": 1,
    }
    (filed,) = whole(Runs(), story.events).entries.values()
    assert filed.under == dict.fromkeys(["started", "state:committed", "agent:weather"], f"{ms(0):015d}.000000000001")


def test_a_superseded_run_is_the_one_that_ends() -> None:
    story = Story()
    story.starts("one")
    story.add("run-aborted", {"reason": "superseded"}, "one")
    story.add("run-started", {"mode": "per-run"}, "two", same=True)
    found = documents(story)
    assert (found["one"]["state"], found["one"]["reason"], found["two"]["state"]) == ("aborted", "superseded", "open")
    assert [run["run"] for run in whole(Runs(), story.events).documents("state:open")] == ["two"]


def test_what_comes_after_its_end_changes_a_run_no_more() -> None:
    story = Story()
    story.starts("r")
    story.add("run-aborted", {"reason": "failed", "error": "x" * 5000}, "r")
    before = documents(story)
    assert before["r"]["error"] == "x" * 1000
    story.add("run-resumed", {"by": "b", "fence": "f"}, "r")
    story.asks("r", 1)
    assert documents(story) == before


def test_a_run_never_ends_before_it_started() -> None:
    story = Story()
    story.starts("r")
    story.add("run-committed", {"outcome": "completed"}, "r", at="2020-01-01T00:00:00Z")
    assert (documents(story)["r"]["ended_ms"], documents(story)["r"]["duration_ms"]) == (ms(0), 0)


def test_the_state_holds_the_open_runs_alone() -> None:
    story = Story()
    story.starts("one")
    story.starts("two")
    story.add("run-committed", {"outcome": "completed"}, "one")
    kept = whole(Runs(), story.events).kept
    assert kept is not None
    assert list(Runs().unpack(kept.state)) == ["two"]


def test_runs_whose_ids_hold_a_nul_stay_apart() -> None:
    story = Story()
    for run in ("a\0", "a%00", "a"):
        story.starts(run)
    assert documents(story).keys() == {"a\0", "a%00", "a"}
    assert not any("\0" in key for key in whole(Runs(), story.events).entries)


def test_runs_that_began_in_one_moment_are_sorted_as_they_were_started() -> None:
    story = Story()
    for run in ("b", "c", "a"):
        story.starts(run, at="2026-12-01T00:00:00Z")
    assert list(documents(story)) == ["b", "c", "a"]
