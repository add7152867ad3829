"""The fold in bounded memory gives what the ledger of the whole log gives, wherever it is put down."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eventlog.carry import recorded_results
from eventlog.events import Event
from eventlog.ledger import Ledger
from projections.continuation import continuation, continue_from
from projections.reference import Reference, reference_of
from projections.standing import Standing
from tests.history.strategies import Builder, logs

EDITS = {"history-rewound", "history-compacted"}


def agree(standing: Standing, rows: list[Reference], ledger: Ledger) -> None:
    state, whole = standing.state, ledger.state
    assert [row for row in rows if row.versions] == [row for row in map(reference_of, ledger.view) if row.versions]
    assert state.calls == whole.calls
    assert (state.awaiting, state.in_step, state.doubtful) == (whole.awaiting, whole.in_step, whole.doubtful)
    assert standing.strays == ledger.stray_results()
    assert recorded_results(standing) == recorded_results(ledger)
    if standing.chain is not None:
        assert continue_from(state, standing.chain) == continuation(ledger)


def walk(events: list[Event], put_down: list[bool], *, every: int = 1) -> int:
    """Compare after each event; return how often the whole log had to be asked."""
    standing, rows, ledger, asked = Standing(), list[Reference](), Ledger(), 0
    for index, event in enumerate(events):
        if put_down and put_down[index % len(put_down)]:
            packed = standing.pack()
            standing = Standing.unpack(packed)
            assert standing.pack() == packed
        entered = standing.apply(event)
        if entered is None:
            standing, rows = Standing.of(events[: index + 1])
            asked += event.type not in EDITS
        else:
            rows += entered
        ledger.apply(event)
        if index % every == 0 or event is events[-1]:
            agree(standing, rows, ledger)
    return asked


@given(logs(), st.lists(st.booleans(), max_size=7))
def test_it_agrees_with_the_ledger_after_every_event(events: list[Event], put_down: list[bool]) -> None:
    assert walk(events, put_down) == 0, "a short log needs no second look, save after an edit"


@given(logs())
def test_what_is_kept_does_not_depend_on_where_it_was_put_down(events: list[Event]) -> None:
    def kept(*, put_down: bool) -> bytes:
        standing = Standing()
        for index, event in enumerate(events):
            if put_down:
                standing = Standing.unpack(standing.pack())
            if standing.apply(event) is None:
                standing, _ = Standing.of(events[: index + 1])
        return standing.pack()

    assert kept(put_down=True) == kept(put_down=False)


@given(logs())
def test_references_pack_and_unpack(events: list[Event]) -> None:
    for row in map(reference_of, Ledger.of(events).view):
        assert Reference.unpack(row.pack()) == row


def test_much_that_was_never_sent_is_let_go_and_the_whole_log_is_asked() -> None:
    builder = Builder()
    for _ in range(3):
        builder.do_start(0, 0, 0)
        for _ in range(150):
            builder.do_message(1, 1, 0)
        builder.do_abort(0, 0, 0)
    builder.do_start(0, 0, 0)
    old, new = 5, 400
    for sent in (new, old):
        started = builder.add(
            "service-call-started", {"sends": [sent], "continues": None}, next(iter(builder.runs)), sent
        )
        assert started
        builder.add("service-call-completed", {"finish_reason": "stop"}, next(iter(builder.runs)), sent)
    assert walk(builder.events, [True], every=50) == 1, "the old one is looked up, the new one is known"
