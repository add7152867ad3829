"""What an inspection says of open runs."""

from __future__ import annotations

import json

import pytest

from eventlog import Draft, EventLog, Truncated, assistant, tool_call, user
from eventlog.identity import LogId
from eventlog.run import this_holder
from eventlog.store.memory import MemoryStore
from eventlog.store.port import Entry
from projections import recovery
from tests.recovery.left import events_of, expired, left, opened

pytestmark = pytest.mark.anyio
MODES = ("per-service-call", "per-run")


@pytest.mark.parametrize("mode", MODES)
async def test_all_that_an_open_run_left_behind_is_told(log: EventLog, mode: str) -> None:
    chat = log.tenant("t").conversation("c")
    run, (a, b, c) = await left(chat, mode)
    found = await expired(chat, run.id)
    head = await chat.head()
    assert (found.run, found.mode, found.agent, found.exclusive, found.first) == (run.id, mode, "watch", True, 1)
    assert found.holder == this_holder()
    assert (found.since_ms, found.lease_ms) == (head.runs[0].since_ms, head.runs[0].lease_ms)
    assert found.age_ms >= found.lease_ms - found.since_ms >= 10
    assert found.last_completed == 1
    started = [event.version for event in await events_of(chat) if event.type == "service-call-started"]
    assert [(doubt.number, doubt.started) for doubt in found.in_doubt] == [(2, started[1])]
    assert [(one.call, one.awaits_approval) for one in found.unanswered] == [(b, False), (c, True)]
    results = [event.version for event in await events_of(chat) if event.type == "function-result"]
    assert [(one.version, one.answers) for one in found.unsent_results] == [(results[0], a.version)]
    assert found.approvals == (c,)


async def test_what_is_found_can_be_written_as_json(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    run, (_, b, c) = await left(chat)
    await expired(chat, run.id)
    found = await recovery.inspect(chat)
    document = json.loads(json.dumps(found.as_json()))
    assert (document["tenant"], document["conversation"], document["cursor"]) == ("t", "c", str(found.cursor))
    told = document["runs"][0]
    assert (told["run"], told["mode"], told["expired"], told["approvals"]) == (run.id, run.mode, True, [c.version])
    assert told["unanswered"][0] == {
        "version": b.version,
        "call_id": "b",
        "name": "look",
        "arguments": {},
        "awaits_approval": False,
    }


async def test_nothing_open_is_nothing_found(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    assert (await recovery.inspect(chat)).runs == ()
    async with chat.run() as run:
        await run.add(user("go"))
    assert (await recovery.inspect(chat)).runs == ()


async def test_an_inspection_writes_nothing(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    run, _ = await left(chat)
    await expired(chat, run.id)
    held = await opened(log.tenant("t").conversation("held"), lease=60)
    for one in (chat, held.conversation):
        head, events = await one.head(), await events_of(one)
        await recovery.inspect(one)
        assert (await one.head(), await events_of(one)) == (head, events)
    await run.renew()  # and its former holder may still go on


async def test_a_run_that_is_held_has_not_expired(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    async with chat.run(lease=60) as run:
        (found,) = (await recovery.inspect(chat)).runs
        assert (found.run, found.expired) == (run.id, False)
        assert (await recovery.inspect(chat)).expired == ()


async def test_each_of_several_open_runs_is_told_by_itself(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    first = await opened(chat, exclusive=False, lease=60)
    await first.add(user("one"))
    async with first.service_call() as call:
        await call.complete(assistant(tool_call("a", "look", {})))
    second = await opened(chat, "per-run", exclusive=False)
    await second.add(user("two"))
    async with second.service_call(sends=second.unsent) as call:
        await call.complete(assistant(tool_call("b", "look", {})))
    await expired(chat, second.id)
    one, two = (await recovery.inspect(chat)).runs
    assert (one.run, one.expired, [left.call.call_id for left in one.unanswered]) == (first.id, False, ["a"])
    assert (two.run, two.expired, [left.call.call_id for left in two.unanswered]) == (second.id, True, ["b"])
    assert (one.exclusive, two.exclusive, two.mode) == (False, False, "per-run")


async def test_an_approval_that_was_decided_is_not_waited_for(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    _, (_, _, c) = await left(chat)
    await chat.append(Draft("approval-resolved", {"function_call": c.version, "decision": "approved"}))
    (found,) = (await recovery.inspect(chat)).runs
    assert found.approvals == ()
    assert [one.call.call_id for one in found.unanswered] == ["b", "c"]


class Counting(MemoryStore):
    """A store that remembers what was read of it."""

    def __init__(self) -> None:
        super().__init__()
        self.versions: list[int] = []

    async def read(self, log: LogId, first: int, last: int | None, count: int, *, reverse: bool = False) -> list[Entry]:
        found = await super().read(log, first, last, count, reverse=reverse)
        self.versions += [entry.version for entry in found]
        return found


async def test_only_what_follows_the_start_of_the_oldest_open_run_is_read() -> None:
    store = Counting()
    chat = EventLog(store).tenant("t").conversation("c")
    for number in range(1200):
        await chat.add(user(str(number)))
    run, _ = await left(chat)
    store.versions.clear()
    await recovery.inspect(chat)
    (found,) = (await chat.head()).runs
    assert (found.run, min(store.versions)) == (run.id, 1201)


async def test_a_run_whose_start_was_trimmed_is_said_to_be_so() -> None:
    store = MemoryStore()
    chat = EventLog(store).tenant("t").conversation("c")
    await left(chat)
    await store.trim(chat.log, 3)
    with pytest.raises(Truncated):
        await recovery.inspect(chat)


async def test_whether_a_run_has_expired_is_told_by_the_stores_clock() -> None:
    now = 1_000_000
    store = MemoryStore(clock=lambda: now)
    chat = EventLog(store).tenant("t").conversation("c")
    await opened(chat, lease=60)
    (found,) = (await recovery.inspect(chat)).runs
    assert (found.expired, found.since_ms, found.lease_ms) == (False, 1_000_000, 1_060_000)
    now += 60_000
    (found,) = (await recovery.inspect(chat)).runs
    assert (found.expired, found.age_ms) == (True, 60_000)


async def test_a_result_for_a_call_of_another_run_is_told_to_be_unsent(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    async with chat.run() as before:
        await before.add(user("go"))
        async with before.service_call() as call:
            await call.complete(assistant(tool_call("a", "look", {})))
    run = await opened(chat)
    result = await run.add_result(call.function_calls[0], "done")
    assert result is not None
    found = await expired(chat, run.id)
    assert [(one.version, one.answers) for one in found.unsent_results] == [(result.first, None)]
    assert found.unanswered == ()


async def test_nothing_is_open_in_a_deleted_conversation() -> None:
    store = MemoryStore()
    chat = EventLog(store).tenant("t").conversation("c")
    await opened(chat)
    await store.mark_deleted(chat.log)
    assert (await recovery.inspect(chat)).runs == ()
