"""The built-in projections take whatever a log holds, and make the same of it in whatever pieces it comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.events import DATA, Event
from projections.projection import Projection
from projections.views.directory import Directory
from projections.views.open_calls import OpenCalls
from projections.views.runs import Runs
from projections.views.usage import Usage
from tests.history import strategies
from tests.history.strategies import AT, WRONG
from tests.history.test_total import STORY
from tests.views.content import in_pieces, whole

ALL: list[Projection[Any]] = [Directory(), Runs(), OpenCalls(), Usage()]
NAMES = [projection.name for projection in ALL]
TIMES = [AT, "2026-01-01T00:00:01+14:00", "1960-01-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "", 5]
HOSTILE = ["\0", "a\0b=%00", "=", "%", "", "é" * 300, "x" * 2000, "\ud800", "\U0001f600" * 251]


def taken(events: Sequence[Event], cuts: Sequence[int] = (3, 5)) -> None:
    for projection in ALL if events else []:
        at_once = whole(projection, events)
        assert in_pieces(projection, events, cuts) == at_once
        assert in_pieces(projection, events, range(len(events))) == at_once


def numbered(events: Sequence[Event]) -> list[Event]:
    return [event._replace(version=version) for version, event in enumerate(events, 1)]


@given(strategies.logs(), st.lists(st.integers(0, 100), max_size=6))
def test_what_comes_in_pieces_gives_what_it_gives_at_once(events: list[Event], cuts: list[int]) -> None:
    taken(events, cuts)


@given(strategies.broken_logs(), st.lists(st.integers(0, 100), max_size=6))
def test_any_events_whatsoever_are_taken(events: list[Event], cuts: list[int]) -> None:
    taken(events, cuts)


@given(strategies.broken_logs(), st.lists(st.tuples(st.sampled_from(TIMES), st.sampled_from([None, *HOSTILE[:-2]]))))
def test_any_time_and_any_run_is_taken(events: list[Event], more: list[tuple[Any, str | None]]) -> None:
    changed = [event._replace(at=at, run=event.run and run) for event, (at, run) in zip(events, more, strict=False)]
    taken([*changed, *events[len(changed) :]])


@pytest.mark.parametrize(
    ("kind", "field"),
    [(kind, field) for kind, shape in DATA.items() for field in [*shape.__annotations__, "x-unknown"]],
)
def test_a_field_may_hold_anything(kind: str, field: str) -> None:
    wrong = [*WRONG, *HOSTILE, {text: text for text in HOSTILE}, [[]] * 3, {"a": {"b": [None]}}]
    if field in ("call_id", "service", "continues"):  # kept whole by the rules of history; a stored event has none such
        wrong = [value for value in wrong if "\\ud800" not in repr(value)]
    for index in [index for index, event in enumerate(STORY) if event.type == kind]:
        for value in wrong:
            event = STORY[index]
            events = [*STORY[:index], event._replace(data={**event.data, field: value}), *STORY[index + 1 :]]
            for projection in ALL:
                whole(projection, events)
        without = {name: value for name, value in STORY[index].data.items() if name != field}
        taken([*STORY[:index], STORY[index]._replace(data=without), *STORY[index + 1 :]])


@pytest.mark.parametrize("run", [None, "r1", "nobody", "\0"])
@pytest.mark.parametrize("call", [None, 1, 99])
@pytest.mark.parametrize("kind", [*DATA, "x-unknown"])
def test_any_event_may_come_alone_or_anywhere(kind: str, call: int | None, run: str | None) -> None:
    alone = Event(1, 1, kind, "op.0", run, call, AT, None, None, 1, {}, None)
    taken([alone])
    for index in (0, len(STORY) // 2, len(STORY)):
        taken(numbered([*STORY[:index], alone, *STORY[index:]]))


@pytest.mark.parametrize("missing", range(len(STORY)))
def test_any_event_may_be_missing_or_come_twice(missing: int) -> None:
    for events in (STORY[:missing] + STORY[missing + 1 :], STORY[: missing + 1] + STORY[missing:]):
        taken(numbered(events))


@pytest.mark.parametrize("projection", ALL, ids=NAMES)
def test_the_state_of_a_conversation_whose_runs_are_closed_does_not_grow(projection: Projection[Any]) -> None:
    def size(turns: int) -> int:
        events = numbered([event for turn in range(turns) for event in _turn(turn)])
        kept = whole(projection, events).kept
        assert kept is not None
        return len(kept.state)

    assert size(500) <= size(200) + 30


def _turn(number: int) -> list[Event]:
    first, run = number * 7, f"r{number}"
    shapes: list[tuple[str, dict[str, Any], int | None]] = [
        ("run-started", {"mode": "per-run", "agent": f"a{number}", "labels": {f"l{number}": "x"}}, None),
        ("message-added", {"message_id": f"m{number}", "role": "user", "parts": []}, None),
        ("service-call-started", {"sends": [first + 2], "model": "m"}, 1),
        ("message-added", {"message_id": f"o{number}", "role": "assistant", "parts": []}, 1),
        ("service-call-completed", {"usage": {f"token{number}": 1}}, 1),
        ("run-committed", {"outcome": "completed"}, None),
    ]
    events = [Event(0, 1, kind, f"{run}.0", run, call, AT, None, None, 1, data, None) for kind, data, call in shapes]
    note = Event(
        0, 1, "conversation-annotated", "n.0", None, None, AT, None, None, 1, {"labels": {f"l{number}": "y"}}, None
    )
    return [*events, note]


@pytest.mark.parametrize("wrong", [{}, [], [[]]])
def test_a_call_whose_id_is_no_text_is_taken_however_much_is_left_unsent(wrong: Any) -> None:
    shapes: list[tuple[str, dict[str, Any], str | None]] = [
        ("run-started", {}, "r"),
        ("function-call", {"message_id": "m", "call_id": wrong, "name": "f"}, None),
        *[("function-result", {"message_id": "m", "call_id": "x", "output": ""}, None)] * 300,
    ]
    events = [Event(0, 1, kind, "op.0", run, None, AT, None, None, 1, data, None) for kind, data, run in shapes]
    taken(numbered(events))
