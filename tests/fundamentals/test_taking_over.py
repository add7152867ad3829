"""Taking a run over: who holds it, what the former holder is told, and how the new one goes on."""

from __future__ import annotations

import anyio
import pytest

from eventlog import (
    Conversation,
    ConversationBusy,
    EventLog,
    Run,
    RunClosed,
    RunFenced,
    assistant,
    tool_call,
    user,
)
from projections import history

pytestmark = pytest.mark.anyio


async def begun(chat: Conversation, *, lease: float = 60.0) -> Run:
    """A run whose first service call asked for two tools, of which one has returned."""
    run = chat.run(agent="weather", lease=lease)
    await run.__aenter__()
    await run._heartbeat.stop()
    await run.add(user("Weather?"))
    async with run.service_call() as call:
        await call.complete(assistant(tool_call("a", "look", {}), tool_call("b", "look", {})))
    await run.add_result(call.function_calls[0], "3 C")
    return run


async def test_a_run_whose_lease_runs_cannot_be_taken_over(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    run = await begun(chat)
    with pytest.raises(ConversationBusy, match="its lease runs until"):
        async with chat.resume(run.id):
            pytest.fail("the run was taken over")
    await run.commit()


async def test_an_expired_run_goes_on_under_a_new_fence_without_running_a_finished_tool_again(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    former = await begun(chat, lease=0.01)
    await anyio.sleep(0.02)
    async with chat.resume(former.id) as run:
        assert run.agent == "weather"
        assert [call.call_id for call in run.progress.unanswered.values()] == ["b"]
        with pytest.raises(RunFenced, match="this holder was replaced and must stop"):
            await former.add(user("late"))
        for open_call in run.progress.unanswered.values():
            await run.add_result(open_call, "4 C")
        async with run.service_call() as call:
            assert call.number == 2
            await call.complete(assistant("3 and 4"))
    view = await history.load(chat)
    assert [message.role for message in view.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert not view.open_calls
    with pytest.raises(RunClosed, match="is not open"):
        await former.commit()


async def test_an_expired_run_that_nobody_took_over_may_go_on(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    run = await begun(chat, lease=0.01)
    await anyio.sleep(0.02)
    await run.add(user("still here"))
    await run.commit()


async def test_a_run_is_taken_over_by_force(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    former = await begun(chat)
    async with chat.resume(former.id, force=True) as run:
        await run.commit("terminated")
    with pytest.raises(RunClosed):
        await former.renew()


async def test_a_heartbeat_holds_the_run_while_its_holder_waits(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    async with chat.run(lease=0.15) as run:
        await anyio.sleep(0.4)
        with pytest.raises(ConversationBusy) as busy:
            async with chat.resume(run.id):
                pytest.fail("the run was taken over")
        assert not busy.value.expired


async def test_the_heartbeat_ends_with_the_run(log: EventLog) -> None:
    chat = log.tenant("t").conversation("c")
    async with chat.run(lease=0.05) as run:
        pass
    assert run._heartbeat._task is None
