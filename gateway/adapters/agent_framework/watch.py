"""One run as it is watched, and what happens when the log cannot be written."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, TypeVar

from agent_framework import AgentSession

from eventlog import Draft, RunRefused
from eventlog.errors import ConversationDeleted, EventLogError
from gateway.adapters.agent_framework.errors import RecordingFailed, UnrecordedWarning
from gateway.adapters.agent_framework.recorder import RunRecorder

T = TypeVar("T")

GAP = "recording-gap"
"""The event that tells of a run which went on unrecorded, once the log can be written again."""
STATE = "agent_eventlog"
"""Where the session's state keeps the mark of such a run."""
_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Watch:
    """The recorder of a run, or none when it goes on unrecorded."""

    agent: str
    session: AgentSession
    conversation: str
    recorder: RunRecorder | None
    stops: bool = True
    """What cannot be recorded stops the run; else it goes on unrecorded, with a mark."""
    accepted: Any = None
    """The session's service id after the last call that the service accepted."""

    lost: RunRecorder | None = None
    """What recorded the run until it went on unrecorded."""

    around: Watch | None = None
    """The run that this very session object was in when this one began."""

    parent: Watch | None = None
    """The run whose tool runs this one."""

    over: bool = False

    async def keep(self, what: str, work: Awaitable[T]) -> T | None:
        """Do a step of recording. None when it failed and the run goes on unrecorded.

        A run that somebody else has taken over or ended always stops.
        """
        try:
            return await work
        except EventLogError as error:
            if self.stops or isinstance(error, (RunRefused, ConversationDeleted)):
                raise RecordingFailed(f"{what} of agent {self.agent!r} could not be recorded: {error}") from error
            self.give_up(what, error)
            return None

    def give_up(self, what: str, error: Exception) -> None:
        """Go on unrecorded, and say so: a warning, the program's log, and a mark in the session's state."""
        run = self.recorder.run.id if self.recorder is not None else None
        self.recorder, self.lost = None, self.recorder
        note = f"agent {self.agent!r} goes on unrecorded in conversation {self.conversation!r}: {what} failed: {error}"
        if run is not None or gap_of(self.session) is None:  # else a run that is to be let go would be forgotten
            self.session.state[STATE] = {"unrecorded": {"run": run, "since": what, "error": str(error)[:1000]}}
        _logger.error("%s", note)
        warnings.warn(note, UnrecordedWarning, stacklevel=3)


def gap_of(session: AgentSession) -> dict[str, Any] | None:
    """The mark that an unrecorded run left in the session's state."""
    state = session.state.get(STATE)
    gap = state.get("unrecorded") if isinstance(state, dict) else None
    if not isinstance(gap, dict):
        return None
    return {name: gap[name] for name in ("run", "since", "error") if isinstance(gap.get(name), str)} or None


def gap_event(gap: dict[str, Any]) -> Draft:
    """The event that tells of it."""
    return Draft(GAP, gap)
