"""What is asked across a tenant's conversations."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from eventlog import (
    Conversation,
    CursorInvalid,
    Draft,
    EventLog,
    InvalidId,
    InvalidInput,
    Mode,
    Tenant,
    assistant,
    tool_call,
    user,
)
from eventlog.errors import ViewMissing
from eventlog.store.memory import MemoryStore
from projections import listing
from projections.page import Page
from projections.views.directory import DIRECTORY
from projections.views.open_calls import OPEN_CALLS
from projections.views.runs import RUNS
from projections.views.usage import USAGE
from tests.views.building import build

pytestmark = pytest.mark.anyio

ALL = [DIRECTORY, RUNS, OPEN_CALLS, USAGE]


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writers' clock that is a second later at each append."""
    seconds = count()

    def now() -> str:
        return (datetime(2026, 12, 1, tzinfo=UTC) + timedelta(seconds=next(seconds))).isoformat()

    monkeypatch.setattr("eventlog.appender._now", now)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def tenant(store: MemoryStore) -> Tenant:
    return EventLog(store).tenant("t")


async def build_all(store: MemoryStore) -> None:
    for projection in ALL:
        await build(store, projection)


async def turn(conversation: Conversation, agent: str, *call_ids: str, **usage: int) -> None:
    """A run with one service call that asks for these function calls."""
    async with conversation.run(agent=agent) as run:
        await run.add(user(f"hello {agent}"))
        async with run.service_call(model="m") as call:
            reply = assistant("well", *[tool_call(call_id, "f") for call_id in call_ids])
            await call.complete(reply, usage=dict(usage))


def named(page: Page[Any]) -> list[str]:
    return [item.conversation for item in page.items]


async def all_of(ask: Any, **options: Any) -> list[Any]:
    """All items, in pages of two, forwards; each page back is the one before it."""
    page = await ask(limit=2, **options)
    items = list(page.items)
    while page.next is not None:
        before, page = page, await ask(limit=2, after=page.next, **options)
        back = await ask(limit=2, before=page.previous, **options)
        assert (back.items, back.next) == (before.items, before.next)
        items += page.items
    return items


async def test_conversations_are_listed_newest_first_and_only_the_tenants(store: MemoryStore, tenant: Tenant) -> None:
    for number in range(5):
        await tenant.conversation(f"c{number}").add(user(f"text {number}"))
    await tenant.conversation("c1").add(user("again"))
    await EventLog(store).tenant("other").conversation("x").add(user("hello"))
    await build_all(store)
    found = await all_of(lambda **options: listing.conversations(tenant, **options))
    assert [entry.conversation for entry in found] == ["c1", "c4", "c3", "c2", "c0"]
    newest = found[0]
    assert (newest.first_text, newest.last_text, newest.messages, newest.runs) == ("text 1", "again", 2, 0)
    page = await listing.conversations(tenant)
    assert (page.next, page.previous, page.as_of.lag) == (None, None, 0)
    assert page.as_json(lambda entry: entry.as_json())["items"][0] == {
        "conversation": "c1",
        "title": None,
        "labels": {},
        "agents": [],
        "messages": 2,
        "runs": 0,
        "first_text": "text 1",
        "last_text": "again",
        "created_ms": newest.created_ms,
        "active_ms": newest.active_ms,
    }


async def label(conversation: Conversation, **labels: str) -> None:
    await conversation.append(Draft("conversation-annotated", {"labels": labels}))


async def test_conversations_are_found_by_all_labels_and_an_agent(store: MemoryStore, tenant: Tenant) -> None:
    await label(tenant.conversation("a"), team="red", stage="new")
    await label(tenant.conversation("b"), team="red", stage="old")
    await label(tenant.conversation("c"), team="blue", stage="new")
    await turn(tenant.conversation("b"), "weather")
    await turn(tenant.conversation("c"), "weather")
    await label(tenant.conversation("d"), odd="x\0=%", team="red")
    await build_all(store)
    for labels, agent, expected in [
        ({"team": "red"}, None, ["d", "b", "a"]),
        ({"team": "red", "stage": "old"}, None, ["b"]),
        ({"team": "red"}, "weather", ["b"]),
        ({}, "weather", ["c", "b"]),
        (None, "nobody", []),
        ({"team": "red", "odd": "x\0=%"}, None, ["d"]),
        ({"odd": "x"}, None, []),
    ]:
        assert named(await listing.conversations(tenant, labels=labels, agent=agent)) == expected


