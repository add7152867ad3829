"""What an agent sends with a service call, and that the service then holds what the history shows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog import (
    Conversation,
    EventLog,
    FunctionCall,
    Message,
    Run,
    ServiceCall,
    assistant,
    text,
    tool_call,
    tool_result,
    user,
)
from projections import history
from projections.view import View
from tests.events import profiles

pytestmark = pytest.mark.anyio
profiles.load()

Said = tuple[str, list[dict[str, Any]]]


@pytest.fixture
async def conversation() -> AsyncIterator[Conversation]:
    async with EventLog.open("memory://") as log:
        yield log.tenant("t").conversation("c")


def said(messages: list[Message] | tuple[Message, ...]) -> list[Said]:
    return [(message.role, message.parts) for message in messages]


class StrictService:
    """It stores what it received and replied, and refuses a request that leaves a call without its result."""

    def __init__(self) -> None:
        self.memory: list[Said] = []
        self.replies = 0

    async def reply(self, call: ServiceCall, *parts: dict[str, Any] | str) -> list[FunctionCall]:
        """Take what the call sends, and complete it with a reply of these parts."""
        sent = said(await history.for_call(call))
        received = sent if call.continues is None else [*self.memory, *sent]
        self.check(received)
        self.replies += 1
        reply = [assistant(*parts)] if parts else []
        await call.complete(*reply, service={"response": f"s{self.replies}"})
        self.memory = [*received, *said(reply)]
        return call.function_calls

    @staticmethod
    def check(received: list[Said]) -> None:
        waiting: list[str] = []
        for _, parts in received:
            for part in parts:
                if part["type"] == "tool_call":
                    waiting.append(part["id"])
                elif part["type"] == "tool_call_response":
                    assert part["id"] in waiting, f"400: a result of {part['id']} without its call"
                    waiting.remove(part["id"])
        assert not waiting, f"400: no result for {waiting}"


async def ended_early(conversation: Conversation, service: StrictService, *, results: int = 2) -> list[FunctionCall]:
    """A run whose loop was ended after its tools ran: two calls, and this many results that were never sent."""
    async with conversation.run() as run:
        await run.add(user("go"))
        async with run.service_call() as call:
            calls = await service.reply(call, tool_call("a", "f"), tool_call("b", "g"))
        for function_call in reversed(calls[:results]):
            await run.add_result(function_call, f"result {function_call.call_id}")
        await run.commit("terminated")
    return calls


async def test_a_runs_first_call_carries_the_results_of_calls_still_open(conversation: Conversation) -> None:
    service = StrictService()
    await ended_early(conversation, service)
    async with conversation.run() as run:
        await run.add(user("and now?"))
        async with run.service_call() as call:
            assert said(await history.for_call(call))[2:] == [
                ("tool", [tool_result("a", "result a")]),
                ("tool", [tool_result("b", "result b")]),
                ("user", [text("and now?")]),
            ]
            await service.reply(call, "fine")
    view = await history.load(conversation)
    assert said(view.messages) == service.memory
    assert view.open_calls == ()


async def test_only_the_first_call_carries_them(conversation: Conversation) -> None:
    service = StrictService()
    calls = await ended_early(conversation, service, results=1)
    async with conversation.run(carry="none") as run:
        await run.add_result(calls[0], "own")
        await run.add_result(calls[1], "own")
        async with run.service_call() as call:
            await service.reply(call, "one")
        async with run.service_call() as call:
            assert call.sends == ()


async def test_a_second_try_of_a_failed_first_call_is_not_the_first(conversation: Conversation) -> None:
    """A run's first call carries; when it fails, what it carried must still be sent by the next."""
    service = StrictService()
    await ended_early(conversation, service)
    async with conversation.run() as run:
        await run.add(user("and now?"))
        async with run.service_call() as call:
            await call.fail("busy", outcome="refused")
        async with run.service_call() as call:
            await service.reply(call, "fine")
    assert said((await history.load(conversation)).messages) == service.memory


async def test_carrying_can_be_switched_off(conversation: Conversation) -> None:
    service = StrictService()
    await ended_early(conversation, service)
    async with conversation.run(carry="none") as run:
        appended = await run.add(user("and now?"))
        assert appended is not None
        async with run.service_call() as call:
            assert call.sends == (appended.first,)
            with pytest.raises(AssertionError, match="400"):
                await service.reply(call, "fine")
            await call.fail("400", outcome="refused")
    assert [call.call_id for call in (await history.load(conversation)).open_calls] == ["a", "b"]


async def test_a_result_that_the_run_itself_records_comes_first(conversation: Conversation) -> None:
    service = StrictService()
    calls = await ended_early(conversation, service)
    async with conversation.run() as run:
        mine = await run.add_result(calls[0], "newer a")
        assert mine is not None
        async with run.service_call() as call:
            assert mine.first in call.sends
            results = [parts for role, parts in said(await history.for_call(call)) if role == "tool"]
            await service.reply(call, "fine")
    assert sorted(results, key=lambda parts: str(parts[0]["id"])) == [
        [tool_result("a", "newer a")],
        [tool_result("b", "result b")],
    ]
    assert said((await history.load(conversation)).messages) == service.memory


