"""What the adapter for Microsoft Agent Framework raises and warns of."""

from __future__ import annotations

from agent_framework import MiddlewareFailure

from eventlog.errors import EventLogError


class RecordingFailed(EventLogError, MiddlewareFailure):
    """A step of a recorded run could not be written to the log, and the run was stopped there.

    The cause is the error of the log. It is a ``MiddlewareFailure``, too, so that the framework's
    loop does not take it for a tool that failed.
    """


class PersistenceWarning(UserWarning):
    """What a run did was taken from its end, for nothing watched its service calls."""


class UnrecordedWarning(UserWarning):
    """A run goes on although it is no longer recorded."""
