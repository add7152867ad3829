"""Recording transcripts in a log: each whole or not at all, and once however often it is tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eventlog.appender import Appender
from eventlog.conversation import Conversation
from eventlog.errors import AppendRefused, OperationReused, VersionConflict
from eventlog.ledger import Ledger
from eventlog.store.port import NONE, Expected
from gateway.formats.openai_chat import write_message
from gateway.import_plan import Operation
from projections import history
from projections.explain import IN_VIEW, fates


class Content(NamedTuple):
    """What the log now holds of a conversation, in messages."""

    in_view: int
    dropped: Counter[str]
    """By the reason why they are not in the service view."""


class Imported(NamedTuple):
    """One conversation that was imported."""

    read: int
    """The messages of its transcript."""
    added: bool
    """Anything was added; else all was already there."""
    content: Content


@dataclass(frozen=True, slots=True)
class Figures:
    """What an import did, in conversations and messages; the latter as the log now tells."""

    added: int
    already_there: int
    read: int
    in_view: int
    dropped: Counter[str]
    """Messages by the reason why they are not in the service view."""
    refused: int
    """Lines that were not imported."""

    @classmethod
    def of(cls, found: Collection[Imported], refused: int) -> Figures:
        """The figures of these conversations, each counted once."""
        added = sum(one.added for one in found)
        return cls(
            added,
            len(found) - added,
            sum(one.read for one in found),
            sum(one.content.in_view for one in found),
            Counter(reason for one in found for reason in one.content.dropped.elements()),
            refused,
        )


async def record(conversation: Conversation, operations: Sequence[Operation]) -> bool:
    """Append what of these operations is not there yet; return whether anything was added.

    Raises ``AppendRefused`` when the conversation holds something else.
    """
    appender = Appender(conversation.store, conversation.log)
    expected: Expected = NONE
    added = False
    try:
        for operation in operations:
            outcome = await appender.append(
                operation.drafts, operation_id=operation.id, expected=expected, claim=operation.claim
            )
            expected = outcome.cursor
            added = added or not outcome.duplicate
    except (OperationReused, VersionConflict) as error:
        raise AppendRefused(
            f"conversation {conversation.id!r} of {conversation.tenant!r} is there already, imported in another mode, "
            "or with other content: give it another id, or import into another tenant"
        ) from error
    return added


async def content(conversation: Conversation) -> Content:
    """Count what the conversation's log holds, and the service view of it."""
    events = [event async for page in conversation.pages() for event in page]
    ledger = Ledger.of(events)
    view = history.build(events, conversation)
    message_of = {event.version: event.data.get("message_id", event.id) for event in events}
    dropped = {(fate.fate, message_of[fate.version]) for fate in fates(events, ledger) if fate.fate != IN_VIEW}
    # A message without parts has nothing that a fate could be told of.
    dropped |= {
        ("unsent-message", message_of[event.version])
        for event in events
        if event.type == "message-added" and not event.data.get("parts") and not ledger.holds(event.version)
    }
    return Content(sum(len(write_message(message)) for message in view.messages), Counter(why for why, _ in dropped))
