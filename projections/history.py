"""History as an agent or a person wants it: load a view, or what one service call sends."""

from __future__ import annotations

from typing import Literal

from eventlog.errors import InvalidInput
from eventlog.events import Event
from eventlog.ledger import Ledger
from eventlog.log import Conversation
from eventlog.messages import Message
from eventlog.run import ServiceCall
from projections.assembly import BODIES, group, row_messages
from projections.continuation import continuation
from projections.doubt import in_doubt
from projections.explain import Fate, fates
from projections.transcript import transcript
from projections.view import OpenCall, View
from projections.window import newest

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
    if last is not None and last < 1:
        raise InvalidInput(f"last={last}: ask for at least 1 message")
    if at is not None and at < 0:
        raise InvalidInput(f"at={at}: versions begin at 1; 0 is before the first event")
    events = [event async for page in conversation.pages(until=at) for event in page] if at != 0 else []
    if at is not None and len(events) < at:
        raise InvalidInput(f"at={at}: the log of conversation {conversation.id!r} ends at version {len(events)}")
    return build(events, conversation, view=view, last=last)


def build(
    events: list[Event], conversation: Conversation, *, view: ViewName = "service", last: int | None = None
) -> View:
    """The view of a log whose events are all in memory."""
    log = conversation.log
    ledger = Ledger(untrimmed=view == "untrimmed")
    bodies: dict[int, Event] = {}
    for event in events:
        ledger.apply(event)
        if event.type in BODIES:
            bodies[event.version] = event
    messages: list[Message] = []
    outputs_of: list[int | None] = []
    if view == "everything":
        messages = transcript(events, log.tag)
        outputs_of = [None] * len(messages)
    else:
        for index, row in enumerate(ledger.view):
            found = row_messages(row, bodies, log.tag)
            messages += found
            first_output = row.outputs[0].version if row.outputs else None
            outputs_of += [
                index if first_output is not None and message.versions[0] >= first_output else None for message in found
            ]
    start, window = (0, None) if last is None else newest(messages, last, outputs_of, ledger.pairs)
    cursor = log.cursor(events[-1].version, events[-1].stamp) if events else log.cursor(0, 0)
    return View(
        tuple(messages[start:]),
        cursor.version,
        cursor,
        tuple(
            OpenCall(
                call.version,
                call.call_id,
                bodies[call.version].data.get("name", ""),
                call.run,
                call.run in ledger.state.runs,
                call.version in ledger.state.awaiting,
            )
            for call in ledger.state.calls.open
        ),
        _stray(ledger, bodies),
        in_doubt(events),
        continuation(ledger),
        window,
        dict(ledger.pairs),
    )


async def for_call(call: ServiceCall) -> list[Message]:
    """What the agent sends with this service call, as of the version of its start.

    The service view, the units of the call's own run that are not in it yet, and the call's
    inputs; only the inputs when the call continues what the service holds.
    """
    if call.started is None:
        raise InvalidInput(f"service call {call.number} was not started: use it in an `async with` block")
    conversation = call.conversation
    ledger = Ledger()
    bodies: dict[int, Event] = {}
    async for page in conversation.pages(until=call.started.version):
        for event in page:
            ledger.apply(event)
            if event.type in BODIES:
                bodies[event.version] = event
    tag = conversation.log.tag
    if call.continues is not None:
        return group((bodies[version] for version in call.sends), tag)
    messages = [message for row in ledger.view for message in row_messages(row, bodies, tag)]
    seen = {version for row in ledger.view for version in row.versions}
    run = ledger.state.runs.get(call.run.id)
    for unit in run.units if run else ():
        inputs = [version for version in unit.sends if version not in seen]
        messages += group((bodies[version] for version in inputs), tag)
        messages += group((bodies[item.version] for item in unit.outputs), tag)
        seen.update(inputs)
    return messages + group((bodies[version] for version in call.sends if version not in seen), tag)


async def explain(conversation: Conversation, *, view: ViewName = "service", at: int | None = None) -> list[Fate]:
    """The fate of every message part, call and result, in log order: in the view, or why not."""
    events = [event async for page in conversation.pages(until=at) for event in page] if at != 0 else []
    return fates(events, Ledger.of(events, untrimmed=view == "untrimmed"))


def _stray(ledger: Ledger, bodies: dict[int, Event]) -> tuple[int, ...]:
    """The results in the view that answer no call in it."""
    return tuple(
        version
        for row in ledger.view
        for version in row.versions
        if bodies[version].type == "function-result" and version not in ledger.pairs
    )