async def test_a_cursor_goes_with_its_tenant_and_filters(store: MemoryStore, tenant: Tenant) -> None:
    for number in range(3):
        await turn(tenant.conversation(f"c{number}"), "weather")
    await build_all(store)
    cursor = (await listing.conversations(tenant, limit=1)).next
    other = EventLog(store).tenant("other")
    for ask in (
        listing.conversations(other, after=cursor),
        listing.conversations(tenant, before=cursor, agent="weather"),
        listing.runs(tenant, after=cursor),
        listing.runs(tenant, after=cursor, conversation="c1"),
    ):
        with pytest.raises(CursorInvalid, match="is of another list"):
            await ask


async def test_runs_are_listed_newest_first_and_found_by_state_agent_and_conversation(
    store: MemoryStore, tenant: Tenant
) -> None:
    one, two = tenant.conversation("one"), tenant.conversation("two")
    await turn(one, "a")
    await turn(two, "a")
    await turn(one, "b")
    with pytest.raises(RuntimeError):
        async with two.run(agent="b", mode=Mode.PER_RUN):
            raise RuntimeError("no")
    async with one.run(agent="a"):
        await build_all(store)

        async def found(**options: Any) -> list[tuple[str, str | None, str]]:
            runs = await all_of(lambda **more: listing.runs(tenant, **options, **more))
            return [(run.conversation, run.agent, run.state) for run in runs]

        everything = [
            ("one", "a", "open"),
            ("two", "b", "aborted"),
            ("one", "b", "committed"),
            ("two", "a", "committed"),
            ("one", "a", "committed"),
        ]
        assert await found() == everything
        assert await found(state="committed") == everything[2:]
        assert await found(agent="a") == [everything[0], *everything[3:]]
        assert await found(agent="a", state="open") == everything[:1]
        assert await found(conversation="one") == [everything[0], everything[2], everything[4]]
        assert await found(conversation="one", state="committed", agent="b") == [everything[2]]
        assert await found(conversation="nobody's") == []
    (aborted,) = (await listing.runs(tenant, state="aborted")).items
    assert (aborted.reason, aborted.mode, aborted.completed) == ("failed", "per-run", 0)
    assert aborted.as_json()["error"] == aborted.error


async def test_open_calls_are_listed_oldest_first(store: MemoryStore, tenant: Tenant) -> None:
    one, two, three = (tenant.conversation(name) for name in ("one", "two", "three"))
    await turn(one, "a", "x", "y")
    await turn(two, "a", "x")
    async with three.run(agent="b") as run:
        async with run.service_call() as call:
            await call.complete(assistant(tool_call("z", "f")))
        (asked,) = call.function_calls
        await three.append(Draft("approval-requested", {"function_call": asked.version}))
        await run.add_result(asked, "early")
        await one.add_result("x", "late")
        await build_all(store)

        async def found(**options: Any) -> list[tuple[str, str]]:
            calls = await all_of(lambda **more: listing.open_calls(tenant, **options, **more))
            return [(call.conversation, call.call_id) for call in calls]

        assert await found() == [("one", "y"), ("two", "x"), ("three", "z")]
        assert await found(approval_only=True) == [("three", "z")]
        assert await found(approval_only=True, in_open_run=False) == []
        assert await found(in_open_run=True) == [("three", "z")]
        assert await found(in_open_run=False) == [("one", "x"), ("one", "y"), ("two", "x")]
    (waiting,) = (await listing.open_calls(tenant, approval_only=True)).items
    assert (waiting.agent, waiting.name, waiting.version, waiting.result) == (
        "b",
        "f",
        asked.version,
        asked.version + 3,
    )
    assert waiting.as_json()["call_id"] == "z"


