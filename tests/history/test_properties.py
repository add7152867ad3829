"""The rules of history as properties of random logs, against a model and against a double of the service."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from hypothesis import event as note
from hypothesis import given
from hypothesis import strategies as st

from eventlog import EventLog
from eventlog.conversation import Conversation
from eventlog.events import Event
from eventlog.ledger import Ledger, Row
from eventlog.store.memory import MemoryStore
from projections.explain import IN_VIEW, REASONS, fates
from projections.history import build
from projections.repair import repair
from projections.view import View
from tests.history import strategies
from tests.history.model import Model, Service

CONVERSATION: Conversation = EventLog(MemoryStore(partitions=1)).tenant("t").conversation("c")


def rows(view: Sequence[Row]) -> list[tuple[int, tuple[int, ...], tuple[int, ...], int]]:
    """What the ledger's rows hold, in the model's terms; rows that hold nothing are left out."""
    return [
        (row.entered, row.inputs, tuple(item.version for item in row.outputs), row.summary)
        for row in view
        if row.versions or row.summary
    ]


def view_of(events: list[Event], **options: Any) -> View:
    return build(events, CONVERSATION, **options)


def shown(view: View) -> list[int]:
    return [version for message in view.messages for version in message.versions]


@given(strategies.logs(), st.booleans())
def test_the_ledger_agrees_with_the_model(events: list[Event], untrimmed: bool) -> None:
    ledger, model = Ledger.of(events, untrimmed=untrimmed), Model(events, untrimmed=untrimmed)
    assert rows(ledger.view) == [tuple(row) for row in model.now.rows if row.versions]
    assert [call.version for call in ledger.state.calls.open] == model.open_calls()
    assert ledger.pairs == model.now.pairs
    view = view_of(events, view="untrimmed" if untrimmed else "service")
    assert {call.version for call in view.open_calls if call.awaits_approval} == model.awaiting()
    assert sorted(view.stray_results) == sorted(model.stray_results())


@given(strategies.logs(), st.booleans())
def test_fates_agree_with_the_model(events: list[Event], untrimmed: bool) -> None:
    found = fates(events, Ledger.of(events, untrimmed=untrimmed))
    expected = Model(events, untrimmed=untrimmed).fates()
    assert {fate.version: fate.fate for fate in found} == {
        version: fate for version, fate in expected.items() if version in {one.version for one in found}
    }


@given(strategies.logs(), st.data())
def test_folding_a_prefix_putting_it_away_and_then_the_rest_is_folding_the_whole(
    events: list[Event], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(events)))
    ledger = Ledger.of(events[:cut])
    ledger = pickle.loads(pickle.dumps(ledger))
    for event in events[cut:]:
        ledger.apply(event)
    whole = Ledger.of(events)
    assert rows(ledger.view) == rows(whole.view)
    assert ledger.state == whole.state
    assert ledger.pairs == whole.pairs
    assert ledger.state.calls.open == whole.state.calls.open


@given(strategies.logs(), st.data())
def test_any_earlier_view_of_a_ledger_is_the_view_of_the_log_cut_there(
    events: list[Event], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(events)))
    assert rows(Ledger.of(events).view_at(at)) == rows(Ledger.of(events[:at]).view)


@given(strategies.logs())
def test_every_part_call_and_result_has_one_fate_and_it_says_whether_it_is_in_view(events: list[Event]) -> None:
    found = fates(events, Ledger.of(events))
    counts = {event.version: parts_of(event) for event in events if parts_of(event)}
    seen: dict[int, int] = {}
    for fate in found:
        assert fate.fate == IN_VIEW or fate.fate in REASONS
        seen[fate.version] = seen.get(fate.version, 0) + 1
    assert seen == counts
    assert [fate.version for fate in found] == sorted(fate.version for fate in found)
    visible = set(shown(view_of(events)))
    assert {fate.version for fate in found if fate.fate == IN_VIEW} == visible & set(counts)


def parts_of(event: Event) -> int:
    if event.type in ("function-call", "function-result"):
        return 1
    if event.type == "message-added":
        return len(event.data["parts"])
    if event.type == "service-call-failed":
        return len(event.data.get("partial", ()))
    if event.type == "history-compacted":
        return sum(len(message["parts"]) for message in event.data["messages"])
    return 0


@given(strategies.closed_logs())
def test_the_state_is_bounded_by_what_is_open(events: list[Event]) -> None:
    """Closed with ``close_all``; a rewind to the empty history leaves no open call, either."""
    ledger = Ledger.of(events)
    if events and ledger.state.calls.open:
        note("open calls are left")
        version = len(events) + 1
        ledger.apply(events[-1]._replace(version=version, type="history-rewound", run=None, call=None, data={"to": 0}))
    assert len(pickle.dumps(ledger.state)) < 1_500


def test_the_state_does_not_grow_with_the_number_of_events() -> None:
    sizes = []
    for turns in (10, 1_000):
        builder = strategies.Builder()
        for turn in range(turns):
            builder.do_start(turn, 0, 0)
            builder.do_message(1, 1, 1)
            builder.do_call(0, 0, 0)
            builder.do_complete(0, 3, turn)
            builder.do_result(1, 1, 0)
            builder.do_result(1, 1, 1)
            builder.do_call_completed(0, 0, 1)
            builder.do_call(0, 0, 0)
            (builder.do_commit if turn % 3 else builder.do_abort)(0, 0, 0)
        assert builder.ledger.state.calls.open == []
        sizes.append(len(pickle.dumps(builder.ledger.state)))
    assert sizes[1] - sizes[0] < 64


@given(strategies.logs())
def test_a_per_run_run_shows_all_of_its_units_or_nothing(events: list[Event]) -> None:
    per_run = {event.run for event in events if event.type == "run-started" and event.data["mode"] == "per-run"}
    committed = {event.run: event.version for event in events if event.type == "run-committed"}
    ledger = Ledger.of(events)
    for version in range(1, len(events) + 1):
        units: dict[str, list[int]] = {}
        for row in ledger.view_at(version):
            if row.unit is not None and row.unit.run in per_run:
                units.setdefault(row.unit.run, []).append(row.unit.call)
        for run, calls in units.items():
            done = [e.call for e in events if e.type == "service-call-completed" and e.run == run]
            assert committed[run] <= version
            assert calls == sorted(call for call in done if call is not None)


@given(strategies.logs(), st.data())
def test_a_rewind_gives_the_view_as_it_was(events: list[Event], data: st.DataObject) -> None:
    to = data.draw(st.integers(0, len(events)))
    rewound = Event(len(events) + 1, 1, "history-rewound", "op.0", None, None, "", None, None, 1, {"to": to}, None)
    after, was = view_of([*events, rewound]), view_of(events[:to])
    assert after.messages == was.messages
    assert [call.version for call in after.open_calls] == [call.version for call in was.open_calls]
    assert after.pairs == was.pairs
    assert after.stray_results == was.stray_results


@given(strategies.logs(), st.sampled_from(["service", "untrimmed"]))
def test_a_repaired_view_can_be_sent(events: list[Event], name: str) -> None:
    view = view_of(events, view=name)
    repaired = repair(view)
    assert all(call.run_open or call.awaits_approval for call in repaired.open_calls)
    left_alone = {call.call_id for call in repaired.open_calls}
    waiting: list[str] = []
    for message in repaired.messages:
        for part in message.parts:
            if part["type"] == "tool_call":
                waiting.append(part["id"])
            elif part["type"] == "tool_call_response":
                assert part["id"] in waiting, "a result without its call"
                waiting.remove(part["id"])
    assert set(waiting) <= left_alone
    assert len(waiting) == len(repaired.open_calls)
    assert repair(repaired) == repaired
    assert repair(view) == repaired


@given(strategies.logs(), st.integers(1, 12), st.sampled_from(["service", "untrimmed", "everything"]))
def test_the_newest_messages_are_a_whole_suffix(events: list[Event], n: int, name: str) -> None:
    whole, some = view_of(events, view=name), view_of(events, view=name, last=n)
    total, given_ = len(whole.messages), len(some.messages)
    assert some.messages == whole.messages[total - given_ :]
    assert bool(some.messages) == bool(whole.messages)
    window = some.window
    assert window is not None
    assert (window.asked, window.given) == (n, given_)
    expected = "exact" if given_ == n else "grown" if given_ > n else "shrunk"
    assert window.how == ("whole" if given_ == total and n >= total else expected)
    kept, cut = set(shown(some)), set(shown(whole)) - set(shown(some))
    if name != "everything":
        assert not any((result in kept) != (call in kept) for result, call in whole.pairs.items())
        for row in Ledger.of(events, untrimmed=name == "untrimmed").view:
            outputs = {item.version for item in row.outputs}
            assert outputs <= kept or outputs <= cut


@given(strategies.logs(proper=True, raw_edits=False))
def test_a_view_in_step_is_what_the_service_holds_and_what_is_ahead(events: list[Event]) -> None:
    service = Service()
    ledger = Ledger()
    for event in events:
        service.receive(event, ledger)
        ledger.apply(event)
    view = view_of(events)
    how = view.continuation
    if how.service is None:
        assert how.ahead == ()
        return
    held = service.memory[how.service["response"]]
    assert not set(how.ahead) & set(held), "ahead holds what the chain carried"
    references = [version for row in ledger.view for version in ((row.summary,) if row.summary else row.versions)]
    assert list(how.ahead) == [version for version in references if version in set(how.ahead)]
    if how.in_step:
        note("in step")
        assert set(held) | set(how.ahead) == set(references)


@given(strategies.logs())
def test_ahead_never_holds_what_the_chain_carried(events: list[Event]) -> None:
    """Whatever callers continued, right or wrong, as long as the view says that it is in step."""
    service = Service()
    ledger = Ledger()
    for event in events:
        service.receive(event, ledger)
        ledger.apply(event)
    how = view_of(events).continuation
    if how.in_step and how.service is not None:
        assert not set(how.ahead) & set(service.memory[how.service["response"]])


@given(strategies.logs())
def test_in_step_says_what_the_rule_says(events: list[Event]) -> None:
    in_step = view_of(events).continuation.in_step
    model = Model(events)
    begun, over, fresh = model.out_of_step()
    if any(not any(entered > cause for _, entered in fresh) for cause in begun):
        assert not in_step, "nothing has entered since that continued nothing"
    if all(any(started > cause for started, _ in fresh) for cause in over):
        assert in_step, "a call that started after every cause continued nothing, and has entered"
