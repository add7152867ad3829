"""A process killed by SIGKILL in its turn: what is recorded is whole, and another process finishes the turn."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any

import pytest

from eventlog import Conversation, Event, EventLog
from eventlog.progress import progress
from projections import history, recovery
from tests.recovery.agent import RUN, STEPS, begin, executed, recover
from tests.recovery.conftest import Nursery
from tests.recovery.left import events_of, expired, obeys_the_rules
from tests.recovery.nursery import Order

pytestmark = pytest.mark.anyio
MODES = ("per-service-call", "per-run")
LEASE = 0.05
"""Short, so that nobody waits long for the end of a killed process's lease."""
KILLS = 50


def order(log: EventLog, url: str, chat: Conversation, mode: str, executions: Path, **more: Any) -> Order:
    namespace = log.store._keys.namespace  # type: ignore[attr-defined]
    place = {"url": url, "namespace": namespace, "conversation": chat.id, "mode": mode}
    ending = {"dies_at": None, "killed_after": None, **more}
    return {**place, "executions": str(executions), "lease": LEASE, **ending}  # type: ignore[typeddict-item]


def said(event: Event) -> tuple[Any, ...]:
    """What an event records, without what differs from one turn to the next."""
    return event.type, event.run, event.call, event.data


def operations(events: list[Event]) -> list[int]:
    """The versions at which an operation ends."""
    pairs = zip(events, [*events[1:], None], strict=True)
    return [0, *(one.version for one, after in pairs if after is None or after.operation_id != one.operation_id)]


async def whole_turn(log: EventLog, mode: str, executions: Path) -> Conversation:
    """The turn as it is when nobody kills anybody."""
    chat = log.tenant("t").conversation(f"whole {mode}")
    steps: list[str] = []
    await begin(chat, mode, executions, LEASE, steps.append)
    assert tuple(steps) == STEPS, "a step of the turn has no name to be killed at"
    assert executed(executions) == {"a": 1, "b": 1, "c": 1}
    return chat


async def check_recovery(chat: Conversation, whole: Conversation, executions: Path) -> list[Event]:
    """Look at what was left, recover, and look again; return the events that were left."""
    before, sent = await events_of(chat), await events_of(whole)
    assert list(map(said, before)) == list(map(said, sent))[: len(before)]
    assert len(before) in operations(sent), "an operation was appended in part"
    obeys_the_rules(before)
    ran = executed(executions)
    if not before or before[-1].type == "run-committed":
        return before
    found = await expired(chat, RUN)
    told = progress(before, RUN)
    assert [doubt.number for doubt in found.in_doubt] == list(told.in_doubt)
    recorded = {event.data["call_id"] for event in before if event.type == "function-result"}
    assert recorded.isdisjoint(left.call.call_id for left in found.unanswered)
    async with recovery.resume(chat, RUN) as resumed:
        await recover(chat, resumed, executions)
    again = executed(executions)
    for call_id, times in again.items():
        assert times == ran[call_id] + (call_id not in recorded), f"tool {call_id} ran {times} times"
    events = await events_of(chat)
    obeys_the_rules(events)
    assert events[-1].type == "run-committed"
    view, wanted = await history.load(chat), await history.load(whole)
    assert [(one.role, one.parts) for one in view.messages] == [(one.role, one.parts) for one in wanted.messages]
    assert (view.open_calls, view.stray_results) == ((), ())
    assert (await recovery.inspect(chat)).runs == ()
    return before


@pytest.mark.parametrize("mode", MODES)
async def test_a_turn_killed_at_any_step_is_finished_and_no_finished_tool_runs_twice(
    server: str, served: EventLog, nursery: Nursery, tmp_path: Path, mode: str
) -> None:
    whole = await whole_turn(served, mode, tmp_path / "whole")
    lengths = []
    for number, step in enumerate(STEPS):
        chat = served.tenant("t").conversation(f"killed at {step}")
        executions = tmp_path / str(number)
        ended = nursery.run(order(served, server, chat, mode, executions, dies_at=step))
        assert ended.signal == signal.SIGKILL
        before = await check_recovery(chat, whole, executions)
        lengths.append(len(before))
        found = progress(before, RUN)
        assert bool(found.in_doubt) == step.endswith("in flight")
        assert found.ended == ""
    assert lengths == sorted(lengths)
    assert lengths[0] == 1
    assert lengths[-1] == (await whole.head()).last.version - 1, "the last step is the one before the commit"


async def test_a_client_killed_at_random_points_leaves_a_prefix_that_recovery_finishes(
    server: str, served: EventLog, nursery: Nursery, tmp_path: Path
) -> None:
    seed = 20_240_817
    chance = random.Random(seed)
    wholes = {mode: await whole_turn(served, mode, tmp_path / mode) for mode in MODES}
    usual = order(served, server, served.tenant("t").conversation("measured"), "per-run", tmp_path / "measured")
    turn = nursery.run(usual).seconds
    lengths = []
    for number in range(KILLS):
        mode = MODES[number % 2]
        chat = served.tenant("t").conversation(f"killed {number}")
        executions = tmp_path / str(number)
        after = chance.uniform(0.0, turn)
        nursery.run(order(served, server, chat, mode, executions, killed_after=after))
        before = await check_recovery(chat, wholes[mode], executions)
        lengths.append(len(before))
    assert len(set(lengths)) >= 5, f"the kills did not spread: {lengths}, seed {seed}"
