"""Finding, starting, checking and repairing a Redis-compatible server."""

from __future__ import annotations

from eventlog.server.check import ServerReport, check
from eventlog.server.embedded import EmbeddedServer

__all__ = ["EmbeddedServer", "ServerReport", "check"]
