"""What the directory tells of a conversation."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eventlog.events import Event
from projections.transcript import transcript
from projections.views.directory import Directory
from projections.views.fields import agent_index, label_index
from tests.history import strategies
from tests.views.content import LOG, whole
from tests.views.events import Story, ms

SPOKEN = ("message-added", "function-call", "function-result")


def document(story: Story) -> dict[str, Any]:
    (found,) = whole(Directory(), story.events).documents()
    return found


def indexes(story: Story) -> dict[str, str]:
    (filed,) = whole(Directory(), story.events).entries.values()
    return filed.under


@given(strategies.logs() | strategies.broken_logs())
def test_it_counts_the_messages_that_the_transcript_shows(events: list[Event]) -> None:
    kinds = {event.version: event.type for event in events}
    spoken = [message for message in transcript(events, LOG.tag) if kinds[message.versions[0]] in SPOKEN]
    said = [
        "".join(
            text for part in message.parts if part.get("type") == "text" and type(text := part.get("content")) is str
        )
        for message in spoken
        if message.role == "user" and kinds[message.versions[0]] == "message-added"
    ]
    said = [text for text in said if text]
    documents = whole(Directory(), events).documents()
    assert len(documents) == min(len(events), 1)
    for found in documents:
        assert found["messages"] == len(spoken)
        assert found["first_text"] == (said[0][:250] if said else None)
        assert found["last_text"] == (said[-1][:250] if said else None)
        assert found["runs"] == sum(event.type == "run-started" for event in events)


def test_a_message_in_several_events_is_one_whose_text_is_joined_and_cut() -> None:
    story = Story()
    story.says("Hello", "a")
    story.calls("c")
    story.says("ä" * 200, "b")
    story.add("service-call-started", {"sends": []}, "r", 1)
    story.says("ö" * 100, "b")
    found = document(story)
    assert (found["messages"], found["first_text"]) == (3, "Hello")
    assert found["last_text"] == "ä" * 200 + "ö" * 50


def test_the_first_text_grows_while_its_message_does_and_no_longer() -> None:
    story = Story()
    story.says("", "image")
    story.says("one ", "a")
    story.says("two", "a")
    story.says("three", "b")
    story.says("four", "a")
    found = document(story)
    assert (found["messages"], found["first_text"], found["last_text"]) == (4, "one two", "four")


def test_another_event_between_ends_a_message() -> None:
    story = Story()
    story.says("one", "a")
    story.add("x-unknown")
    story.says("two", "a")
    assert document(story)["messages"] == 2


def test_the_newest_title_and_the_newest_value_of_each_label_stand() -> None:
    story = Story()
    story.add("conversation-annotated", {"title": "Old", "labels": {"team": "red", "stage": "new"}})
    story.add("conversation-annotated", {"labels": {"team": "blue"}})
    assert document(story)["title"] == "Old"
    story.add("conversation-annotated", {"title": "New"})
    story.add("conversation-annotated", {"title": 5, "labels": ["x"]})
    found = document(story)
    assert (found["title"], found["labels"]) == ("New", {"team": "blue", "stage": "new"})
    assert indexes(story).keys() == {"activity", "label:team=blue", "label:stage=new"}
    story.add("conversation-annotated", {"title": None})
    assert document(story)["title"] is None


def test_the_labels_of_a_run_are_not_the_conversations() -> None:
    story = Story()
    story.starts("r", labels={"import": "x"}, agent="weather")
    found = document(story)
    assert (found["labels"], found["agents"], found["runs"]) == ({}, ["weather"], 1)
    assert indexes(story).keys() == {"activity", "agent:weather"}


def test_twenty_agents_are_told_and_fifty_labels_those_set_last() -> None:
    story = Story()
    for number in range(25):
        story.starts(f"r{number}", agent=f"a{number}")
    for number in range(60):
        story.add("conversation-annotated", {"labels": {f"l{number}": "v"}})
    story.add("conversation-annotated", {"labels": {"l10": "again"}})
    found = document(story)
    assert found["agents"] == [f"a{number}" for number in range(20)]
    assert found["labels"] == {f"l{number}": "v" for number in range(11, 60)} | {"l10": "again"}


def test_time_never_goes_backwards() -> None:
    story = Story()
    story.says("one")
    story.says("two")
    story.says("three", at="2026-01-01T00:00:00.000000Z")
    story.says("four", at="no time")
    found = document(story)
    assert (found["created_ms"], found["active_ms"]) == (ms(0), ms(1))
    assert set(indexes(story).values()) == {f"{ms(1):015d}"}


def test_an_append_without_anything_new_changes_nothing() -> None:
    story = Story()
    story.says("one", "a")
    story.add("message-added", {"message_id": "a", "role": "user", "parts": []}, same=True)
    projection = Directory()
    state = projection.initial()
    assert [len(list(projection.apply(state, event))) for event in story.events] == [1, 0]


@given(st.tuples(st.text(max_size=3), st.text(max_size=3)), st.tuples(st.text(max_size=3), st.text(max_size=3)))
def test_different_labels_have_different_indexes(one: tuple[str, str], two: tuple[str, str]) -> None:
    assert (label_index(*one) == label_index(*two)) == (one == two)
    assert "\0" not in label_index(*one) + agent_index(one[0])
    assert (agent_index(one[0]) == agent_index(two[0])) == (one[0] == two[0])
