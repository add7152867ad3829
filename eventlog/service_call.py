"""One request to the model service, as it is recorded.

What a caller hands over is taken as it is at the moment of the call, before anything is awaited: it
may change its lists afterwards.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import anyio

from eventlog import recording
from eventlog.errors import EventLogError, InvalidInput
from eventlog.events import Draft
from eventlog.identity import Cursor, new_id
from eventlog.messages import Json, Message
from eventlog.progress import FunctionCall
from eventlog.store.port import Appended

if TYPE_CHECKING:
    from eventlog.conversation import Conversation
    from eventlog.run import Run

CLOSING_SECONDS = 10.0
"""How long the record of an end is waited for when a block was left by an exception."""


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
            carried = await self.run._carried()
            sends = list(dict.fromkeys((*self._ahead, *carried, *self.run._unsent)))
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
        self.run._has_completed = True
        self.run._sent.update(self.sends)
        self.run._unsent = [version for version in self.run._unsent if version not in self.run._sent]
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
