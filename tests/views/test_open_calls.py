"""Which function calls are open, and what is told of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from eventlog.carry import recorded_results
from eventlog.events import Event
from eventlog.ledger import Ledger
from projections.views.open_calls import OpenCalls
from tests.history import strategies
from tests.views.content import Content, whole
from tests.views.events import Story, ms


def content(story: Story) -> Content:
    return whole(OpenCalls(), story.events)


def versions(story: Story, index: str | None = None) -> list[int]:
    return [found["version"] for found in content(story).documents(index)]


def only(story: Story) -> dict[str, Any]:
    (found,) = content(story).documents()
    return found


def committed(events: list[Event], ledger: Ledger) -> set[int]:
    """The calls that come to stand open in the view when one of the open per-run runs is committed next."""
    last, found = events[-1], set[int]()
    before = {call.version for call in ledger.state.calls.open}
    for run in ledger.state.runs:
        end = last._replace(version=last.version + 1, type="run-committed", run=run, call=None, data={})
        found |= {call.version for call in Ledger.of([*events, end]).state.calls.open} - before
    return found


@given(strategies.logs())
def test_it_tells_what_the_ledger_of_the_whole_log_tells(events: list[Event]) -> None:
    ledger = Ledger.of(events)
    found = whole(OpenCalls(), events).documents()
    opened = {call.version: call for call in ledger.state.calls.open}
    pending = committed(events, ledger) if events else set()
    assert {document["version"] for document in found} == opened.keys() | pending
    results = {call: result.version for call, result in recorded_results(ledger).items()}
    for document in found:
        version, event = document["version"], events[document["version"] - 1]
        assert (document["call_id"], document["name"]) == (event.data["call_id"], event.data["name"])
        assert (document["run"], document["in_open_run"]) == (event.run, event.run in ledger.state.runs)
        assert (document["awaits_since_ms"] is not None) == (version in ledger.state.awaiting)
        if version in opened:
            assert document["result"] == results.get(version)


@given(strategies.logs())
def test_the_indexes_hold_what_they_say(events: list[Event]) -> None:
    found = whole(OpenCalls(), events)
    everything = found.documents()

    def of(index: str) -> list[int]:
        return sorted(document["version"] for document in found.documents(index))

    def where(chosen: list[dict[str, Any]]) -> list[int]:
        return sorted(document["version"] for document in chosen)

    waiting = [document for document in everything if document["awaits_since_ms"] is not None]
    assert of("approval") == where(waiting)
    assert of("since") == where([one for one in everything if one["result"] is None or one in waiting])
    assert of("open-run") == where([one for one in everything if one["in_open_run"]])
    assert of("finished-run") == where([one for one in everything if not one["in_open_run"]])


def test_a_call_is_open_from_the_completion_until_a_service_call_carries_its_result() -> None:
    story = Story()
    story.starts("r", agent="weather")
    (call,) = story.asks("r", 1, "a")
    assert only(story) == {
        "version": call,
        "call_id": "a",
        "name": "tool-a",
        "run": "r",
        "agent": "weather",
        "in_open_run": True,
        "since_ms": ms(2),
        "result": None,
        "awaits_since_ms": None,
    }
    assert versions(story, "since") == versions(story, "open-run") == [call]
    result = story.returns("a", call, "r")
    assert only(story)["result"] == result
    assert (versions(story, "since"), versions(story, "open-run")) == ([], [call])
    story.asks("r", 2, sends=(result,))
    assert versions(story) == []


def test_output_of_a_call_that_has_not_completed_is_not_open() -> None:
    story = Story()
    story.starts("r")
    story.add("service-call-started", {"sends": []}, "r", 1)
    story.calls("a", "r", 1)
    assert versions(story) == []
    story.add("service-call-failed", {"error": "no", "outcome": "unknown"}, "r", 1)
    assert versions(story) == []


def test_the_end_of_its_run_moves_a_call_to_the_finished_ones() -> None:
    story = Story()
    story.starts("r", agent="weather")
    (call,) = story.asks("r", 1, "a")
    story.add("run-aborted", {"reason": "failed"}, "r")
    assert (versions(story, "open-run"), versions(story, "finished-run")) == ([], [call])
    assert (only(story)["agent"], only(story)["in_open_run"]) == ("weather", False)


def test_the_calls_of_an_open_per_run_run_are_told_before_they_enter() -> None:
    story = Story()
    story.starts("r", "per-run")
    one, two = story.asks("r", 1, "a", "b")
    result = story.returns("a", one, "r")
    assert [(found["version"], found["result"]) for found in content(story).documents()] == [(one, result), (two, None)]
    assert versions(story, "since") == [two]
    story.asks("r", 2, sends=(result,))
    assert versions(story) == [two]
    story.add("run-committed", {"outcome": "completed"}, "r")
    assert versions(story, "finished-run") == [two]


def test_an_aborted_per_run_run_leaves_no_open_call() -> None:
    story = Story()
    story.starts("r", "per-run")
    story.asks("r", 1, "a")
    story.add("run-aborted", {"reason": "failed"}, "r")
    assert content(story).entries == {}


def test_a_bare_result_of_another_run_is_not_that_of_a_call_yet_to_enter() -> None:
    story = Story()
    story.starts("r", "per-run")
    story.starts("other", exclusive=False)
    (call,) = story.asks("r", 1, "a")
    story.returns("a", None, "other")
    assert [(found["version"], found["result"]) for found in content(story).documents()] == [(call, None)]
    result = story.returns("a", None, "r")
    assert only(story)["result"] == result


def test_a_call_waits_for_approval_from_the_request_to_the_decision() -> None:
    story = Story()
    story.starts("r")
    one, two = story.asks("r", 1, "a", "b")
    story.add("approval-requested", {"function_call": two})
    story.add("approval-requested", {"function_call": one})
    assert versions(story, "approval") == [two, one]
    assert [found["awaits_since_ms"] for found in content(story).documents("approval")] == [ms(5), ms(6)]
    story.returns("a", one, "r")
    assert versions(story, "since") == [one, two]
    story.add("approval-resolved", {"function_call": one, "decision": "approved"})
    assert (versions(story, "approval"), versions(story, "since")) == ([two], [two])


def test_a_rewind_opens_a_call_again_as_it_was() -> None:
    story = Story()
    story.starts("r", agent="weather")
    (call,) = story.asks("r", 1, "a")
    story.add("approval-requested", {"function_call": call})
    before = only(story)
    to = len(story.events)
    result = story.returns("a", call, "r")
    story.asks("r", 2, sends=(result,))
    story.add("run-committed", {"outcome": "completed"}, "r")
    assert versions(story) == []
    story.add("history-rewound", {"to": to})
    assert only(story) == {**before, "in_open_run": False, "result": result}


def test_a_call_that_was_posted_long_before_it_was_sent_is_told_when_it_enters() -> None:
    story = Story()
    story.starts("r")
    call = story.calls("a", "r")
    for number in range(600):
        story.says(f"{number}", run="r")
    assert versions(story) == []
    story.asks("r", 1, sends=(call,))
    assert (only(story)["version"], only(story)["since_ms"]) == (call, ms(1))


def test_a_call_posted_outside_any_run_is_of_no_open_run() -> None:
    story = Story()
    call = story.calls("a\0")
    assert versions(story, "finished-run") == [call]
    assert (only(story)["run"], only(story)["call_id"]) == (None, "a\0")


def test_the_calls_of_one_reply_are_sorted_as_they_stand_in_it() -> None:
    story = Story()
    at = "2026-12-01T00:00:00Z"
    for number in range(12):
        data = {"message_id": "m", "call_id": f"c{number}", "name": "f"}
        story.add("function-call", data, at=at)
    assert versions(story, "since") == list(range(1, 13))
