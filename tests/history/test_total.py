"""The fold is total: whatever a log holds, reading it raises nothing."""

from __future__ import annotations

import pytest
from hypothesis import given

from eventlog.events import DATA, Event
from eventlog.ledger import Ledger
from projections.explain import fates
from projections.repair import repair
from tests.history import strategies
from tests.history.strategies import WRONG, Builder
from tests.history.test_properties import rows, view_of


def read_everything(events: list[Event]) -> None:
    for untrimmed in (False, True):
        fates(events, Ledger.of(events, untrimmed=untrimmed))
    for name in ("service", "untrimmed", "everything"):
        view = view_of(events, view=name)
        view.as_json()
        repair(view)
        view_of(events, view=name, last=2)


def whole_story() -> list[Event]:
    """A log in which every type of event has an effect or a place."""
    story = Builder()
    for mode in (0, 1):
        story.do_start(mode, 0, 0)
        story.add("run-resumed", {"by": "b", "fence": "f"}, f"r{len(story.events)}")
        story.do_message(1, 1, 2)
        story.do_call(0, 0, 0)
        story.do_complete(0, 5, 1)
        story.do_approval(0, 1, 0)
        story.do_approval(0, 0, 0)
        story.do_approval(0, 1, 0)
        story.do_result(1, 1, 0)
        story.do_call(0, 2, 0)
        story.do_complete(0, 3, 1)
        story.do_result(1, 0, 1)
        story.do_call(0, 0, 0)
        story.do_fail(0, 1, 2)
        story.do_result(0, 1, 0)
        story.do_commit(0, 0, 0)
    story.do_other(0, 0, 0)
    story.do_imported_call(1, 1, 1)
    story.do_compact_raw(8, 0, 2)
    story.do_start(1, 0, 0)
    story.do_call_completed(0, 3, 0)
    story.do_abort(0, 0, 0)
    story.do_rewind(3, 0, 0)
    return story.events


STORY = whole_story()
MISSING = object()


def test_the_story_holds_every_type() -> None:
    assert {event.type for event in STORY} == set(DATA)
    read_everything(STORY)


@pytest.mark.parametrize(
    ("kind", "field"),
    [(kind, field) for kind, shape in DATA.items() for field in [*shape.__annotations__, "x-unknown"]],
)
def test_a_field_may_hold_anything(kind: str, field: str) -> None:
    failures = []
    for index, event in enumerate(STORY):
        if event.type != kind:
            continue
        for wrong in (*WRONG, MISSING):
            data = {name: value for name, value in event.data.items() if name != field}
            if wrong is not MISSING:
                data[field] = wrong
            try:
                read_everything([*STORY[:index], event._replace(data=data), *STORY[index + 1 :]])
            except Exception as error:
                failures.append(f"version {event.version}, {field}={data.get(field, 'missing')!r}: {error!r}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("run", [None, "r1", "nobody"])
@pytest.mark.parametrize("call", [None, 1, 99])
@pytest.mark.parametrize("kind", [*DATA, "x-unknown"])
def test_any_event_may_come_alone_or_anywhere(kind: str, call: int | None, run: str | None) -> None:
    alone = Event(1, 1, kind, "op.0", run, call, strategies.AT, None, None, 1, {}, None)
    read_everything([alone])
    for index in (0, len(STORY) // 2, len(STORY)):
        events = [*STORY[:index], alone, *STORY[index:]]
        read_everything([event._replace(version=version) for version, event in enumerate(events, 1)])


@pytest.mark.parametrize("missing", range(len(STORY)))
def test_any_event_may_be_missing_or_come_twice(missing: int) -> None:
    for events in (STORY[:missing] + STORY[missing + 1 :], STORY[: missing + 1] + STORY[missing:]):
        read_everything([event._replace(version=version) for version, event in enumerate(events, 1)])


@pytest.mark.parametrize("kind", ["run-resumed", "conversation-annotated", "x-unknown", "message-removed"])
def test_what_the_rules_do_not_name_changes_nothing(kind: str) -> None:
    last = STORY[-1]
    more = last._replace(version=last.version + 1, type=kind, data={"to": 0, "through": 3, "parts": []})
    assert rows(Ledger.of([*STORY, more]).view) == rows(Ledger.of(STORY).view)


@given(strategies.broken_logs())
def test_the_fold_takes_any_events_whatsoever(events: list[Event]) -> None:
    read_everything(events)
