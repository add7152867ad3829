"""One request to the model service, as it is recorded.

What a caller hands over is taken as it is at the moment of the call, before anything is awaited: it
may change its lists afterwards.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from eventlog import recording
from eventlog.appender import Prepared
from eventlog.errors import InvalidInput, OutcomeUnknown
from eventlog.events import Draft
from eventlog.identity import Cursor, new_id
from eventlog.messages import Json, Message
from eventlog.progress import FunctionCall
from eventlog.steps import CLOSING_SECONDS, told
from eventlog.store.port import Appended

if TYPE_CHECKING:
    from eventlog.conversation import Conversation
    from eventlog.run import Run

FailedOutcome = Literal["refused", "unknown"]


class ServiceCall:
    """One request to the model service. Leaving its block uncompleted records a failure."""

    def __init__(self, run: Run, sends: list[int] | None, ahead: list[int], data: dict[str, Any]) -> None:
        self.run = run
        self.number = 0
        """Its number within the run, 1, 2, 3 …; set when the block is entered."""
        self.sends: tuple[int, ...] = ()
        """The versions of the inputs it carries, in the order sent; set when the block is entered."""
        self.started: Cursor | None = None
        """The cursor of its start; set when the block is entered."""
        self.function_calls: list[FunctionCall] = []
        """The calls in the reply that the application must answer; set by ``complete``."""
        self._wanted = sends
        self._ahead = ahead
        self._data = data
        self._completion = new_id()
        self._ended = ""
        self._unlearnt: tuple[list[Draft], Prepared] | None = None
        """A completion whose outcome is unknown."""

    @property
    def conversation(self) -> Conversation:
        """The conversation it is recorded in."""
        return self.run.conversation

    @property
    def continues(self) -> dict[str, Json] | None:
        """The service ids it builds on; None when it sends the whole history."""
        continues: dict[str, Json] | None = self._data["continues"]
        return continues

    async def __aenter__(self) -> Self:
        if self.number:
            raise InvalidInput(f"service call {self.number} was entered before: make another")
        await self.run._steps.settled()
        if self._wanted is None:
            sends = [*self._ahead, *await self.run._to_send()]
        else:
            sends = await self._check_known(self._wanted)
        self.sends = tuple(dict.fromkeys(sends))
        prepared, self.number = self.run._prepare_call({"sends": list(self.sends), **self._data})
        await self.run._steps.enter(self._start(prepared), self._unsend)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ended:
            return
        what = "the block was left without a reply" if error is None else told(error)
        failure = await self.run._steps.close(self._leave(what), None if error is None else CLOSING_SECONDS)
        if failure is None:
            return
        if error is None:
            raise failure
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
        continues. It is one operation: given again, the same reply is recorded once, another one
        raises ``OperationReused``.
        """
        self._check_started()
        if self._ended == "failed":
            raise InvalidInput(f"service call {self.number} has failed: start another")
        operation = self._completion if operation_id is None else operation_id
        outputs = recording.outputs(reply, operation, self.run.id, self.number)
        data = {"finish_reason": finish_reason, "model": model, "usage": usage, "service": service}
        completed = self._draft(
            "service-call-completed", {name: value for name, value in data.items() if value is not None}
        )
        drafts = [*outputs, completed]
        return self._complete(drafts, self.run._prepare(drafts, operation))

    async def fail(
        self, error: str, *, outcome: FailedOutcome = "unknown", partial: Sequence[Mapping[str, Json]] = ()
    ) -> Appended:
        """Record that the call failed.

        ``refused``: the service certainly kept nothing. ``unknown``: it may have, as after a
        time-out or a broken stream. ``partial`` are the parts that had come in.
        """
        self._check_started()
        data: dict[str, Any] = {"error": error, "outcome": outcome}
        if partial:
            data["partial"] = [dict(part) for part in partial]
        drafts = [self._draft("service-call-failed", data)]
        prepared = self.run._prepare(drafts)
        await self.run._steps.settled()
        if self._ended:
            raise InvalidInput(f"service call {self.number} has {self._ended}: start another")
        return await self.run._steps.run(self._end("failed", drafts, prepared))

    async def _start(self, prepared: Prepared) -> None:
        self.started = (await self.run._send(prepared)).cursor

    async def _unsend(self) -> None:
        """The call was started and its caller cancelled before anything could go out."""
        await self._fail("cancelled before it was sent", "refused")

    async def _leave(self, what: str) -> None:
        await self.run._steps.settled()
        if self._ended:
            return
        if self._unlearnt is not None:
            await self._end("completed", *self._unlearnt)  # it may stand in the log: to send it again is to find out
        else:
            await self._fail(what, "unknown")

    async def _fail(self, error: str, outcome: FailedOutcome) -> None:
        drafts = [self._draft("service-call-failed", {"error": error, "outcome": outcome})]
        await self._end("failed", drafts, self.run._prepare(drafts))

    async def _complete(self, drafts: list[Draft], prepared: Prepared) -> Appended:
        return await self.run._steps.run(self._end("completed", drafts, prepared))

    async def _end(self, how: str, drafts: list[Draft], prepared: Prepared) -> Appended:
        try:
            outcome = await self.run._send(prepared)
        except OutcomeUnknown:
            if how == "completed":
                self._unlearnt = (drafts, prepared)
            raise
        self._ended = how
        self.function_calls = [
            FunctionCall(version, draft.data["call_id"], draft.data["name"], draft.data.get("arguments"))
            for version, draft in zip(outcome.versions, drafts, strict=True)
            if draft.type == "function-call"
        ]
        return outcome

    async def _check_known(self, sends: list[int]) -> list[int]:
        last = (await self.conversation.head()).last.version
        for version in sends:
            if type(version) is not int or not 1 <= version <= last:
                raise InvalidInput(f"sends names version {version!r}: the log has versions 1 to {last}")
        return sends

    def _draft(self, kind: str, data: dict[str, Any]) -> Draft:
        return Draft(kind, data, run=self.run.id, call=self.number)

    def _check_started(self) -> None:
        if self.started is None:
            raise InvalidInput("this service call was not started: use it in an `async with` block")
