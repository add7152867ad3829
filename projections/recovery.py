"""What crashed runs left behind, and how to go on: resume, abort or seal them.

Whether a run may be taken over is decided by the server's clock alone; the clocks of its holders
and of whoever recovers it do not matter.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

from eventlog.conversation import Conversation
from eventlog.errors import (
    ConversationBusy,
    ConversationDeleted,
    Gap,
    InvalidInput,
    RunClosed,
    Unreadable,
    VersionConflict,
)
from eventlog.identity import Cursor, new_id
from eventlog.ledger import Ledger
from eventlog.log import Tenant
from eventlog.progress import Progress
from eventlog.reading import pages
from eventlog.run import ResumedRun
from projections.leftovers import (
    Closed,
    LeftRun,
    Recovery,
    StillOpen,
    Swept,
    Why,
    left_run,
    still_open,
    synthetic_results,
)

__all__ = [
    "Action",
    "Closed",
    "LeftRun",
    "Recovery",
    "StillOpen",
    "Swept",
    "Why",
    "abort",
    "inspect",
    "resume",
    "seal",
    "survey",
    "sweep",
]

Action = Literal["inspect", "abort", "seal"]


async def inspect(conversation: Conversation) -> Recovery:
    """What each open run left behind. Reads from the first version of the oldest of them on, and writes nothing.

    Raises ``Truncated`` when the start of an open run was trimmed, ``LogLost`` when events are missing.
    """
    head = await conversation.head()
    held = () if head.deleted else head.runs
    told = {run.run: Progress(run.run) for run in held}
    if held:
        first = min(run.first for run in held)
        async for page in pages(conversation.store, conversation.log, first=first, until=head.last.version):
            for event in page:
                for progress in told.values():
                    progress.apply(event)
    now_ms = await conversation.store.now_ms()
    runs = tuple(left_run(run, told[run.run], now_ms=now_ms) for run in held)
    return Recovery(conversation.tenant, conversation.id, head.last, runs)


def resume(conversation: Conversation, run: str, *, force: bool = False) -> ResumedRun:
    """Take the run over and go on with it, used as an asynchronous context manager.

    The run's ``progress`` tells which function calls wait for a result: run those tools, and no
    other. Raises ``ConversationBusy`` for a run that is still held, unless ``force``, and
    ``RunClosed`` for one that is not open.
    """
    return conversation.resume(run, force=force)


async def abort(conversation: Conversation, run: str, *, force: bool = False) -> Closed:
    """Give the run up: per service call its completed calls stay in the history, per run nothing does.

    Raises as ``resume`` does.
    """
    appended = await conversation.abort_run(run, force=force)
    return Closed(run, "superseded" if force else "expired", appended.first)


async def seal(conversation: Conversation, run: str, *, force: bool = False) -> Closed:
    """Give the run up and answer what it leaves open, in one operation, so that the next run's request is valid.

    Each call that stays open in the service view and that nobody is left to answer gets a marked
    synthetic result outside any run. A run's first service call carries it, unless a real result
    has come in by then. A call that waits for approval or belongs to another open run is left
    alone. Raises as ``resume`` does.
    """
    ledger, cursor = Ledger(), conversation.log.cursor(0, 0)
    while True:
        cursor = await _read_on(conversation, ledger, cursor)
        calls, operation = still_open(ledger, run), new_id()
        results = tuple(synthetic_results(calls, operation))
        try:
            appended = await conversation.seal_run(run, results, expected=cursor, force=force, operation_id=operation)
        except VersionConflict:
            continue  # something was appended since: what stays open may be another
        return Closed(run, "sealed", appended.first, calls)


async def sweep(tenant: Tenant, *, action: Action = "inspect") -> AsyncIterator[Swept]:
    """All conversations of the tenant that have expired runs, with ``action`` done on each such run.

    A run that is held is never touched. Several may sweep at once: a run that another has ended
    or taken over in the meantime is passed by.
    """
    async for one in survey(tenant, action=action):
        if one.found is None or one.found.expired:
            yield one


async def survey(tenant: Tenant, *, action: Action = "inspect") -> AsyncIterator[Swept]:
    """The same, with the conversations whose open runs are all held, too."""
    if action not in ("inspect", "abort", "seal"):
        raise InvalidInput(f"{action!r} is no action: choose inspect, abort or seal")
    async for name in tenant.conversations():
        conversation = tenant.conversation(name)
        found: Recovery | None = None
        done: list[Closed] = []
        problem = None
        try:
            found = await inspect(conversation)
            for run in found.expired if action != "inspect" else ():
                done += await _close_if_left(conversation, run.run, action)
        except (Gap, Unreadable) as error:
            problem = str(error)
        if found is None or found.runs:
            yield Swept(name, found, tuple(done), problem)


async def _close_if_left(conversation: Conversation, run: str, action: Action) -> list[Closed]:
    try:
        return [await (seal if action == "seal" else abort)(conversation, run)]
    except (RunClosed, ConversationBusy, ConversationDeleted):
        return []


async def _read_on(conversation: Conversation, ledger: Ledger, cursor: Cursor) -> Cursor:
    """Apply what follows the cursor; return the cursor of the last event."""
    async for page in conversation.pages(cursor):
        for event in page:
            ledger.apply(event)
        cursor = conversation.log.cursor(page[-1].version, page[-1].stamp)
    return cursor
