"""A handle on one conversation: append to its log, read it, record runs, rewind and compact."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Sequence
from copy import deepcopy
from typing import Any

from eventlog import recording
from eventlog.appender import Appender
from eventlog.edits import check_compaction, check_rewind
from eventlog.errors import InvalidInput
from eventlog.events import Draft, Event, Mode
from eventlog.identity import Cursor, LogId, check_id, new_fence, new_id
from eventlog.ledger import Ledger
from eventlog.messages import Json, Message
from eventlog.progress import FunctionCall, Progress
from eventlog.reading import pages, pages_back
from eventlog.run import Carry, ResumedRun, Run
from eventlog.store import refusals
from eventlog.store.port import ANY, Appended, Expected, Head, LogStore, RunClaim, Step

DEFAULT_LEASE = 60.0
"""Seconds that a run is held after each of its appends."""
_IDENTITY = frozenset({"message_id", "versions"})


class Conversation:
    """A handle on one log. It remembers the last cursor it was given, and sends it with each append."""

    def __init__(self, store: LogStore, log: LogId) -> None:
        self.log = log
        self.store = store
        self._appender = Appender(store, log)

    @property
    def id(self) -> str:
        """The conversation's id, unique within its tenant."""
        return self.log.conversation

    @property
    def tenant(self) -> str:
        """Whose it is."""
        return self.log.tenant

    async def head(self) -> Head:
        """What is known of the log without reading it: its last cursor, its open runs."""
        return await self.store.head(self.log)

    def append(
        self, *drafts: Draft, operation_id: str | None = None, expected: Expected | str = ANY
    ) -> Coroutine[Any, Any, Appended]:
        """Append events outside any run, all or none.

        With an ``operation_id`` of yours the append can be repeated safely: the first outcome is
        returned. ``expected`` is ``any``, ``none``, ``exists`` or the exact cursor of the last
        event. Raises ``InvalidEvent``, ``VersionConflict``, ``OperationReused``, ``LimitExceeded``,
        ``ConversationDeleted``, ``OutcomeUnknown``, ``LogLost``.
        """
        for index, draft in enumerate(drafts):
            if draft.run is not None:
                raise InvalidInput(
                    f"events[{index}] belongs to run {draft.run!r}: open it with `conversation.run` and record there"
                )
        return self._appender.append(drafts, operation_id=operation_id, expected=expected)

    def add(
        self, *messages: Message, operation_id: str | None = None, expected: Expected | str = ANY
    ) -> Coroutine[Any, Any, Appended]:
        """Post messages outside any run: they are in the history at once."""
        operation = new_id() if operation_id is None else operation_id
        return self._appender.append(
            recording.inputs(messages, operation, None), operation_id=operation, expected=expected
        )

    def add_result(
        self,
        call: FunctionCall | str,
        output: Json,
        *,
        is_error: bool = False,
        message_id: str | None = None,
        extra: dict[str, Json] | None = None,
        operation_id: str | None = None,
    ) -> Coroutine[Any, Any, Appended]:
        """Record a tool's result whose run is over. It is in the history once a call has carried it."""
        operation = new_id() if operation_id is None else operation_id
        draft = recording.result(
            call.call_id if isinstance(call, FunctionCall) else call,
            output,
            message_id or f"{operation}.0",
            answers=call.version if isinstance(call, FunctionCall) else None,
            is_error=is_error,
            extra=extra,
        )
        return self._appender.append([draft], operation_id=operation)

    def run(
        self,
        mode: Mode | str = Mode.PER_SERVICE_CALL,
        *,
        agent: str | None = None,
        exclusive: bool = True,
        carry: Carry = "results",
        labels: dict[str, str] | None = None,
        parent: tuple[str, str] | None = None,
        lease: float = DEFAULT_LEASE,
        operation_id: str | None = None,
        expected: Expected | str = ANY,
    ) -> Run:
        """One agent turn, used as an asynchronous context manager.

        An exclusive run is the only one open; others raise ``ConversationBusy``. ``parent`` is the
        (conversation, run) that this one works for. The run is held for ``lease`` seconds from
        each of its appends on; one that has expired may go on until somebody takes it over or
        aborts it.
        """
        data: dict[str, Any] = {"mode": Mode(mode).value}
        if agent is not None:
            data["agent"] = agent
        if labels:
            data["labels"] = dict(labels)
        if parent is not None:
            data["parent"] = {"conversation": parent[0], "run": parent[1]}
        return Run(
            self,
            self._appender,
            run=None if operation_id is None else check_id(operation_id, "operation id"),
            data=data,
            exclusive=exclusive,
            carry=carry,
            lease=check_lease(lease),
            expected=expected,
        )

    def resume(
        self, run: str, *, force: bool = False, carry: Carry = "results", lease: float = DEFAULT_LEASE
    ) -> ResumedRun:
        """Take a run over and go on with it, used as an asynchronous context manager.

        Its former holder gets ``RunFenced`` from then on. A run whose lease has not expired is
        refused with ``ConversationBusy``, unless ``force``. The run's ``progress`` tells which
        results are recorded and which calls wait for one, so that no finished tool runs again.
        """
        return ResumedRun(
            self, self._appender, check_id(run, "run"), carry=carry, lease=check_lease(lease), force=force
        )

    async def progress(self, run: str, *, until: int | None = None) -> Progress:
        """How far an open run has come, read from its first version on.

        Raises ``RunClosed`` for a run that is not open.
        """
        opened = next((one for one in (await self.head()).runs if one.run == run), None)
        if opened is None:
            raise refusals.closed(self.log, run)
        found = Progress(run)
        async for page in pages(self.store, self.log, first=opened.first, until=until):
            for event in page:
                found.apply(event)
        return found

    async def abort_run(self, run: str, *, force: bool = False) -> Appended:
        """Abort a run that its holder left open. One whose lease has not expired needs ``force``."""
        step = Step.FORCE if force else Step.RESUME
        claim = RunClaim(run, step, new_fence(), 0, closes=True)
        draft = Draft("run-aborted", {"reason": "superseded" if force else "expired"}, run=run)
        return await self._appender.append([draft], claim=claim)

    async def seal_run(
        self,
        run: str,
        results: Sequence[Draft],
        *,
        expected: Cursor | str,
        force: bool = False,
        operation_id: str | None = None,
    ) -> Appended:
        """Abort a run as sealed and record ``results`` outside any run, in one operation.

        ``expected`` is the exact cursor at which it was decided what to answer. One whose lease
        has not expired needs ``force``.
        """
        for index, draft in enumerate(results):
            if draft.run is not None:
                raise InvalidInput(f"results[{index}] belongs to run {draft.run!r}: a sealed run takes nothing more")
        claim = RunClaim(run, Step.FORCE if force else Step.RESUME, new_fence(), 0, closes=True)
        aborted = Draft("run-aborted", {"reason": "sealed"}, run=run)
        cursor = self.log.check_cursor(expected)
        return await self._appender.append([aborted, *results], operation_id=operation_id, expected=cursor, claim=claim)

    async def pages(
        self, after: Cursor | str | None = None, *, until: int | None = None, reverse: bool = False
    ) -> AsyncIterator[list[Event]]:
        """The events after the cursor, up to version ``until``, in pages of up to 500."""
        cursor = None if after is None else self.log.check_cursor(after)
        walk = pages_back if reverse else pages
        async for page in walk(self.store, self.log, after=cursor, until=until):
            yield page

    async def read(
        self,
        after: Cursor | str | None = None,
        *,
        until: int | None = None,
        limit: int | None = None,
        reverse: bool = False,
        types: Sequence[str] | None = None,
        run: str | None = None,
    ) -> AsyncIterator[Event]:
        """The events after the cursor, up to version ``until``, in order or the newest first.

        ``types`` and ``run`` filter, ``limit`` counts what is left. Raises ``Truncated`` or
        ``LogLost`` where events are missing, ``CursorInvalid`` for a cursor of another log.
        """
        left = limit
        if left is not None and left < 1:
            return
        async for page in self.pages(after, until=until, reverse=reverse):
            for event in page:
                if (types is None or event.type in types) and (run is None or event.run == run):
                    yield event
                    if left is not None:
                        left -= 1
                        if left == 0:
                            return

    async def ledger(self, *, until: int | None = None) -> Ledger:
        """The fold of the log, up to version ``until``."""
        ledger = Ledger()
        async for page in self.pages(until=until):
            for event in page:
                ledger.apply(event)
        return ledger

    async def rewind(self, to: int, *, expected: Cursor | str, force: bool = False) -> Appended:
        """Make the history what it was at version ``to`` (0: empty). Nothing is deleted.

        ``expected`` is the exact cursor the decision was made at. While a run is open this raises
        ``ConversationBusy``; with ``force`` the open runs are aborted as superseded in the same
        operation.
        """
        cursor = self.log.check_cursor(expected)
        check_rewind(to, cursor.version)
        runs = tuple(run.run for run in (await self.head()).runs) if force else ()
        drafts = [Draft("run-aborted", {"reason": "superseded"}, run=run) for run in runs]
        drafts.append(Draft("history-rewound", {"to": to}))
        return await self._appender.append(drafts, expected=cursor, alone=True, supersedes=runs)

    async def compact(self, through: int, messages: Sequence[Message], *, expected: Cursor | str) -> Appended:
        """Put ``messages`` in place of what entered the history up to version ``through``.

        ``expected`` is the exact cursor the decision was made at. Raises ``EditRefused`` when
        nothing would be replaced, or a call be parted from its result. Nothing is deleted.
        """
        cursor = self.log.check_cursor(expected)
        summaries = [
            {name: value for name, value in deepcopy(message.as_json()).items() if name not in _IDENTITY}
            for message in messages
        ]
        draft = Draft("history-compacted", {"through": through, "messages": summaries})
        check_compaction(await self.ledger(until=cursor.version), through, messages)
        return await self._appender.append([draft], expected=cursor)


def check_lease(seconds: float) -> float:
    """Return ``seconds`` when a run can be held for so long, else raise ``InvalidInput``."""
    if not 0.01 <= seconds <= 7 * 24 * 3600:
        raise InvalidInput(f"lease={seconds}: hold a run for 0.01 seconds to 7 days")
    return seconds
