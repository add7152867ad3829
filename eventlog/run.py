"""A run and its service calls: the recorder that an agent holds during one turn.

Each step is appended when it happens. What a caller hands over is taken as it is at the moment of
the call, before anything is awaited: it may change its lists afterwards.
"""

from __future__ import annotations

import os
import socket
from bisect import insort
from collections.abc import Coroutine, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import anyio

from eventlog import recording
from eventlog.appender import Appender
from eventlog.carry import carried
from eventlog.errors import EventLogError, InvalidInput
from eventlog.events import Draft, Mode
from eventlog.identity import Cursor, new_fence, new_id
from eventlog.messages import Json, Message
from eventlog.store.port import ANY, Appended, Expected, RunClaim, Step

if TYPE_CHECKING:
    from eventlog.log import Conversation

Outcome = Literal["completed", "terminated", "max-iterations"]
AbortReason = Literal["failed", "cancelled", "expired", "superseded", "sealed"]

CLOSING_SECONDS = 10.0
"""How long the end of a run is waited for when its block was left by an exception."""


class FunctionCall(NamedTuple):
    """A tool call of a completed service call, to be answered with ``run.add_result``."""

    version: int
    call_id: str
    name: str
    arguments: Json


class Run:
    """One agent turn. Make it with ``conversation.run`` and use it as an asynchronous context manager.

    Leaving the block commits; leaving it by an exception or a cancellation aborts, with the reason.
    """

    def __init__(
        self,
        conversation: Conversation,
        appender: Appender,
        *,
        mode: Mode,
        agent: str | None,
        exclusive: bool,
        carry: Literal["results", "none"],
        data: dict[str, Any],
        lease: float,
        operation_id: str | None,
        expected: Expected | str,
    ) -> None:
        self.conversation = conversation
        self.mode = mode
        self.agent = agent
        self.id = new_id() if operation_id is None else operation_id
        self._appender = appender
        self._exclusive = exclusive
        self._carry = carry
        self._data = data
        self._lease_ms = int(lease * 1000)
        self._expected = expected
        self._fence = new_fence()
        self._unsent: list[int] = []
        self._calls = 0
        self._ended = False

    async def __aenter__(self) -> Run:
        claim = self._claim(
            Step.START, mode=self.mode.value, exclusive=self._exclusive, holder=f"{socket.gethostname()}:{os.getpid()}"
        )
        draft = Draft("run-started", self._data, run=self.id)
        await self._appender.append([draft], operation_id=self.id, expected=self._expected, claim=claim)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ended:
            return
        if error is None:
            await self.commit()
            return
        cancelled = isinstance(error, anyio.get_cancelled_exc_class())
        with anyio.move_on_after(CLOSING_SECONDS, shield=True):
            try:
                await self.abort("cancelled" if cancelled else "failed", None if cancelled else repr(error))
            except EventLogError as failure:
                error.add_note(f"run {self.id!r} could not be aborted: {failure}")

    @property
    def unsent(self) -> tuple[int, ...]:
        """The versions of this run's inputs that no completed service call has carried yet, in log order."""
        return tuple(self._unsent)

    def add(self, *messages: Message, operation_id: str | None = None) -> Coroutine[Any, Any, Appended | None]:
        """Record messages as inputs of this run, in one append.

        A message that was read from this log is known by its versions and not recorded again; None
        when that leaves nothing.
        """
        operation = new_id() if operation_id is None else operation_id
        new = [message for message in messages if message.log != self._appender.log.tag]
        drafts = recording.inputs(new, operation, self.id)
        return self._record(drafts, operation)

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
        Results with one ``message_id`` that are sent next to each other make one message.
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
        return self._record([draft], operation)

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
        names others. The run's first call also carries the recorded results of calls that are
        still open in the view, unless the run was opened with ``carry="none"``. ``continues``
        holds the service ids the request builds on, and ``ahead`` what such a request must send
        besides (see ``View.continuation``); None when the whole history is sent. ``instructions``
        and ``tools`` are digests or references.
        """
        data: dict[str, Any] = {"continues": None if continues is None else dict(continues)}
        for name, value in (("model", model), ("instructions", instructions), ("tools", tools)):
            if value is not None:
                data[name] = value
        self._calls += 1
        return ServiceCall(self, self._calls, None if sends is None else list(sends), list(ahead), data)

    async def commit(self, outcome: Outcome = "completed", *, usage: dict[str, Json] | None = None) -> Appended:
        """End the run; what it did stands as its mode says."""
        data: dict[str, Any] = {"outcome": outcome}
        if usage is not None:
            data["usage"] = usage
        return await self._end(Draft("run-committed", data, run=self.id))

    async def abort(self, reason: AbortReason = "failed", error: str | None = None) -> Appended:
        """Give the run up. Per service call its completed calls stay; per run nothing does."""
        return await self._end(Draft("run-aborted", {"reason": reason, "error": error}, run=self.id))

    async def _end(self, draft: Draft) -> Appended:
        outcome = await self._append([draft], closes=True)
        self._ended = True
        return outcome

    def _record(self, drafts: list[Draft], operation: str) -> Coroutine[Any, Any, Appended | None]:
        appending = self._append(drafts, operation) if drafts else None
        return self._recorded(appending)

    async def _recorded(self, appending: Coroutine[Any, Any, Appended] | None) -> Appended | None:
        if appending is None:
            return None
        outcome = await appending
        for version in outcome.versions:
            if version not in self._unsent:
                insort(self._unsent, version)
        return outcome

    def _append(
        self, drafts: list[Draft], operation: str | None = None, *, last_call: int = 0, closes: bool = False
    ) -> Coroutine[Any, Any, Appended]:
        answers = tuple(draft.data["answers"] for draft in drafts if draft.data.get("answers") is not None)
        claim = self._claim(Step.GO_ON, last_call=last_call, closes=closes, answers=answers)
        return self._appender.append(drafts, operation_id=operation, expected=ANY, claim=claim)

    def _claim(self, step: Step, **fields: Any) -> RunClaim:
        return RunClaim(self.id, step, self._fence, self._lease_ms, **fields)

    async def _first_sends(self) -> list[int]:
        """What the first call carries besides this run's own inputs."""
        if self._carry == "none":
            return []
        return carried(await self.conversation.ledger(), self.id)


