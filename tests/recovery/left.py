"""Runs that their holders left open, as tests need them, and what is said of them."""

from __future__ import annotations

import anyio

from eventlog import Conversation, Draft, Event, FunctionCall, Run, assistant, tool_call, user
from eventlog.ledger import Ledger
from projections import recovery
from projections.leftovers import LeftRun
from tests.history.model import Model

PATIENCE = 5.0
"""Seconds to wait for a lease of a few milliseconds to be over."""


async def opened(chat: Conversation, mode: str = "per-service-call", *, lease: float = 0.01, **given: object) -> Run:
    """A run that is open and whose holder is gone: nothing renews it."""
    run = chat.run(mode, agent="watch", lease=lease, **given)  # type: ignore[arg-type]
    await run.__aenter__()
    await run._heartbeat.stop()
    return run


async def left(
    chat: Conversation, mode: str = "per-service-call", *, lease: float = 0.01
) -> tuple[Run, list[FunctionCall]]:
    """A run whose first service call asked for a, b, c: a is answered, c waits for approval; the second is in doubt."""
    run = await opened(chat, mode, lease=lease)
    await run.add(user("go"))
    async with run.service_call() as call:
        await call.complete(assistant(*(tool_call(name, "look", {}) for name in "abc")))
    calls = call.function_calls
    await run.add_result(calls[0], "result a")
    await chat.append(Draft("approval-requested", {"function_call": calls[2].version}))
    doubtful = run.service_call()
    await doubtful.__aenter__()
    return run, calls


async def expired(chat: Conversation, run: str) -> LeftRun:
    """Wait until the server says that the lease of this run is over."""
    with anyio.fail_after(PATIENCE):
        while True:
            found = next(one for one in (await recovery.inspect(chat)).runs if one.run == run)
            if found.expired:
                return found
            await anyio.sleep(0.002)


async def events_of(chat: Conversation) -> list[Event]:
    return [event async for page in chat.pages() for event in page]


def obeys_the_rules(events: list[Event]) -> None:
    """Compare the view with that of the reference model."""
    model, ledger = Model(events), Ledger.of(events)
    assert [version for row in ledger.view for version in row.versions] == model.now.versions
    assert ledger.pairs == model.now.pairs
    assert [call.version for call in ledger.state.calls.open] == model.open_calls()
    assert ledger.stray_results() == model.stray_results()