async def test_a_real_result_is_carried_before_a_synthetic_one(conversation: Conversation) -> None:
    service = StrictService()
    calls = await ended_early(conversation, service, results=0)
    async with conversation.run(carry="none") as run:
        await run.add_result(calls[0], "made up", synthetic=True)
        await run.add_result(calls[1], "made up", synthetic=True)
    await conversation.add_result(calls[0], "late, but real")
    async with conversation.run() as run, run.service_call() as call:
        results = [parts[0]["response"] for role, parts in said(await history.for_call(call)) if role == "tool"]
        await service.reply(call, "fine")
    assert results == ["late, but real", "made up"]


async def test_what_was_recorded_and_is_closed_is_not_carried_again(conversation: Conversation) -> None:
    service = StrictService()
    calls = await ended_early(conversation, service)
    async with conversation.run() as run, run.service_call() as call:
        await service.reply(call, "fine")
    await conversation.add_result(calls[0], "too late")
    async with conversation.run() as run:
        await run.add(user("next"))
        async with run.service_call() as call:
            await service.reply(call, "yes")
    assert said((await history.load(conversation)).messages) == service.memory


async def test_a_rewind_makes_the_results_carried_again(conversation: Conversation) -> None:
    service = StrictService()
    await ended_early(conversation, service)
    before = (await conversation.head()).last
    memory = list(service.memory)
    async with conversation.run() as run, run.service_call() as call:
        await service.reply(call, "wrong")
    await conversation.rewind(before.version, expected=(await conversation.head()).last)
    service.memory = memory
    async with conversation.run() as run, run.service_call() as call:
        await service.reply(call, "right")
    assert said((await history.load(conversation)).messages) == service.memory


async def test_a_bare_id_is_carried_for_the_call_it_will_close(conversation: Conversation) -> None:
    service = StrictService()
    await ended_early(conversation, service, results=0)
    await conversation.add_result("b", "B")
    await conversation.add_result("a", "A")
    await conversation.add_result("a", "A again")
    async with conversation.run() as run, run.service_call() as call:
        assert [p[0]["response"] for role, p in said(await history.for_call(call)) if role == "tool"] == ["A", "B"]
        await service.reply(call, "fine")
    view = await history.load(conversation)
    assert said(view.messages) == service.memory
    assert view.open_calls == view.stray_results == ()


async def test_a_per_run_run_sends_its_own_earlier_units(conversation: Conversation) -> None:
    service = StrictService()
    await conversation.add(user("before"))
    async with conversation.run("per-run") as run:
        await run.add(user("go"))
        async with run.service_call() as call:
            (function_call,) = await service.reply(call, "let me see", tool_call("a", "f"))
        await run.add_result(function_call, "x")
        async with run.service_call() as call:
            assert said(await history.for_call(call)) == [
                ("user", [text("before")]),
                ("user", [text("go")]),
                ("assistant", [text("let me see"), tool_call("a", "f")]),
                ("tool", [tool_result("a", "x")]),
            ]
            await service.reply(call, "done")
        assert said((await history.load(conversation)).messages) == [("user", [text("before")])]
    assert said((await history.load(conversation)).messages) == service.memory


async def test_nobody_sends_the_units_of_another_per_run_run(conversation: Conversation) -> None:
    async with conversation.run("per-run", exclusive=False) as one, conversation.run(exclusive=False) as other:
        await one.add(user("one"))
        await other.add(user("other"))
        async with one.service_call() as call:
            await call.complete(assistant("ONE"))
        async with other.service_call() as call:
            assert said(await history.for_call(call)) == [("user", [text("other")])]


async def test_a_call_that_continues_sends_only_its_inputs(conversation: Conversation) -> None:
    service = StrictService()
    async with conversation.run() as run:
        await run.add(user("one"))
        async with run.service_call() as call:
            await service.reply(call, "ONE")
    await conversation.add(user("meanwhile"))
    how = (await history.load(conversation)).continuation
    assert (how.service, how.in_step) == ({"response": "s1"}, True)
    async with conversation.run() as run:
        await run.add(user("two"))
        async with run.service_call(continues=how.service, ahead=how.ahead) as call:
            assert said(await history.for_call(call)) == [("user", [text("meanwhile")]), ("user", [text("two")])]
            await service.reply(call, "TWO")
    assert said((await history.load(conversation)).messages) == service.memory
    assert (await history.load(conversation)).continuation.ahead == ()


