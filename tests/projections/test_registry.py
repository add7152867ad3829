"""Which generations there are, which is read, which is kept, and that no number comes twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.errors import InvalidInput, Unreadable
from projections.registry import Generation, Record
from tests.events import profiles

profiles.load()


def built(*versions: int) -> Record:
    """A record with whole generations of these versions, each made live in its turn."""
    record = Record()
    for number, version in enumerate(versions, 1):
        record = record.begin(version, 1_000 * number).flip(number)
    return record


def test_a_record_without_generations_wants_one_of_any_version() -> None:
    record = Record.unpack(None)
    assert record == Record()
    assert record.wants_building(1)
    assert record.read_by(1) is None
    assert record.kept_by(1) == []


def test_a_generation_that_is_begun_is_kept_and_not_read() -> None:
    record = Record().begin(3, 5_000)
    assert record.generations == (Generation(1, 3, "building", 5_000),)
    assert record.kept_by(3) == [Generation(1, 3, "building", 5_000)]
    assert record.read_by(3) is None
    assert record.live == 0


def test_a_whole_generation_is_read_and_the_one_before_is_kept() -> None:
    record = built(1, 1)
    assert (record.live, record.before, record.last) == (2, 1, 2)
    assert record.read_by(1) == Generation(2, 1, "ready", 2_000)
    assert [one.number for one in record.kept_by(1)] == [1, 2]


def test_only_a_higher_version_builds_by_itself() -> None:
    record = built(1, 3)
    assert [record.wants_building(version) for version in (1, 2, 3, 4)] == [False, False, False, True]
    begun = record.begin(4, 9_000)
    assert not begun.wants_building(4), "it is being built"
    assert begun.wants_building(5)


def test_two_releases_side_by_side_each_read_and_keep_their_own() -> None:
    record = built(1).begin(2, 2_000)
    assert record.read_by(1) == record.generations[0]
    assert record.read_by(2) is None, "not yet whole"
    record = record.flip(2)
    assert record.read_by(1) == record.generations[0], "not live any more, and still of the older release"
    assert record.read_by(2) == record.generations[1]
    assert [one.number for one in record.kept_by(1)] == [1]
    assert [one.number for one in record.kept_by(2)] == [2]
    assert record.read_by(3) is None


def test_of_several_that_are_not_live_the_newest_whole_one_is_read() -> None:
    record = built(1, 1, 2).begin(1, 4_000)
    assert record.live == 3
    assert record.read_by(1) == record.get(2)


def test_to_flip_the_live_one_changes_nothing() -> None:
    record = built(1, 1)
    assert record.flip(2) == record


def test_to_flip_one_that_is_not_there_says_which_are() -> None:
    with pytest.raises(InvalidInput, match=r"^there is no generation 7; there are 1, 2$"):
        built(1, 1).flip(7)
    with pytest.raises(InvalidInput, match=r"^there is no generation 1; there are none$"):
        Record().flip(1)


def test_a_rollback_goes_to_the_one_before_and_another_goes_back() -> None:
    record = built(1, 2)
    assert (record.rollback().live, record.rollback().before) == (1, 2)
    assert record.rollback().rollback() == record


def test_a_rollback_to_what_is_not_kept_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^generation before the live one is not kept: there are 1; rebuild$"):
        built(1).rollback()
    with pytest.raises(InvalidInput, match=r"^generation before the live one is not kept: there are 2; rebuild$"):
        built(1, 1).without(1).rollback()
    with pytest.raises(InvalidInput, match=r"not kept: there are none; rebuild$"):
        Record().rollback()


def test_a_generation_goes_unless_it_is_live_or_not_there() -> None:
    record = built(1, 1, 1)
    assert [one.number for one in record.without(1).generations] == [2, 3]
    assert record.without(1).before == 2
    assert record.without(2).before == 0
    with pytest.raises(InvalidInput, match=r"^generation 3 is live: roll back first, or drop the whole projection$"):
        record.without(3)
    with pytest.raises(InvalidInput, match=r"^there is no generation 9; there are 1, 2, 3$"):
        record.without(9)


def test_a_number_is_never_used_again() -> None:
    record = built(1, 1).begin(1, 3_000).without(3).begin(1, 4_000)
    assert [one.number for one in record.generations] == [1, 2, 4]
    assert record.last == 4


@given(st.lists(st.tuples(st.sampled_from(["begin", "flip", "rollback", "without"]), st.integers(1, 6)), max_size=30))
def test_whatever_is_done_what_is_live_is_whole_and_there_and_numbers_only_grow(steps: list[tuple[str, int]]) -> None:
    record, given_out = Record(), list[int]()
    for step, number in steps:
        try:
            if step == "begin":
                record = record.begin(number, 1)
                given_out.append(record.generations[-1].number)
            elif step == "rollback":
                record = record.rollback()
            else:
                record = record.flip(number) if step == "flip" else record.without(number)
        except InvalidInput:
            continue
        live = record.get(record.live)
        assert record.live == 0 or (live is not None and live.state == "ready")
        assert record.before == 0 or record.get(record.before) is not None
        assert record.before == 0 or record.before != record.live
        assert Record.unpack(record.pack()) == record
        for version in range(1, 7):
            read = record.read_by(version)
            assert read is None or (read.version == version and read.state == "ready")
    assert given_out == sorted(set(given_out))


def test_it_is_stored_as_json_with_sorted_keys() -> None:
    assert built(2).pack() == b'{"before":0,"generations":[[1,2,"ready",1000]],"last":1,"live":1}'


@pytest.mark.parametrize(
    "stored", [b"", b"{", b"[]", b"7", b'{"live":1}', b'{"live":1,"before":0,"last":1,"generations":[[1]]}']
)
def test_a_record_that_does_not_hold_what_it_should_is_shown(stored: bytes) -> None:
    with pytest.raises(Unreadable, match="a projection's record does not hold what it should: b'"):
        Record.unpack(stored)
