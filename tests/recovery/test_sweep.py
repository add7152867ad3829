"""Dealing with all the expired runs of a tenant, also while others do."""

from __future__ import annotations

import anyio
import pytest

from eventlog import EventLog, InvalidInput, Run, Tenant, assistant, tool_call, user
from eventlog.store.memory import MemoryStore
from projections import history, recovery
from projections.recovery import Action, Swept
from tests.recovery.left import events_of, expired, obeys_the_rules, opened

pytestmark = pytest.mark.anyio
ENDINGS: tuple[Action, ...] = ("abort", "seal")


async def swept(tenant: Tenant, action: Action = "inspect") -> dict[str, Swept]:
    return {one.conversation: one async for one in recovery.sweep(tenant, action=action)}


async def given(tenant: Tenant, expire: int, *, held: int = 2, done: int = 2) -> tuple[dict[str, Run], dict[str, Run]]:
    """Conversations of all kinds; return the expired runs and the held ones by conversation."""
    lost, alive = {}, {}
    for number in range(done):
        async with tenant.conversation(f"done {number}").run() as run:
            await run.add(user("go"))
    for number in range(held):
        alive[f"held {number}"] = await opened(tenant.conversation(f"held {number}"), lease=60)
    for number in range(expire):
        chat = tenant.conversation(f"expired {number}")
        run = lost[f"expired {number}"] = await opened(chat)
        await run.add(user("go"))
        async with run.service_call() as call:
            await call.complete(assistant(tool_call("a", "look", {})))
    for name, run in lost.items():
        await expired(tenant.conversation(name), run.id)
    return lost, alive


async def test_a_sweep_that_inspects_tells_of_expired_runs_and_ends_none(log: EventLog) -> None:
    tenant = log.tenant("t")
    lost, alive = await given(tenant, 3)
    found = await swept(tenant)
    assert {name: [run.run for run in one.found.expired] for name, one in found.items() if one.found} == {
        name: [run.id] for name, run in lost.items()
    }
    assert all(one.done == () and one.problem is None for one in found.values())
    for name in (*lost, *alive):
        assert len((await tenant.conversation(name).head()).runs) == 1


@pytest.mark.parametrize("action", ENDINGS)
async def test_a_sweep_ends_each_expired_run_and_no_held_one(log: EventLog, action: Action) -> None:
    tenant = log.tenant("t")
    lost, alive = await given(tenant, 3)
    strange, _ = await given(log.tenant("other"), 1, held=0, done=0)
    found = await swept(tenant, action)
    reason = "sealed" if action == "seal" else "expired"
    assert {name: [(one.run, one.reason) for one in swept.done] for name, swept in found.items()} == {
        name: [(run.id, reason)] for name, run in lost.items()
    }
    for name in lost:
        events = await events_of(tenant.conversation(name))
        assert [event.type for event in events[-2:]].count("function-result") == (action == "seal")
        obeys_the_rules(events)
    for run in (*alive.values(), *strange.values()):
        await run.add(user("still here"))
    assert await swept(tenant, action) == {}


async def test_in_one_conversation_the_expired_run_is_ended_and_the_held_one_is_not(log: EventLog) -> None:
    tenant = log.tenant("t")
    chat = tenant.conversation("c")
    held = await opened(chat, exclusive=False, lease=60)
    lost = await opened(chat, exclusive=False)
    await expired(chat, lost.id)
    found = (await swept(tenant, "seal"))["c"]
    assert found.found is not None
    assert [run.run for run in found.found.runs] == [held.id, lost.id]
    assert [closed.run for closed in found.done] == [lost.id]
    await held.commit()


@pytest.mark.parametrize("action", ENDINGS)
async def test_several_sweeps_at_once_end_each_expired_run_once(log: EventLog, action: Action) -> None:
    tenant = log.tenant("t")
    lost, _ = await given(tenant, 12, held=1, done=1)
    ended: list[str] = []

    async def sweep() -> None:
        for one in (await swept(log.tenant("t"), action)).values():
            assert one.problem is None
            ended.extend(closed.run for closed in one.done)

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(sweep)
    assert sorted(ended) == sorted(run.id for run in lost.values())
    for name in lost:
        types = [event.type for event in await events_of(tenant.conversation(name))]
        assert (types.count("run-aborted"), types.count("function-result")) == (1, action == "seal")


async def test_a_run_that_is_taken_over_while_a_sweep_goes_on_is_passed_by(
    log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = log.tenant("t")
    lost, _ = await given(tenant, 1, held=0)
    chat = tenant.conversation("expired 0")
    abort = recovery.abort
    resumed = recovery.resume(chat, lost["expired 0"].id)

    async def abort_late(*arguments: object) -> recovery.Closed:
        await resumed.__aenter__()
        return await abort(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(recovery, "abort", abort_late)
    found = await swept(tenant, "abort")
    assert found["expired 0"].done == ()
    for call in resumed.progress.unanswered.values():
        await resumed.add_result(call, "done")
    async with resumed.service_call() as service_call:
        await service_call.complete(assistant("there"))
    await resumed.__aexit__(None, None, None)
    assert (await history.load(chat)).open_calls == ()


async def test_a_conversation_that_cannot_be_read_is_told_and_the_others_are_swept() -> None:
    store = MemoryStore()
    tenant = EventLog(store).tenant("t")
    lost, _ = await given(tenant, 3, held=0)
    await store.trim(tenant.conversation("expired 1").log, 2)
    found = await swept(tenant, "seal")
    assert set(found) == set(lost)
    assert "was trimmed" in (found["expired 1"].problem or "")
    assert [name for name, one in found.items() if one.done] == [name for name in found if name != "expired 1"]


async def test_a_deleted_conversation_is_passed_by() -> None:
    store = MemoryStore()
    tenant = EventLog(store).tenant("t")
    await given(tenant, 2, held=0)
    await store.mark_deleted(tenant.conversation("expired 0").log)
    assert set(await swept(tenant, "abort")) == {"expired 1"}


async def test_an_action_that_there_is_not_is_refused() -> None:
    with pytest.raises(InvalidInput, match="choose inspect, abort or seal"):
        await swept(EventLog(MemoryStore()).tenant("t"), "destroy")  # type: ignore[arg-type]
