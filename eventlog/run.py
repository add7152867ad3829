"""A run: the recorder that an agent holds during one turn.

Each step is appended when it happens. What a caller hands over is taken as it is at the moment of
the call, before anything is awaited: it may change its lists afterwards.
"""

from __future__ import annotations

import os
import socket
from bisect import insort
from collections.abc import Coroutine, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import anyio

from eventlog import recording
from eventlog.appender import Appender
from eventlog.carry import carried
from eventlog.errors import EventLogError
from eventlog.events import Draft, Mode
from eventlog.heartbeat import Heartbeat
from eventlog.identity import new_fence, new_id
from eventlog.messages import Json, Message
from eventlog.progress import FunctionCall, Progress
from eventlog.service_call import CLOSING_SECONDS, ServiceCall
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
        self.mode = Mode(data["mode"])
        self.agent: str | None = data.get("agent")
        self._appender = appender
        self._data = data
        self._exclusive = exclusive
        self._carry = carry
        self._lease = lease
        self._expected = expected
        self._fence = new_fence()
        self._unsent: list[int] = []
        self._sent: set[int] = set()
        self._calls = 0
        self._has_completed = False
        self._ended = False
        self._heartbeat = Heartbeat(self.renew, lease / _BEATS_A_LEASE)

    async def __aenter__(self) -> Self:
        await self._open()
        self._heartbeat.start()
        return self

    async def _open(self) -> None:
        claim = self._claim(Step.START, mode=self.mode.value, exclusive=self._exclusive, holder=this_holder())
        draft = Draft("run-started", self._data, run=self.id)
        await self._appender.append([draft], operation_id=self.id, expected=self._expected, claim=claim)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self._ended:
                await self._leave(error)
        finally:
            await self._heartbeat.stop()

    async def _leave(self, error: BaseException | None) -> None:
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
    def _lease_ms(self) -> int:
        return int(self._lease * 1000)

    @property
    def unsent(self) -> tuple[int, ...]:
        """The versions of this run's inputs that no completed service call has carried yet, in log order."""
        return tuple(self._unsent)

    async def renew(self) -> None:
        """Hold the run for another lease. Done by every append, and by a heartbeat in between.

        Raises ``RunFenced`` when it was taken over, ``RunClosed`` when it was ended.
        """
        await self._appender.store.renew(self._appender.log, self.id, self._fence, self._lease_ms)

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
        names others. Until a call of the run has completed, calls also carry the recorded results
        of function calls that are still open in the view, unless the run was opened with
        ``carry="none"``. ``continues`` holds the service ids the request builds on, and ``ahead``
        what such a request must send besides (see ``View.continuation``); None when the whole
        history is sent. ``instructions`` and ``tools`` are digests or references.
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
            if version not in self._unsent and version not in self._sent:
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

    async def _carried(self) -> list[int]:
        """What a call sends besides this run's own inputs, until one has completed and so has carried it."""
        if self._carry == "none" or self._has_completed:
            return []
        return carried(await self.conversation.ledger(), self.id)


class ResumedRun(Run):
    """A run that was taken over. ``progress`` tells how far it had come. Make it with ``conversation.resume``."""

    progress: Progress
    """Set when the block is entered."""

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
        draft = Draft("run-resumed", {"by": holder, "fence": self._fence}, run=self.id)
        appended = await self._appender.append([draft], claim=claim)
        self.progress = await self.conversation.progress(self.id, until=appended.first)
        self.mode, self.agent = self.progress.mode, self.progress.agent
        self._unsent, self._calls = list(self.progress.unsent), self.progress.last_call
        self._sent, self._has_completed = set(self.progress.sent), self.progress.last_completed > 0


def this_holder() -> str:
    """How others are told who holds a run: host and process."""
    return f"{socket.gethostname()}:{os.getpid()}"
