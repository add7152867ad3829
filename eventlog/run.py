"""A run: the recorder that an agent holds during one turn.

Each step is appended when it happens. What a caller hands over is taken as it is at the moment of
the call, before anything is awaited: it may change its lists afterwards.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Coroutine, Mapping, Sequence
from copy import deepcopy
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import anyio

from eventlog import recording
from eventlog.appender import Appender, Prepared
from eventlog.carry import carried
from eventlog.errors import AlreadyAnswered, InvalidInput
from eventlog.events import Draft, Mode
from eventlog.heartbeat import Heartbeat
from eventlog.identity import new_fence, new_id
from eventlog.messages import Json, Message
from eventlog.progress import FunctionCall, Progress
from eventlog.service_call import ServiceCall
from eventlog.steps import CLOSING_SECONDS, Steps, told
from eventlog.store.port import ANY, Appended, Expected, RunClaim, Step

if TYPE_CHECKING:
    from eventlog.conversation import Conversation

Outcome = Literal["completed", "terminated", "max-iterations"]
AbortReason = Literal["failed", "cancelled", "expired", "superseded", "sealed"]
Carry = Literal["results", "none"]

_BEATS_A_LEASE = 3


class Run:
    """One agent turn. Make it with ``conversation.run`` and use it as an asynchronous context manager.

    Leaving the block commits; leaving it by an exception or a cancellation aborts, with the reason.
    ``progress`` tells how far it has come by its own steps; ``conversation.progress`` reads the log.
    """

    def __init__(
        self,
        conversation: Conversation,
        appender: Appender,
        *,
        run: str | None,
        data: dict[str, Any],
        exclusive: bool,
        carry: Carry,
        lease: float,
        expected: Expected | str,
    ) -> None:
        self.conversation = conversation
        self.id = new_id() if run is None else run
        self.progress = Progress(self.id, Mode(data["mode"]), data.get("agent"))
        self._appender = appender
        self._data = data
        self._exclusive = exclusive
        self._carry = carry
        self._lease_ms = int(lease * 1000)
        self._expected = expected
        self._fence = new_fence()
        self._calls = 0
        self._steps = Steps()
        self._entered = False
        self._heartbeat = Heartbeat(self.renew, lease / _BEATS_A_LEASE)

    @property
    def mode(self) -> Mode:
        """When what it does enters the history."""
        return self.progress.mode

    @property
    def agent(self) -> str | None:
        """Who acts."""
        return self.progress.agent

    @property
    def unsent(self) -> tuple[int, ...]:
        """The versions of its inputs that no completed service call has carried yet, in log order."""
        return tuple(self.progress.unsent)

    async def __aenter__(self) -> Self:
        if self._entered:
            raise InvalidInput(f"run {self.id!r} was entered before: make another with `conversation.run`")
        self._entered = True
        await self._steps.enter(self._open(), self._give_up)
        self._heartbeat.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            failure = await self._steps.close(self._leave(error), None if error is None else CLOSING_SECONDS)
        finally:
            await self._heartbeat.stop()
        if failure is not None and error is None:
            raise failure
        if failure is not None and error is not None:
            error.add_note(f"run {self.id!r} could not be aborted: {failure}")

    async def renew(self) -> None:
        """Hold the run for another lease. Done by every append, and by a heartbeat in between.

        Raises ``RunFenced`` when it was taken over, ``RunClosed`` when it was ended.
        """
        await self._appender.store.renew(self._appender.log, self.id, self._fence, self._lease_ms)

    def add(self, *messages: Message, operation_id: str | None = None) -> Coroutine[Any, Any, Appended | None]:
        """Record messages as inputs of this run, in one append.

        A message that was read from this log is known by its event and not recorded again, even if
        it was changed since: make a new ``Message`` for that. None when nothing is left to record.
        """
        operation = new_id() if operation_id is None else operation_id
        if any(message.versions for message in messages if isinstance(message, Message)):
            return self._add_new(deepcopy(messages), operation, named=operation_id is not None)
        return self._record(recording.inputs(messages, operation, self.id), operation, named=operation_id is not None)

    def add_result(
        self,
        call: FunctionCall | str,
        output: Json,
        *,
        is_error: bool = False,
        message_id: str | None = None,
        extra: dict[str, Json] | None = None,
        synthetic: bool = False,
        operation_id: str | None = None,
    ) -> Coroutine[Any, Any, Appended | None]:
        """Record what a tool returned, the moment it does.

        ``call`` is the function call that is answered, or its bare id when that is all there is.
        Results with one ``message_id`` that are sent next to each other make one message. Raises
        ``AlreadyAnswered`` when this run holds a result for the call.
        """
        operation = new_id() if operation_id is None else operation_id
        draft = recording.result(
            call.call_id if isinstance(call, FunctionCall) else call,
            output,
            message_id or f"{operation}.0",
            answers=call.version if isinstance(call, FunctionCall) else None,
            is_error=is_error,
            synthetic=synthetic,
            extra=extra,
            run=self.id,
        )
        return self._record([draft], operation, named=operation_id is not None)

    def service_call(
        self,
        *,
        sends: Sequence[int] | None = None,
        continues: Mapping[str, Json] | None = None,
        ahead: Sequence[int] = (),
        model: str | None = None,
        instructions: str | None = None,
        tools: str | None = None,
    ) -> ServiceCall:
        """One request to the model service, used as an asynchronous context manager.

        It sends the inputs of this run that no completed call has carried, in log order; ``sends``
        names others. Until a call of the run has completed, calls also carry the recorded results
        of function calls that are still open in the view, unless the run was opened with
        ``carry="none"``. ``continues`` holds the service ids the request builds on, and ``ahead``
        what such a request must send besides (see ``View.continuation``); None when the whole
        history is sent. ``instructions`` and ``tools`` are digests or references.
        """
        if continues is not None and not isinstance(continues, Mapping):
            raise InvalidInput(f"continues={continues!r}: give the service ids of a continuation, or None")
        data: dict[str, Any] = {"continues": None if continues is None else dict(continues)}
        for name, value in (("model", model), ("instructions", instructions), ("tools", tools)):
            if value is not None:
                data[name] = value
        return ServiceCall(self, None if sends is None else list(sends), list(ahead), data)

    async def commit(self, outcome: Outcome = "completed", *, usage: dict[str, Json] | None = None) -> Appended:
        """End the run; what it did stands as its mode says."""
        data: dict[str, Any] = {"outcome": outcome}
        if usage is not None:
            data["usage"] = usage
        return await self._steps.run(self._end("run-committed", data))

    async def abort(self, reason: AbortReason = "failed", error: str | None = None) -> Appended:
        """Give the run up. Per service call its completed calls stay; per run nothing does."""
        return await self._steps.run(self._end("run-aborted", {"reason": reason, "error": error}))

    async def _open(self) -> None:
        claim = self._claim(Step.START, mode=self.mode.value, exclusive=self._exclusive, holder=this_holder())
        drafts = [Draft("run-started", self._data, run=self.id)]
        prepared = self._appender.prepare(drafts, operation_id=self.id, expected=self._expected, claim=claim)
        outcome = await self._send(prepared)
        if outcome.duplicate:
            await self.renew()  # a run of this id was started before: go on only as its holder

    async def _give_up(self) -> None:
        """The run was opened and its caller cancelled before the block began."""
        await self._end("run-aborted", {"reason": "cancelled", "error": None})

    async def _leave(self, error: BaseException | None) -> None:
        await self._steps.settled()
        if self.progress.ended:
            return
        if error is None:
            await self._end("run-committed", {"outcome": "completed"})
        elif isinstance(error, anyio.get_cancelled_exc_class()):
            await self._end("run-aborted", {"reason": "cancelled", "error": None})
        else:
            await self._end("run-aborted", {"reason": "failed", "error": told(error)})

    async def _end(self, kind: str, data: dict[str, Any]) -> Appended:
        return await self._send(self._prepare([Draft(kind, data, run=self.id)], closes=True))

    async def _add_new(self, messages: Sequence[Message], operation: str, *, named: bool) -> Appended | None:
        new = await self.conversation.unrecorded(messages)
        return await self._record(recording.inputs(new, operation, self.id), operation, named=named)

    def _record(self, drafts: list[Draft], operation: str, *, named: bool) -> Coroutine[Any, Any, Appended | None]:
        if not named:  # a named operation may be a retry, which the store recognises
            for draft in drafts:
                self._check_unanswered(draft)
        return self._recorded(self._prepare(drafts, operation) if drafts else None)

    async def _recorded(self, prepared: Prepared | None) -> Appended | None:
        return None if prepared is None else await self._steps.run(self._send(prepared))

    def _check_unanswered(self, draft: Draft) -> None:
        """A bare result needs a call of its id that has none, where this run asked under that id at all."""
        if draft.type != "function-result" or draft.data.get("answers") is not None:
            return
        call_id = draft.data.get("call_id")
        if call_id in self.progress.asked and not any(
            call.call_id == call_id for call in self.progress.unanswered.values()
        ):
            raise AlreadyAnswered(
                f"run {self.id!r} holds a result for each of its calls {call_id!r}: a call has one result in its run",
                self.id,
            )

    def _prepare(
        self, drafts: list[Draft], operation: str | None = None, *, last_call: int = 0, closes: bool = False
    ) -> Prepared:
        answers = tuple(draft.data["answers"] for draft in drafts if draft.data.get("answers") is not None)
        claim = self._claim(Step.GO_ON, last_call=last_call, closes=closes, answers=answers)
        return self._appender.prepare(drafts, operation_id=operation, expected=ANY, claim=claim)

    async def _send(self, prepared: Prepared) -> Appended:
        """Append, and know how far the run has come."""
        outcome = await self._appender.send(prepared)
        for version, event in zip(outcome.versions, prepared.events(), strict=True):
            self.progress.apply(event._replace(version=version))
        return outcome

    def _claim(self, step: Step, **fields: Any) -> RunClaim:
        return RunClaim(self.id, step, self._fence, self._lease_ms, **fields)

    def _prepare_call(self, data: dict[str, Any]) -> tuple[Prepared, int]:
        """The start of the next service call, and its number; a start that cannot be made takes none."""
        number = self._calls + 1
        drafts = [Draft("service-call-started", data, run=self.id, call=number)]
        prepared = self._prepare(drafts, last_call=number)
        self._calls = number
        return prepared, number

    async def _to_send(self) -> list[int]:
        """What a call sends that names nothing itself: what it carries for earlier runs, and this run's inputs."""
        if self.progress.unanswered:
            # Somebody else may have recorded what is missing, outside the run.
            self.progress = await self.conversation.progress(self.id)
        if self._carry == "none" or self.progress.last_completed:
            return list(self.progress.unsent)
        return [*carried(await self.conversation.ledger(), self.id), *self.progress.unsent]


class ResumedRun(Run):
    """A run that was taken over. Make it with ``conversation.resume``."""

    def __init__(
        self, conversation: Conversation, appender: Appender, run: str, *, carry: Carry, lease: float, force: bool
    ) -> None:
        super().__init__(
            conversation,
            appender,
            run=run,
            data={"mode": Mode.PER_SERVICE_CALL.value},
            exclusive=True,
            carry=carry,
            lease=lease,
            expected=ANY,
        )
        self._force = force

    async def _open(self) -> None:
        holder = this_holder()
        claim = self._claim(Step.FORCE if self._force else Step.RESUME, holder=holder)
        drafts = [Draft("run-resumed", {"by": holder, "fence": self._fence}, run=self.id)]
        appended = await self._appender.append(drafts, claim=claim)
        self.progress = await self.conversation.progress(self.id, until=appended.first)
        self._calls = self.progress.last_call

    async def _give_up(self) -> None:
        """The run was taken over and its caller cancelled before the block began: others may take it at once."""
        await self._appender.store.renew(self._appender.log, self.id, self._fence, 0)


def this_holder() -> str:
    """How others are told who holds a run: host and process."""
    return f"{socket.gethostname()}:{os.getpid()}"
