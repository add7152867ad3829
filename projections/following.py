"""The history of a conversation as it grows: a snapshot, then what enters and what leaves."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

from eventlog.conversation import Conversation
from eventlog.identity import Cursor
from eventlog.subscription import POLL, Kind
from projections.change import Changes, HistoryChange, Left, apply, copied
from projections.view import View

__all__ = ["HistoryChange", "Left", "apply", "follow"]


async def follow(
    conversation: Conversation, after: Cursor | str | None = None, *, heartbeat: float | None = None, poll: float = POLL
) -> AsyncGenerator[View | HistoryChange, None]:
    """The service view as it is, then each change of its messages, as it happens.

    ``apply(messages, change)`` gives the messages at the change's version. ``after`` is the cursor of
    the view or change that the caller holds: then there is no snapshot. A change of no
    message tells how far the log was read, or that nothing happened for ``heartbeat`` seconds.
    Raises as ``Conversation.follow``; close it with ``aclosing`` when it is left early.
    """
    from projections.history import build  # noqa: PLC0415  history offers this function as its own

    log = conversation.log
    cursor = None if after is None else log.check_cursor(after)
    if cursor is None:
        events = [event async for page in conversation.pages() for event in page]
        view = build(events, conversation)
        cursor = view.cursor
        changes = Changes(events, log.tag)
        yield replace(view, messages=tuple(map(copied, view.messages)))
    else:
        async for page in conversation.pages(cursor):  # that its event is still there
            del page
            break
        until = conversation.pages(until=cursor.version)
        changes = Changes([event async for page in until for event in page] if cursor.version else [], log.tag)
    async with conversation.follow(cursor, heartbeat=heartbeat, poll=poll, max_behind=None) as events_after:
        async for item in events_after:
            if item.kind is Kind.EVENT and item.event is not None:
                change = changes.take(item.event)
                if change.removed or change.added or not events_after.waiting:
                    yield change
            elif item.kind is Kind.HEARTBEAT:
                yield changes.none()
