"""Resumable streams of MCP servers in the log: an ``EventStore`` for each session of streamable HTTP.

    manager = EventLogSessionManager(app, log.tenant("blue"))        # in place of StreamableHTTPSessionManager

Needs ``mcp``.
"""

from gateway.adapters.mcp.events import EventLogEvents
from gateway.adapters.mcp.session_manager import EventLogSessionManager

__all__ = ["EventLogEvents", "EventLogSessionManager"]
