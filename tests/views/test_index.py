"""Pages over an index, merged over the partitions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog import CursorInvalid, EventLog, InvalidInput, user
from eventlog.errors import ViewMissing
from eventlog.events import Draft
from eventlog.identity import LogId
from eventlog.store.memory import MemoryStore
from eventlog.store.memory_readers import MemoryReaders
from eventlog.store.memory_views import MemoryViews
from eventlog.store.views import Found, ViewId
from projections.index import Fetch, how_far, page, walk
from projections.page import AsOf, Index, Page, cut
from projections.views.directory import ACTIVITY, Directory
from tests.events import profiles
from tests.views.building import build, catch_up

profiles.load()
pytestmark = pytest.mark.anyio

WHICH = Index("p", "t", "i")
NOW = AsOf(0, 0)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LOG = LogId("t", "c")


def line(member: str, document: bytes | None = b"{}") -> Found:
    return Found(member, LOG, "k", document)


class Source:
    """A partition's lines, and what was asked of it."""

    def __init__(self, members: list[str], gone: set[str] | None = None) -> None:
        self.members = sorted(members)
        self.gone = gone or set()
        self.asked: list[int] = []

    async def __call__(self, count: int, after: str | None, reverse: bool) -> list[Found]:
        self.asked.append(count)
        members = self.members
        if reverse:
            members = members[: len(members) if after is None else bisect_left(members, after)][::-1]
        elif after is not None:
            members = members[bisect_right(members, after) :]
        return [line(member, None if member in self.gone else b"{}") for member in members[:count]]


def everything(found: Found) -> str | None:
    return found.member


async def turned(
    sources: list[Source],
    limit: int,
    *,
    read: Callable[[Found], str | None] = everything,
    reverse: bool = False,
    after: str | None = None,
    before: str | None = None,
) -> Page[str]:
    cursor = after or before
    start = None if cursor is None else WHICH.place(cursor)
    fetches: list[Fetch] = list(sources)
    found = await walk(fetches, read, limit, start, reverse=reverse != (before is not None))
    return cut(found, WHICH, limit, NOW, after=after is not None, before=before is not None)


MEMBERS = st.sets(st.text(min_size=1, max_size=3), max_size=30)


@given(MEMBERS, st.integers(1, 7), st.integers(1, 4), st.booleans(), st.data())
async def test_pages_turned_forwards_and_back_hold_every_line_once_in_order(
    members: set[str], limit: int, partitions: int, reverse: bool, data: st.DataObject
) -> None:
    gone = data.draw(st.sets(st.sampled_from(sorted(members)))) if members else set()
    parts: list[list[str]] = [[] for _ in range(partitions)]
    for member in members:
        parts[data.draw(st.integers(0, partitions - 1))].append(member)
    sources = [Source(part, gone) for part in parts]
    # Lines are sorted byte for byte.
    wanted = sorted(members - gone, key=str.encode, reverse=reverse)
    pages = [await turned(sources, limit, reverse=reverse)]
    while pages[-1].next is not None:
        pages.append(await turned(sources, limit, reverse=reverse, after=pages[-1].next))
    assert [item for one in pages for item in one.items] == wanted
    assert [len(one.items) for one in pages[:-1]] == [limit] * (len(pages) - 1)
    assert pages[0].previous is None
    back = [pages[-1]]
    while back[0].previous is not None:
        back.insert(0, await turned(sources, limit, reverse=reverse, before=back[0].previous))
    assert [one.items for one in back] == [one.items for one in pages]
    assert [one.next for one in back] == [one.next for one in pages]
    assert max(count for source in sources for count in source.asked) <= limit


async def test_what_is_passed_over_is_filled_up_from_behind() -> None:
    source = Source([f"{number:03}" for number in range(100)])
    found = await turned([source], 3, read=lambda one: one.member if one.member.endswith("9") else None)
    assert found.items == ("009", "019", "029")
    assert found.next is not None
    found = await turned([source], 3, read=lambda one: one.member if int(one.member) > 97 else None)
    assert (found.items, found.next) == (("098", "099"), None)
    assert set(source.asked) == {3}


async def test_a_full_last_page_says_that_nothing_follows() -> None:
    found = await turned([Source(["a", "b"]), Source(["c"])], 3)
    assert (found.items, found.next, found.previous) == (("a", "b", "c"), None, None)


async def test_an_empty_list_is_one_empty_page() -> None:
    found = await turned([Source([]), Source([])], 3)
    assert (found.items, found.next, found.previous) == ((), None, None)


@given(st.text(), st.sampled_from([("p", "t"), ("p", "t2"), ("p2", "t"), ("a\0b", "c"), ("a", "b\0c"), ("a%00b", "c")]))
async def test_a_cursor_comes_back_as_the_place_it_was_made_of(member: str, named: tuple[str, str]) -> None:
    which = Index(*named, "i")
    assert which.place(which.cursor(member)) == member


