"""What a view is: messages, and what is known about them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from eventlog.identity import Cursor
from eventlog.messages import Json, Message


class OpenCall(NamedTuple):
    """A function call in the view that no result in the view answers."""

    version: int
    call_id: str
    name: str
    run: str | None
    run_open: bool
    """Its run is still open, and may answer it."""
    awaits_approval: bool
    recorded_result: int | None = None
    """The version of a result that is recorded and not in the view: the next run's first call carries it."""


class DoubtfulCall(NamedTuple):
    """A service call of which the log cannot tell whether the service kept it."""

    run: str
    call: int
    started: int
    """The version of its service-call-started."""


class Continuation(NamedTuple):
    """How the next request may build on what the service itself holds."""

    service: dict[str, Json] | None
    """The ids that the service gave with the last unit in the view; None when it gave none."""
    ahead: tuple[int, ...]
    """The versions of what stands in the view and no call of that chain has carried: send it, too."""
    in_step: bool
    """The service holds what the view shows. When false, send the whole history and continue nothing."""


IN_STEP = Continuation(None, (), True)


class Window(NamedTuple):
    """What ``last=`` asked for and what it gave, in messages."""

    asked: int
    given: int
    how: str
    """``whole``, ``exact``, ``grown`` or ``shrunk``: to the nearest place that cuts no pair."""


@dataclass(frozen=True, slots=True)
class View:
    """A reading of one log.

    ``version`` and ``cursor`` say up to where the log was read. ``open_calls`` are in the order in
    which they entered; ``stray_results`` are the versions of results in the view without a call.
    """

    messages: tuple[Message, ...]
    version: int
    cursor: Cursor
    open_calls: tuple[OpenCall, ...] = ()
    stray_results: tuple[int, ...] = ()
    in_doubt: tuple[DoubtfulCall, ...] = ()
    continuation: Continuation = IN_STEP
    window: Window | None = None
    pairs: dict[int, int] = field(default_factory=dict)
    """Version of a result in the view -> version of the call it answers."""

    def as_json(self) -> dict[str, Json]:
        """The view as a JSON object; equal views give equal bytes."""
        document: dict[str, Json] = {
            "version": self.version,
            "cursor": str(self.cursor),
            "messages": [message.as_json() for message in self.messages],
            "open_calls": [call._asdict() for call in self.open_calls],
            "stray_results": list(self.stray_results),
            "in_doubt": [call._asdict() for call in self.in_doubt],
            "continuation": {
                "service": self.continuation.service,
                "ahead": list(self.continuation.ahead),
                "in_step": self.continuation.in_step,
            },
        }
        if self.window is not None:
            document["window"] = self.window._asdict()
        return document