class ServiceCall:
    """One request to the model service. Leaving its block uncompleted records a failure."""

    def __init__(self, run: Run, number: int, sends: list[int] | None, ahead: list[int], data: dict[str, Any]) -> None:
        self.run = run
        self.number = number
        self.sends: tuple[int, ...] = ()
        """The versions of the inputs it carries, in the order sent."""
        self.started: Cursor | None = None
        """The cursor of its start; set when the block is entered."""
        self.function_calls: list[FunctionCall] = []
        """The calls in the reply that the application must answer; set by ``complete``."""
        self._wanted = sends
        self._ahead = ahead
        self._data = data
        self._ended = False

    @property
    def conversation(self) -> Conversation:
        """The conversation it is recorded in."""
        return self.run.conversation

    @property
    def continues(self) -> dict[str, Json] | None:
        """The service ids it builds on; None when it sends the whole history."""
        continues: dict[str, Json] | None = self._data["continues"]
        return continues

    async def __aenter__(self) -> ServiceCall:
        sends = self._wanted
        if sends is None:
            first = await self.run._first_sends() if self.number == 1 else []
            sends = list(dict.fromkeys((*self._ahead, *first, *self.run._unsent)))
        draft = Draft("service-call-started", {"sends": sends, **self._data}, run=self.run.id, call=self.number)
        outcome = await self.run._append([draft], last_call=self.number)
        self.sends, self.started = tuple(sends), outcome.cursor
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ended:
            return
        what = "the block was left without a reply" if error is None else repr(error)
        with anyio.move_on_after(CLOSING_SECONDS, shield=True):
            try:
                await self.fail(what)
            except EventLogError as failure:
                if error is None:
                    raise
                error.add_note(f"the failure of service call {self.number} could not be recorded: {failure}")

    def complete(
        self,
        *reply: Message,
        finish_reason: str | None = None,
        model: str | None = None,
        usage: dict[str, Json] | None = None,
        service: dict[str, Json] | None = None,
        operation_id: str | None = None,
    ) -> Coroutine[Any, Any, Appended]:
        """Record the reply: its messages, and that the call is completed, in one append.

        ``service`` holds the ids the service gave (response, conversation), for a later call that
        continues.
        """
        operation = new_id() if operation_id is None else operation_id
        outputs = recording.outputs(reply, operation, self.run.id, self.number)
        data: dict[str, Any] = {}
        for name, value in (
            ("finish_reason", finish_reason),
            ("model", model),
            ("usage", usage),
            ("service", service),
        ):
            if value is not None:
                data[name] = value
        completed = Draft("service-call-completed", data, run=self.run.id, call=self.number)
        self._check_open()
        return self._completed(outputs, self.run._append([*outputs, completed], operation))

    async def fail(
        self,
        error: str,
        *,
        outcome: Literal["refused", "unknown"] = "unknown",
        partial: Sequence[Mapping[str, Json]] = (),
    ) -> Appended:
        """Record that the call failed.

        ``refused``: the service certainly kept nothing. ``unknown``: it may have, as after a
        time-out or a broken stream. ``partial`` are the parts that had come in.
        """
        self._check_open()
        data: dict[str, Any] = {"error": error, "outcome": outcome}
        if partial:
            data["partial"] = [dict(part) for part in partial]
        appended = await self.run._append([Draft("service-call-failed", data, run=self.run.id, call=self.number)])
        self._ended = True
        return appended

    async def _completed(self, outputs: list[Draft], appending: Coroutine[Any, Any, Appended]) -> Appended:
        outcome = await appending
        self._ended = True
        self.run._unsent = [version for version in self.run._unsent if version not in self.sends]
        self.function_calls = [
            FunctionCall(version, draft.data["call_id"], draft.data["name"], draft.data.get("arguments"))
            for version, draft in zip(outcome.versions, outputs, strict=False)
            if draft.type == "function-call"
        ]
        return outcome

    def _check_open(self) -> None:
        if self.started is None:
            raise InvalidInput(f"service call {self.number} was not started: use it in an `async with` block")
        if self._ended:
            raise InvalidInput(f"service call {self.number} has ended: start another")
