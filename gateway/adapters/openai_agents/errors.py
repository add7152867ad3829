"""The errors of this adapter, part of the one tree. Pure."""

from __future__ import annotations

from eventlog.errors import InvalidInput, LogClosed


class SessionClosed(LogClosed, RuntimeError):
    """The session owned its log and was closed: make another. A ``RuntimeError``, as the SDK's own sessions raise."""


class ItemInvalid(InvalidInput, TypeError):
    """An item that is no JSON. A ``TypeError``, as the SDK's own sessions raise."""
