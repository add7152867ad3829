"""A run of the SDK, recorded as it happens: its hooks, and the block that begins and ends it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import anyio
from agents.exceptions import (
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    OutputGuardrailTripwireTriggered,
)
from agents.lifecycle import RunHooksBase

from eventlog.conversation import check_lease
from eventlog.errors import InvalidInput
from eventlog.heartbeat import Heartbeat
from eventlog.identity import new_fence, new_id
from eventlog.run import this_holder
from eventlog.steps import CLOSING_SECONDS, Steps, told
from eventlog.store.port import RunClaim, Step
from gateway.adapters.openai_agents.kinds import Item
from gateway.adapters.openai_agents.turns import Call, Operation, leading_inputs

if TYPE_CHECKING:
    from agents import Agent, ModelResponse, RunContextWrapper

    from gateway.adapters.openai_agents.session import EventLogSession

_BEATS_A_LEASE = 3
_Outcome = Literal["completed", "terminated", "max-iterations"]


class RecordedRun(RunHooksBase[Any, Any]):
    """One run of the SDK. Make it with ``session.run`` and use it as a context manager and as the run's hooks.

    Leaving the block commits the run. What ends it by design is told as its outcome: too many
    turns, or a guardrail. Any other exception aborts it, with the reason; its completed calls stay.
    """

    def __init__(self, session: EventLogSession, *, agent: str | None, exclusive: bool, lease: float) -> None:
        self.id = new_id()
        self.exclusive = exclusive
        self._session = session
        self._agent = agent
        self._lease_ms = int(check_lease(lease) * 1000)
        self._fence = new_fence()
        self._number = 0
        """That of its newest service call."""
        self._out: list[Call] = []
        """The service calls that went out and have not replied."""
        self._replied: list[Call] = []
        """Those that replied, and whose reply the SDK has not added yet."""
        self._steps = Steps()
        self._heartbeat = Heartbeat(self._renew, lease / _BEATS_A_LEASE)

    async def __aenter__(self) -> Self:
        if self._session._run is not None:
            raise InvalidInput(f"the session {self._session.session_id!r} is recording a run: leave its block first")
        await self._steps.enter(self._session.record(self._begin), self._give_up)
        self._session._run = self
        self._heartbeat.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            closing = self._session.record(lambda operation: self._end(operation, error))
            failure = await self._steps.close(closing, None if error is None else CLOSING_SECONDS)
        finally:
            self._session._run = None
            await self._heartbeat.stop()
        if failure is not None and error is None:
            raise failure
        if failure is not None and error is not None:
            error.add_note(f"the end of run {self.id!r} could not be recorded: {failure}")

    async def on_llm_start(
        self,
        context: RunContextWrapper[Any],
        agent: Agent[Any],
        system_prompt: str | None,
        input_items: list[Any],
    ) -> None:
        """The request is about to go out: from here on it is in doubt until it replies."""
        model = _model(agent)
        failed, self._number = self._out, self._number + 1
        call = Call(self._number, {} if model is None else {"model": model})
        self._out = [call]
        sent = replace(call)
        await self._session.record(lambda operation: self._go_out(operation, sent, failed))
        call.sends = sent.sends

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """It has replied. The SDK adds the reply to the session when it has looked at it."""
        if not self._out:
            return
        call, usage = self._out.pop(0), response.usage
        call.completed["usage"] = {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
        }
        if response.response_id is not None:
            call.completed["service"] = {"response": response.response_id}
        call.reply = [dict(item) for item in response.to_input_items()]
        self._replied.append(call)

    async def add(self, items: Sequence[Item | str], operation_id: str | None) -> None:
        """Add items to the session within this run."""
        out = list(self._out)
        laid: list[Call] = []

        def lay_out(operation: Operation) -> RunClaim:
            laid[:] = [replace(call) for call in out]  # it may be laid out again: until it is appended nothing changes
            return self._lay_out(operation, items, laid)

        operation = await self._session.record(lay_out, operation_id=operation_id)
        assert operation is not None
        for call, sent in zip(out, laid, strict=False):
            call.number, call.sends = sent.number, sent.sends
        self._number = max(self._number, operation.number)
        done = {draft.call for draft in operation.drafts if draft.type == "service-call-completed"}
        self._replied = [call for call in self._replied if call.number not in done]

    def _lay_out(self, operation: Operation, items: Sequence[Item | str], out: Sequence[Call]) -> RunClaim:
        operation.run, operation.number = self.id, self._number
        inputs = leading_inputs(items)
        operation.add(items[:inputs])
        for call in out if inputs else ():
            if call.sends is not None:
                operation.fail(call, "its input was recorded after its start, and stands in the next start", "refused")
                call.number = operation.next_call().number
            operation.start(call)
        operation.add(items[inputs:], [replace(call) for call in self._replied])
        return self._claim(Step.GO_ON, last_call=operation.number)

    def _begin(self, operation: Operation) -> RunClaim:
        data: dict[str, Any] = {"mode": "per-service-call"}
        if self._agent is not None:
            data["agent"] = self._agent
        self.id = operation.run = operation.id
        operation.put("run-started", data)
        return self._claim(Step.START, mode="per-service-call", exclusive=self.exclusive, holder=this_holder())

    def _go_out(self, operation: Operation, call: Call, failed: Sequence[Call]) -> RunClaim | None:
        """The start of a call. One that has nothing to send yet is recorded with its input, which is to come."""
        operation.run = self.id
        for one in failed:
            operation.fail(replace(one), "it ended without a reply", "unknown")
        if not operation.unsent:
            return self._claim(Step.GO_ON) if operation.drafts else None
        operation.start(call)
        return self._claim(Step.GO_ON, last_call=call.number)

    def _end(self, operation: Operation, error: BaseException | None) -> RunClaim:
        operation.run = self.id
        for call in self._replied:
            operation.fail(replace(call), "its reply was not added to the session", "unknown")
        for call in self._out:
            operation.fail(replace(call), "the run ended without its reply", "unknown")
        outcome = _outcome(error)
        if outcome is not None:
            operation.put("run-committed", {"outcome": outcome})
        elif isinstance(error, anyio.get_cancelled_exc_class()):
            operation.put("run-aborted", {"reason": "cancelled", "error": None})
        else:
            operation.put("run-aborted", {"reason": "failed", "error": told(error or RuntimeError())})
        return self._claim(Step.GO_ON, last_call=self._number, closes=True)

    async def _give_up(self) -> None:
        """The run was begun and its caller cancelled before the block began."""
        await self._session.record(lambda operation: self._end(operation, None))

    async def _renew(self) -> None:
        conversation = await self._session.conversation()
        await conversation.store.renew(conversation.log, self.id, self._fence, self._lease_ms)

    def _claim(self, step: Step, **fields: Any) -> RunClaim:
        return RunClaim(self.id, step, self._fence, self._lease_ms, **fields)


def _outcome(error: BaseException | None) -> _Outcome | None:
    """How a run ended that was not broken off; None for one that was."""
    if error is None:
        return "completed"
    if isinstance(error, MaxTurnsExceeded):
        return "max-iterations"
    if isinstance(error, InputGuardrailTripwireTriggered | OutputGuardrailTripwireTriggered):
        return "terminated"
    return None


def _model(agent: Agent[Any]) -> str | None:
    """The model that an agent names, where it names one."""
    name = agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", None)
    return name if isinstance(name, str) and name else None
