"""Replies that are lost on their way: the step stands once, and the recorder finds out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import uuid4

import pytest

from eventlog import Conversation, EventLog, FunctionCall, OutcomeUnknown, Run, assistant, tool_call, user
from projections import history
from tests.recorder.conftest import opened
from tests.recorder.steps import ENDS, agree, answered, asked, counts, events
from tests.store.redis.proxy import Fate, Proxy

pytestmark = pytest.mark.anyio
DEADLINE = 0.4
REPLY = assistant(tool_call("a", "look", {}))


@pytest.fixture
async def proxy(server: str) -> AsyncIterator[Proxy]:
    async with Proxy(server) as proxy:
        yield proxy


@pytest.fixture
async def chat(proxy: Proxy) -> AsyncIterator[Conversation]:
    """A conversation behind the proxy, whose log gives an operation up soon."""
    async with EventLog.open(proxy.url, namespace=f"t{uuid4().hex[:12]}", deadline=DEADLINE) as log:
        yield await opened(log)


def once(fate: Fate, containing: bytes) -> Callable[[bytes], Fate]:
    """This fate for the first request that contains these bytes; the others pass."""
    left = [fate]
    return lambda chunk: left.pop() if left and containing in chunk else Fate.PASS


Do = Callable[[Run, FunctionCall], Awaitable[object]]


async def left_without_a_reply(run: Run, _: FunctionCall) -> None:
    async with run.service_call():
        pass


STEPS: dict[str, tuple[str, Do]] = {
    "add": ("message-added", lambda run, _: run.add(user("more"))),
    "result": ("function-result", lambda run, call: run.add_result(call, 1)),
    "call-start": ("service-call-started", left_without_a_reply),
    "completion": ("service-call-completed", lambda run, _: answered(run, assistant("done"))),
    "failure": ("service-call-failed", left_without_a_reply),
    "commit": ("run-committed", lambda run, _: run.commit()),
    "abort": ("run-aborted", lambda run, _: run.abort()),
}


@pytest.mark.parametrize("fate", [Fate.CUT_REPLY, Fate.CUT_REQUEST], ids=lambda fate: fate.name.lower())
@pytest.mark.parametrize("step", STEPS)
async def test_a_step_whose_connection_is_cut_is_recorded_once(
    chat: Conversation, proxy: Proxy, step: str, fate: Fate
) -> None:
    kind, do = STEPS[step]
    async with chat.run() as run:
        [function_call] = await asked(run, "a")
        before = (await counts(chat))[kind]
        proxy.fate = once(fate, kind.encode())
        await do(run, function_call)
        assert (await counts(chat))[kind] == before + 1
        if not run.progress.ended:
            await agree(run)


async def test_a_start_whose_reply_is_lost_opens_the_run_once(chat: Conversation, proxy: Proxy) -> None:
    proxy.fate = once(Fate.CUT_REPLY, b"run-started")
    async with chat.run() as run:
        await agree(run)
    assert (await counts(chat))["run-started"] == 1


async def test_a_take_over_whose_reply_is_lost_is_made_once(chat: Conversation, proxy: Proxy) -> None:
    former = chat.run()
    await former.__aenter__()
    proxy.fate = once(Fate.CUT_REPLY, b"run-resumed")
    async with chat.resume(former.id, force=True) as run:
        await run.add(user("mine now"))
        await agree(run)
    assert (await counts(chat))["run-resumed"] == 1


@pytest.mark.parametrize("fate", [Fate.HOLD_REPLY, Fate.HOLD], ids=lambda fate: fate.name.lower())
async def test_a_completion_of_unknown_outcome_is_found_out_when_the_block_is_left(
    chat: Conversation, proxy: Proxy, fate: Fate
) -> None:
    async with chat.run() as run:
        await run.add(user("one"))
        call = run.service_call()

        async def complete() -> None:
            async with call:
                proxy.fate = lambda chunk: fate if b"service-call-completed" in chunk else Fate.PASS
                try:
                    await call.complete(REPLY)
                finally:
                    proxy.fate = lambda _: Fate.PASS

        with pytest.raises(OutcomeUnknown):
            await complete()
        [end] = await events(chat, *ENDS)
        assert end.type == "service-call-completed"
        assert [one.call_id for one in call.function_calls] == ["a"]
        await agree(run)


async def test_a_completion_of_unknown_outcome_may_be_given_again(chat: Conversation, proxy: Proxy) -> None:
    async with chat.run() as run:
        await run.add(user("one"))
        async with run.service_call() as call:
            proxy.fate = lambda chunk: Fate.HOLD_REPLY if b"service-call-completed" in chunk else Fate.PASS
            with pytest.raises(OutcomeUnknown):
                await call.complete(REPLY)
            proxy.fate = lambda _: Fate.PASS
            assert (await call.complete(REPLY)).duplicate
        [function_call] = call.function_calls
        await run.add_result(function_call, 1)
        await answered(run, assistant("done"))
    assert (await history.load(chat)).open_calls == ()


async def test_an_add_of_unknown_outcome_is_found_out_by_its_operation_id(chat: Conversation, proxy: Proxy) -> None:
    async with chat.run() as run:
        proxy.fate = lambda chunk: Fate.HOLD_REPLY if b"message-added" in chunk else Fate.PASS
        with pytest.raises(OutcomeUnknown) as unknown:
            await run.add(user("one"))
        proxy.fate = lambda _: Fate.PASS
        assert not run.unsent
        found = await run.add(user("one"), operation_id=unknown.value.operation_id)
        assert found is not None
        assert found.duplicate
        assert run.unsent == (found.first,)
        await agree(run)


async def test_a_cancelled_step_whose_reply_is_lost_is_known_all_the_same(chat: Conversation, proxy: Proxy) -> None:
    async with chat.run() as run:
        proxy.fate = once(Fate.CUT_REPLY, b"message-added")
        task = asyncio.create_task(run.add(user("one")))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        call = await answered(run, assistant("hi"))
        assert list(call.sends) == [event.version for event in await events(chat, "message-added") if not event.call]
        await agree(run)