async def test_usage_is_summed_by_what_is_asked_for(store: MemoryStore, tenant: Tenant) -> None:
    await turn(tenant.conversation("one"), "a", input_tokens=5, output_tokens=1, cached_tokens=2)
    await turn(tenant.conversation("two"), "a", input_tokens=7)
    await turn(tenant.conversation("two"), "b", input_tokens=1)
    await turn(EventLog(store).tenant("other").conversation("x"), "a", input_tokens=1000)
    await build_all(store)

    async def found(*options: Any) -> list[tuple[Any, ...]]:
        report = await listing.usage(tenant, *options)
        assert report.as_of.lag == 0
        return [(row.agent, row.service_calls, row.input_tokens, row.output_tokens, row.others) for row in report.rows]

    assert await found(None, None, ("agent",)) == [("a", 2, 12, 1, {"cached_tokens": 2}), ("b", 1, 1, 0, {})]
    assert await found(None, None, ()) == [(None, 3, 13, 1, {"cached_tokens": 2})]
    assert await found(date(2020, 1, 1), "2020-12-31") == []
    assert await found("2020-01-01") == await found()
    (row,) = (await listing.usage(tenant, by=("model",))).rows
    assert (row.model, row.day, row.agent) == ("m", None, None)
    by_day = await listing.usage(tenant, by=("day", "agent"))
    assert [(row.day, row.agent) for row in by_day.rows] == [("2026-12-01", "a"), ("2026-12-01", "b")]
    assert by_day.as_json()["rows"][0]["agent"] == "a"


async def test_a_day_counts_from_its_first_to_its_last_moment(store: MemoryStore, tenant: Tenant) -> None:
    await turn(tenant.conversation("one"), "a", input_tokens=5)
    await build_all(store)
    (row,) = (await listing.usage(tenant)).rows
    assert row.day is not None
    assert len((await listing.usage(tenant, row.day, date.fromisoformat(row.day))).rows) == 1


@pytest.mark.parametrize("wrong", ["yesterday", 5, datetime(2026, 12, 1, tzinfo=UTC)])
async def test_what_is_no_day_is_refused(tenant: Tenant, wrong: Any) -> None:
    with pytest.raises(InvalidInput, match=r"until=.*: give a day as date or as 2026-12-01, or None for no bound"):
        await listing.usage(tenant, until=wrong)


async def test_what_usage_cannot_be_summed_by_is_refused(tenant: Tenant) -> None:
    with pytest.raises(InvalidInput, match="by='month': give some of day, model, agent"):
        await listing.usage(tenant, by=("month",))  # type: ignore[arg-type]


async def test_a_state_that_no_run_has_is_refused(tenant: Tenant) -> None:
    with pytest.raises(InvalidInput, match="state='done': give one of open, committed, aborted"):
        await listing.runs(tenant, state="done")  # type: ignore[arg-type]


async def test_a_conversation_id_that_cannot_be_is_refused(tenant: Tenant) -> None:
    with pytest.raises(InvalidId):
        await listing.runs(tenant, conversation="")


async def test_what_nobody_has_built_is_missing(tenant: Tenant) -> None:
    for ask in (listing.conversations, listing.runs, listing.open_calls, listing.usage):
        with pytest.raises(ViewMissing):
            await ask(tenant)  # type: ignore[operator]


async def test_a_page_goes_on_in_the_next_generation(store: MemoryStore, tenant: Tenant) -> None:
    for number in range(4):
        await tenant.conversation(f"c{number}").add(user("hello"))
    await build_all(store)
    first = await listing.conversations(tenant, limit=2)
    await build_all(store)
    assert named(await listing.conversations(tenant, limit=2, after=first.next)) == ["c1", "c0"]
