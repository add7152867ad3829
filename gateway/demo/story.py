"""Plays the conversation in one mode, and keeps what its log tells afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from eventlog import Conversation, Event, EventLog, Message, Mode
from gateway.demo.agent import turn
from gateway.demo.kill import Killed, kill_midway
from gateway.demo.script import BEDS, BUS, HIKE, Model
from projections import history
from projections.explain import Fate
from projections.view import View

TENANT = "demo"


@dataclass(frozen=True, slots=True)
class Story:
    """One conversation as it was read back, whole and as it was when the process was killed."""

    conversation: str
    mode: Mode
    killed: Killed
    events: list[Event]
    fates: list[Fate]
    fates_when_killed: list[Fate]
    view: View
    request: list[Message]
    """What the first service call after the kill sent."""


class Where(NamedTuple):
    """How the log was opened, for the process that is killed to open it alike."""

    url: str | None
    data: Path | None
    durability: str


async def play(log: EventLog, where: Where, mode: Mode, conversation: str) -> Story:
    """Three turns: one whole, one whose process is killed, one that goes on from there."""
    chat = log.tenant(TENANT).conversation(conversation)
    await turn(chat, mode, Model(), HIKE)
    killed = await kill_midway(
        {
            "url": where.url,
            "data": None if where.data is None else str(where.data),
            "durability": where.durability,
            "tenant": TENANT,
            "conversation": conversation,
            "mode": mode.value,
            "question": BUS,
        }
    )
    for run in (await chat.head()).runs:  # nobody holds it any more; its lease would run out by itself later
        await chat.abort_run(run.run, force=True)
    model = Model()
    await turn(chat, mode, model, BEDS)
    return await _read(chat, mode, killed, model.requests[0])


async def _read(chat: Conversation, mode: Mode, killed: Killed, request: list[Message]) -> Story:
    return Story(
        chat.id,
        mode,
        killed,
        [event async for event in chat.read()],
        await history.explain(chat),
        await history.explain(chat, at=killed.appended),
        await history.load(chat),
        request,
    )
