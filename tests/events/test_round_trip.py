"""What is encoded is what is read back: every type, every field, known or not."""

from __future__ import annotations

import copy

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.codec import content_of, decode, encode
from eventlog.events import DATA, Draft, Event
from tests.events import strategies

AT = "2026-01-02T03:04:05.000006Z"


def test_there_is_a_strategy_for_every_type() -> None:
    assert set(strategies.DATA) == set(DATA)


@pytest.mark.parametrize("kind", sorted(DATA))
@given(data=st.data())
def test_an_event_is_read_back_as_it_was_given(kind: str, data: st.DataObject) -> None:
    draft = data.draw(strategies.drafts(kind))
    given_ = copy.deepcopy(draft)
    (document,) = encode([draft], "op", AT).documents
    assert draft == given_, "encoding changed what the caller gave"
    expected = Event(
        5, 6, kind, "op.0", draft.run, draft.call, AT, draft.actor, draft.causation, 1, draft.data, draft.meta
    )
    event = decode(5, 6, document)
    assert event == expected
    assert list(event.data) == list(draft.data)
    assert repr(event.data) == repr(draft.data), "a number changed its type"


@given(strategies.UNKNOWN_TYPE.flatmap(strategies.drafts))
def test_an_unknown_type_passes_through_whole(draft: Draft) -> None:
    (document,) = encode([draft], "op", AT).documents
    event = decode(1, 1, document)
    assert (event.type, event.data, event.meta) == (draft.type, draft.data, draft.meta)


@given(strategies.DATA["run-started"], strategies.UNKNOWN)
def test_unknown_fields_of_the_envelope_are_ignored_and_those_of_the_data_kept(
    data: dict[str, object], more: dict[str, object]
) -> None:
    (document,) = encode([Draft("run-started", data, run="r")], "op", AT).documents
    stored = {**orjson.loads(document), **more}
    assert decode(1, 1, orjson.dumps(stored)).data == data


@given(st.lists(strategies.ANY_DRAFT, min_size=1, max_size=5), strategies.ID)
def test_an_operation_numbers_its_events_and_a_retry_is_known_by_its_first(drafts: list[Draft], operation: str) -> None:
    encoded = encode(drafts, operation, AT)
    events = [decode(index + 1, 1, document) for index, document in enumerate(encoded.documents)]
    assert [event.id for event in events] == [f"{operation}.{index}" for index in range(len(drafts))]
    assert {event.operation_id for event in events} == {operation}
    assert encoded.documents[0].startswith(encoded.id_prefix)
    assert encoded.id_prefix == encode([Draft("x", {})], operation, AT).id_prefix
    assert encoded.kinds.split(",") == list(dict.fromkeys(draft.type for draft in drafts))


@given(st.lists(strategies.ANY_DRAFT, min_size=1, max_size=3), st.lists(strategies.ANY_DRAFT, min_size=1, max_size=3))
def test_the_digest_is_of_the_content_and_not_of_clock_or_id(one: list[Draft], other: list[Draft]) -> None:
    assert encode(one, "a", AT).digest == encode(one, "b", "2027-01-01T00:00:00.000000Z").digest
    same = [repr(draft) for draft in one] == [repr(draft) for draft in other]
    if not same and one != other:
        assert encode(one, "a", AT).digest != encode(other, "a", AT).digest


@given(strategies.ANY_DRAFT)
def test_the_content_of_a_stored_event_is_free_of_its_id_and_clock(draft: Draft) -> None:
    (one,) = encode([draft], "a", AT).documents
    (other,) = encode([draft], "b", "2027-01-01T00:00:00.000000Z").documents
    assert content_of(one) == content_of(other)
