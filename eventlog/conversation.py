"""A handle on one conversation: append to its log, read it, record runs, rewind and compact."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Sequence
from copy import deepcopy
from typing import Any, Literal

from eventlog import recording
from eventlog.appender import Appender
from eventlog.edits import check_compaction, check_rewind
from eventlog.errors import InvalidEvent, InvalidInput
from eventlog.events import Draft, Event, Mode
from eventlog.hub import Hub
from eventlog.identity import Cursor, LogId, check_id, new_fence, new_id
from eventlog.ledger import Ledger
from eventlog.log_subscription import LogSubscription
from eventlog.messages import Json, Message
from eventlog.progress import FunctionCall, Progress
from eventlog.reading import pages, pages_back
from eventlog.recording import check_messages
from eventlog.run import Carry, ResumedRun, Run
from eventlog.store import refusals
from eventlog.store.port import ANY, Appended, Expected, Head, LogStore, RunClaim, Step
from eventlog.subscription import POLL

DEFAULT_LEASE = 60.0
"""Seconds that a run is held after each of its appends."""
_PAGE = 1_000
_IDENTITY = frozenset({"message_id", "versions"})


class Conversation:
    """A handle on one log. It remembers the last cursor it was given, and sends it with each append."""

    def __init__(self, store: LogStore, log: LogId, hub: Hub | None = None) -> None:
        self.log = log
        self.store = store
        self._hub = hub or Hub(store)
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
            if not isinstance(draft, Draft):
                raise InvalidEvent(f"events[{index}]", f"a {type(draft).__name__} is not an event: make a Draft(…)")
            if draft.run is not None:
                raise InvalidInput(
                    f"events[{index}] belongs to run {draft.run!r}: open it with `conversation.run` and record there"
                )
        return self._appender.append(drafts, operation_id=operation_id, expected=expected)

    def add(
        self, *messages: Message, operation_id: str | None = None, expected: Expected | str = ANY
    ) -> Coroutine[Any, Any, Appended | None]:
        """Post messages outside any run: they are in the history at once.

        A message that was read from this log is known by its event and not recorded again, even if
        it was changed since: make a new ``Message`` for that. None when nothing is left to record.
        """
        operation = new_id() if operation_id is None else operation_id
        if any(message.versions for message in messages if isinstance(message, Message)):
            return self._add_new(deepcopy(messages), operation, expected)
        drafts = recording.inputs(messages, operation, None)
        return self._appender.append(drafts, operation_id=operation, expected=expected)

    async def unrecorded(self, messages: Sequence[Message]) -> list[Message]:
        """Those of the messages that were not read from this very log."""
        mine = [message for message in messages if message.versions and message.log == self.log.tag]
        if not mine:
            return list(messages)
        first = min(message.versions[0] for message in mine)
        last = max(message.versions[0] for message in mine)
        stamps: dict[int, int] = {}
        while first <= last and (entries := await self.store.read(self.log, first, last, _PAGE)):
            stamps.update((entry.version, entry.stamp) for entry in entries)
            first = entries[-1].version + 1
        known = {id(message) for message in mine if stamps.get(message.versions[0]) == message.stamp}
        return [message for message in messages if id(message) not in known]

    async def _add_new(self, messages: Sequence[Message], operation: str, expected: Expected | str) -> Appended | None:
        new = await self.unrecorded(messages)
        if not new:
            return None
        drafts = recording.inputs(new, operation, None)
        return await self._appender.append(drafts, operation_id=operation, expected=expected)

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
        data: dict[str, Any] = {"mode": check_mode(mode).value}
        if agent is not None:
            data["agent"] = agent
        if labels:
            if not isinstance(labels, dict):
                raise InvalidInput(f"labels={labels!r}: give a dict of texts")
            data["labels"] = dict(labels)
        if parent is not None:
            if not isinstance(parent, tuple) or len(parent) != 2:
                raise InvalidInput(f"parent={parent!r}: give (conversation, run)")
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
        head = await self.head()
        opened = next((one for one in head.runs if one.run == run), None)
        if opened is None:
            raise refusals.gone(self.log) if head.deleted else refusals.closed(self.log, run)
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

    def follow(
        self,
        after: Cursor | str | Literal["start", "now"] = "start",
        *,
        types: Sequence[str] | None = None,
        run: str | None = None,
        ends_with_run: str | None = None,
        heartbeat: float | None = None,
        poll: float = POLL,
        max_behind: int | None = 10_000,
    ) -> LogSubscription:
        """Follow the log from the cursor on: what is in it, a caught-up mark, then what is appended, as it is.

        Each item carries the cursor to go on from. ``types`` and ``run`` choose events; the others move
        the cursor all the same. ``ends_with_run`` ends the iteration behind that run's end.
        ``heartbeat`` asks for an item when nothing happened for so many seconds; ``poll`` is how long
        a lost wake-up can delay an event. A server that is away is waited for. Raises ``LogLost`` or
        ``Truncated`` where events are missing, ``CursorInvalid`` at once, and ``FollowerTooSlow`` when,
        once it had caught up, its consumer fell more than ``max_behind`` events behind.
        """
        return LogSubscription(
            self._hub,
            self.store,
            self.log,
            after,
            types=types,
            run=run,
            ends_with_run=ends_with_run,
            heartbeat=heartbeat,
            poll=poll,
            max_behind=max_behind,
        )

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
        check_messages(messages)
        summaries = [
            {name: value for name, value in message.as_json().items() if name not in _IDENTITY} for message in messages
        ]
        draft = Draft("history-compacted", {"through": through, "messages": summaries})
        prepared = self._appender.prepare([draft], expected=cursor)
        check_compaction(await self.ledger(until=cursor.version), through, prepared.events()[0].data["messages"])
        return await self._appender.send(prepared)

    async def delete(self, *, force: bool = False) -> bool:
        """Delete the conversation for good; whether it is deleted now. One that never was is False.

        Nothing of its content is left, and nothing can be appended to it or read from it any more:
        that raises ``ConversationDeleted``, also for those who follow it. While a run is open this
        raises ``ConversationBusy``; with ``force`` the run is gone with it.
        """
        return await self.store.delete(self.log, force=force)


def check_lease(seconds: float) -> float:
    """Return ``seconds`` when a run can be held for so long, else raise ``InvalidInput``."""
    if not isinstance(seconds, (int, float)) or not 0.01 <= seconds <= 7 * 24 * 3600:
        raise InvalidInput(f"lease={seconds!r}: hold a run for 0.01 seconds to 7 days")
    return seconds


def check_mode(mode: object) -> Mode:
    """Return the persistence mode, else raise ``InvalidInput``."""
    try:
        return Mode(mode)  # type: ignore[arg-type]
    except ValueError:
        modes = " or ".join(repr(known.value) for known in Mode)
        raise InvalidInput(f"{ascii(mode)[:80]} is not a persistence mode: choose {modes}") from None
