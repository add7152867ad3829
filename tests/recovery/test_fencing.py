"""A run that was taken over: its former holder writes nothing more, whatever the clocks of the two say."""

from __future__ import annotations

import asyncio
import random
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

import anyio
import anyio.lowlevel
import pytest

from eventlog import Conversation, ConversationBusy, EventLog, Run, RunClosed, RunFenced, appender, user
from projections import recovery
from tests.recovery.left import PATIENCE, events_of, expired, opened

pytestmark = pytest.mark.anyio
TRIES = 200
HOUR = timedelta(hours=1)
SKEW: ContextVar[timedelta] = ContextVar("SKEW", default=timedelta(0))


@pytest.fixture(autouse=True)
def clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each task a clock that goes wrong by its ``SKEW``."""

    def now() -> str:
        return (datetime.now(UTC) + SKEW.get()).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    monkeypatch.setattr(appender, "_now", now)


async def write_on(run: Run, skew: timedelta, pauses: int) -> int:
    """The former holder: append until it is refused, at most three times; return how many were taken."""
    SKEW.set(skew)
    for taken in range(3):
        for _ in range(pauses):
            await anyio.lowlevel.checkpoint()
        try:
            await run.add(user("former"))
        except RunFenced:
            return taken
    return 3


async def take_over(chat: Conversation, run: str, skew: timedelta, pauses: int, *, force: bool) -> Run:
    """The new holder: take the run over as soon as the server lets it, and write. The run is left open."""
    SKEW.set(skew)
    for _ in range(pauses):
        await anyio.lowlevel.checkpoint()
    with anyio.fail_after(PATIENCE):
        while True:
            resumed = recovery.resume(chat, run, force=force)
            try:
                await resumed.__aenter__()
            except ConversationBusy:
                await anyio.sleep(0.001)
                continue
            await resumed.add(user("new"))
            await anyio.lowlevel.checkpoint()
            await resumed.add(user("new"))
            return resumed


async def race(former_log: EventLog, new_log: EventLog) -> None:
    seed = 77
    chance = random.Random(seed)
    taken = []
    for number in range(TRIES):
        former_chat, chat = (log.tenant("t").conversation(f"c{number}") for log in (former_log, new_log))
        skew = chance.choice((HOUR, -HOUR)) / 2
        force = number % 2 == 0
        run = await opened(former_chat, lease=60 if force else 0.01)
        if not force:
            await expired(former_chat, run.id)
        told, resumed = await asyncio.gather(
            write_on(run, skew, chance.randrange(6)),
            take_over(chat, run.id, -skew, chance.randrange(6), force=force),
        )
        with pytest.raises(RunFenced):
            await run.add(user("former"))
        with pytest.raises(RunFenced):
            await run.renew()
        await resumed.__aexit__(None, None, None)
        with pytest.raises(RunClosed):
            await run.commit()
        events = await events_of(chat)
        (changed,) = (event for event in events if event.type == "run-resumed")
        by_former = [event.version for event in events if _text(event.data) == "former"]
        by_new = [event.version for event in events if _text(event.data) == "new"]
        assert len(by_former) == told, f"an append that was refused was written, try {number}, seed {seed}"
        assert all(version < changed.version for version in by_former)
        assert by_new == [changed.version + 1, changed.version + 2]
        assert abs(_clock(changed.at) - skew * -1 - datetime.now(UTC)) < timedelta(minutes=5), "no clock went wrong"
        taken.append(told)
    assert len(set(taken)) > 1, f"the two never raced: {taken}"


def _clock(at: str) -> datetime:
    return datetime.fromisoformat(at)


def _text(data: dict[str, object]) -> object:
    parts = data.get("parts")
    return parts[0]["content"] if isinstance(parts, list) else None


async def test_a_former_holders_append_after_a_take_over_is_refused_also_when_both_race(log: EventLog) -> None:
    await race(log, log)


async def test_the_same_over_two_connections(server: str, served: EventLog) -> None:
    namespace = served.store._keys.namespace  # type: ignore[attr-defined]
    async with EventLog.open(server, namespace=namespace) as other:
        await race(served, other)
