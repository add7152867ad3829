"""History as an agent or a person wants it: load a view, or what one service call sends."""

from __future__ import annotations

from typing import Literal

from eventlog.conversation import Conversation
from eventlog.errors import InvalidInput
from eventlog.events import Event
from eventlog.ledger import Ledger
from eventlog.messages import Message
from eventlog.service_call import ServiceCall
from projections.assembly import by_version, group, view_messages
from projections.continuation import chain_of
from projections.explain import Fate, fates
from projections.following import follow as follow  # noqa: PLC0414  part of this module for its users
from projections.maintained import for_call as maintained_for_call
from projections.maintained import load as load_maintained
from projections.reference import reference_of
from projections.sending import sending
from projections.showing import show
from projections.transcript import transcript
from projections.view import View

ViewName = Literal["service", "untrimmed", "everything"]


async def load(
    conversation: Conversation, *, view: ViewName = "service", at: int | None = None, last: int | None = None
) -> View:
    """Read a view of the conversation.

    ``service`` is what the model service itself would remember; ``untrimmed`` also keeps the inputs
    of committed per-run runs that were never sent; ``everything`` is all that was recorded, for
    people. ``at`` gives the view as it was after that version; ``last`` about that many of the
    newest messages, cutting no call from its result: the view's ``window`` says what it did.
    """
    if view not in ("service", "untrimmed", "everything"):
        raise InvalidInput(f"{view!r} is not a view: choose service, untrimmed or everything")
    if last is not None and (type(last) is not int or last < 1):
        raise InvalidInput(f"last={last!r}: ask for at least 1 message")
    if view == "service" and at is None:
        maintained = await load_maintained(conversation, last)
        if maintained is not None:
            return maintained
    events = await _events(conversation, at)
    return build(events, conversation, view=view, last=last)


def build(
    events: list[Event], conversation: Conversation, *, view: ViewName = "service", last: int | None = None
) -> View:
    """The view of a log whose events are all in memory."""
    log = conversation.log
    ledger = Ledger.of(events, untrimmed=view == "untrimmed")
    lookup = by_version(events)
    messages: list[Message]
    if view == "everything":
        messages = transcript(events, log.tag)
        outputs_of: list[int | None] = [None] * len(messages)
    else:
        messages, outputs_of = view_messages(map(reference_of, ledger.view), lookup, log.tag)
    cursor = log.cursor(events[-1].version, events[-1].stamp) if events else log.cursor(0, 0)
    built = show(ledger, chain_of(ledger.view), cursor, lookup, messages, outputs_of, ledger.pairs, last=last)
    assert built is not None
    return built


async def for_call(call: ServiceCall) -> list[Message]:
    """What the agent sends with this service call, as of the version of its start.

    The service view, the units of the call's own run that are not in it yet, and the call's
    inputs; only the inputs when the call continues what the service holds.
    """
    if call.started is None:
        raise InvalidInput(f"service call {call.number} was not started: use it in an `async with` block")
    conversation = call.conversation
    if call.continues is None:
        maintained = await maintained_for_call(conversation, call.run.id, call.sends, call.started)
        if maintained is not None:
            return maintained
    events = await _events(conversation, call.started.version)
    tag = conversation.log.tag
    ledger = Ledger.of(events)
    lookup = {event.version: event for event in events}
    if call.continues is not None:
        return group([lookup[version] for version in call.sends if ledger.can_be_sent(version)], tag)
    run = ledger.state.runs.get(call.run.id)
    rows = [reference_of(row) for row in ledger.view]
    return sending(rows, run.units if run else (), call.sends, lookup, tag)


async def _events(conversation: Conversation, at: int | None) -> list[Event]:
    """The events up to version ``at``, which the log must have reached."""
    if at is not None and (type(at) is not int or at < 0):
        raise InvalidInput(f"at={at!r}: versions begin at 1; 0 is before the first event")
    events = [event async for page in conversation.pages(until=at) for event in page] if at != 0 else []
    if at is not None and len(events) < at:
        raise InvalidInput(f"at={at}: the log of conversation {conversation.id!r} ends at version {len(events)}")
    return events


async def explain(conversation: Conversation, *, view: ViewName = "service", at: int | None = None) -> list[Fate]:
    """The fate of every message part, call and result, in log order: in the view, or why not."""
    if view not in ("service", "untrimmed"):
        raise InvalidInput(f"{view!r} is not a view that leaves anything out: choose service or untrimmed")
    events = await _events(conversation, at)
    return fates(events, Ledger.of(events, untrimmed=view == "untrimmed"))