async def test_a_summary_that_is_ahead_is_sent_and_stands_once(conversation: Conversation) -> None:
    old = await conversation.add(user("old"))
    async with conversation.run() as run:
        await run.add(user("one"))
        async with run.service_call() as call:
            await call.complete(assistant("ONE"), service={"response": "s1"})
    compacted = await conversation.compact(old.first, [user("sum")], expected=(await conversation.head()).last)
    how = (await history.load(conversation)).continuation
    assert how.ahead == (compacted.first,)
    async with conversation.run() as run, run.service_call(continues=how.service, ahead=how.ahead) as call:
        assert said(await history.for_call(call)) == [("user", [text("sum")])]
        await call.complete(assistant("TWO"), service={"response": "s2"})
    view = await history.load(conversation)
    assert [message.text for message in view.messages] == ["sum", "one", "ONE", "TWO"]
    assert view.continuation.ahead == ()


async def test_a_call_is_sent_as_of_its_start(conversation: Conversation) -> None:
    async with conversation.run() as run:
        await run.add(user("one"))
        async with run.service_call() as call:
            await conversation.add(user("too late"))
            await run.add(user("also too late"))
            assert said(await history.for_call(call)) == [("user", [text("one")])]
            await call.complete(assistant("ONE"))


async def test_an_input_that_is_in_the_view_already_is_sent_once_and_where_it_stands(
    conversation: Conversation,
) -> None:
    first = await conversation.add(user("one"))
    await conversation.add(user("two"))
    async with conversation.run() as run, run.service_call(sends=[first.first]) as call:
        assert said(await history.for_call(call)) == [("user", [text("one")]), ("user", [text("two")])]
        await call.complete(assistant("yes"))


STEP = st.tuples(
    st.sampled_from(["message", "outside", "call", "call", "tools", "fail", "turn", "early"]), st.integers(0, 7)
)
REPLIES: tuple[tuple[str | dict[str, Any], ...], ...] = (
    ("text",),
    (),
    (tool_call("a", "f"),),
    ("before", tool_call("a", "f"), "between", tool_call("b", "f"), "after"),
)


class Agent:
    """Turns of one agent after another: each step is taken when it is possible."""

    def __init__(self, conversation: Conversation, mode: str) -> None:
        self.conversation = conversation
        self.mode = mode
        self.service = StrictService()
        self.run: Run | None = None
        self.waiting: list[FunctionCall] = []
        """The calls without a recorded result."""
        self.completed = False
        """Whether a call of this run was completed."""

    async def take(self, steps: list[tuple[str, int]]) -> None:
        for number, (step, choice) in enumerate(steps):
            if self.run is None:
                self.run = await self.conversation.run(self.mode).__aenter__()
            if step == "message":
                await self.run.add(user(f"m{number}"))
            elif step == "outside" and not (self.completed and self.mode == "per-run"):
                await self.conversation.add(user(f"o{number}"))
            elif step == "tools":
                await self.record_results(choice)
            elif step in ("call", "fail"):
                await self.call(choice, fails=step == "fail")
            elif step == "early" and self.waiting:
                await self.end("terminated")
                for function_call in self.waiting:
                    await self.conversation.add_result(function_call, f"late {function_call.call_id}")
                self.waiting = []
            elif step == "turn" and not self.waiting:
                await self.end("completed")

    async def end(self, outcome: Literal["completed", "terminated"]) -> None:
        assert self.run is not None
        completed = self.completed
        await self.run.commit(outcome)
        self.run, self.completed = None, False
        if completed and self.mode == "per-run":
            await self.compare()

    async def record_results(self, choice: int) -> None:
        """One result or all, in this order or that."""
        assert self.run is not None
        order = self.waiting[::-1] if choice % 2 else list(self.waiting)
        for function_call in order[: 1 if choice % 4 == 0 else None]:
            await self.run.add_result(function_call, f"x{choice}", message_id="results" if choice > 3 else None)
            self.waiting.remove(function_call)

    async def call(self, choice: int, *, fails: bool) -> None:
        if self.waiting or self.run is None:
            return
        how = (await history.load(self.conversation)).continuation
        options: dict[str, Any] = {}
        if choice % 2 and how.in_step and how.service:
            options = {"continues": how.service, "ahead": how.ahead}
        async with self.run.service_call(**options) as call:
            if fails:
                await call.fail("busy", outcome="refused", partial=[text("half")])
                return
            self.waiting = await self.service.reply(call, *REPLIES[choice // 2])
        self.completed = True
        if self.mode == "per-service-call":
            view = await self.compare()
            assert [open_call.version for open_call in view.open_calls] == [made.version for made in self.waiting]

    async def compare(self) -> View:
        """What the service holds is what the history shows."""
        view = await history.load(self.conversation)
        assert said(view.messages) == self.service.memory
        assert view.continuation.ahead == ()
        return view


@pytest.mark.parametrize("mode", ["per-service-call", "per-run"])
@given(steps=st.lists(STEP, max_size=25))
def test_after_each_completed_call_or_run_the_history_is_the_services_own_memory(
    mode: str, steps: list[tuple[str, int]]
) -> None:
    async def play() -> None:
        async with EventLog.open("memory://") as log:
            await Agent(log.tenant("t").conversation("c"), mode).take(steps)

    anyio.run(play)