LISTS = [("p", "t", "i"), ("p", "t", "j"), ("p", "u", "i"), ("q", "t", "i"), ("p\0t", "i", ""), ("p", "t\0i", "")]


@pytest.mark.parametrize("other", LISTS[1:])
async def test_a_cursor_of_another_list_is_refused(other: tuple[str, str, str]) -> None:
    with pytest.raises(CursorInvalid, match="is of another list, not of 'i' in view 'p' of 't': pass it back with"):
        WHICH.place(Index(*other).cursor("m"))


@pytest.mark.parametrize("wrong", ["", "x", "~", None, 5, "é", "x" * 10_000])
async def test_what_is_no_cursor_is_refused(wrong: Any) -> None:
    with pytest.raises(CursorInvalid, match="is not a cursor of a page: pass one back as a page gave it, unchanged"):
        WHICH.place(wrong)


@given(st.text(max_size=5), st.data())
async def test_a_cursor_that_was_changed_is_refused(member: str, data: st.DataObject) -> None:
    cursor = WHICH.cursor(member)
    at = data.draw(st.integers(0, len(cursor) - 1))
    other = data.draw(st.sampled_from("aZ0_-~=").filter(lambda one: one != cursor[at]))
    with pytest.raises(CursorInvalid):
        WHICH.place(cursor[:at] + other + cursor[at + 1 :])


@pytest.mark.parametrize("limit", [0, -1, 1001, True, "5", 2.0])
async def test_a_limit_that_no_page_has_is_refused(limit: Any) -> None:
    with pytest.raises(InvalidInput, match=r"limit=.*: a page holds 1 to 1,000 items; ask for the next page with"):
        await asked(MemoryStore(), ViewId("directory", 1), limit=limit)


async def test_two_cursors_at_once_are_refused() -> None:
    with pytest.raises(InvalidInput, match="after and before were both given: give the one from which to go on"):
        await asked(MemoryStore(), ViewId("directory", 1), after="x", before="y")


async def asked(store: MemoryStore, view: ViewId, **options: Any) -> Page[str]:
    readers, views = MemoryReaders.of(store), MemoryViews.of(store)
    return await page(store, readers, views, view, "t", ACTIVITY, lambda found: found.log.conversation, **options)


async def said(store: MemoryStore, *conversations: str) -> None:
    for conversation in conversations:
        await EventLog(store).tenant("t").conversation(conversation).add(user("hello"))


async def test_a_page_merges_the_partitions_of_a_view() -> None:
    now = [1_800_000_000_000]
    store = MemoryStore(clock=lambda: now[0])
    names = [f"c{number}" for number in range(40)]
    await said(store, *names)
    await EventLog(store).tenant("other").conversation("x").add(user("hello"))
    view = await build(store, Directory())
    first = await asked(store, view, limit=25)
    assert first.next is not None
    second = await asked(store, view, limit=25, after=first.next)
    assert sorted([*first.items, *second.items]) == sorted(names)
    assert first.as_of == second.as_of == AsOf(0, now[0])
    reverse = await asked(store, view, limit=40, reverse=True)
    assert reverse.items == (*second.items[::-1], *first.items[::-1])


async def test_what_no_mark_has_passed_is_the_lag_and_the_oldest_of_it_the_time() -> None:
    store = MemoryStore()
    view = await build(store, Directory())
    readers = MemoryReaders.of(store)
    assert (await how_far(store, readers, view)).lag == 0
    await said(store, "c1", "c2", "c2", "c3")
    found = await how_far(store, readers, view)
    oldest = await EventLog(store).tenant("t").conversation("c1").read().__anext__()
    assert found.lag == 4
    assert found.at_ms == (datetime.fromisoformat(oldest.at) - EPOCH) // timedelta(milliseconds=1)
    for partition in range(store.partitions):
        before = (await how_far(store, readers, view)).lag
        await catch_up(store, Directory(), view, partition)
        assert (await how_far(store, readers, view)).lag == before - len(store.feeds[partition])


async def test_the_time_is_not_known_when_the_oldest_event_is_gone() -> None:
    store = MemoryStore()
    view = await build(store, Directory())
    await said(store, "c1")
    store._logs.clear()
    assert await how_far(store, MemoryReaders.of(store), view) == AsOf(1, None)


async def test_a_view_that_was_dropped_is_missing() -> None:
    store = MemoryStore()
    view = await build(store, Directory())
    await said(store, "c1")
    await MemoryReaders.of(store).remove(view.group)
    with pytest.raises(ViewMissing, match="generation 1 of view 'directory' was dropped: ask again, to read the live"):
        await asked(store, view)


async def test_an_event_of_an_unknown_type_still_moves_the_conversation() -> None:
    store = MemoryStore()
    await EventLog(store).tenant("t").conversation("c").append(Draft("x-unknown", {}))
    assert (await asked(store, await build(store, Directory()))).items == ("c",)
