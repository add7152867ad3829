"""The sessions of an MCP server, each with a store of events of its own."""

from __future__ import annotations

from typing import Any

from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http import EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from eventlog.identity import new_id
from eventlog.log import Tenant
from gateway.adapters.mcp.events import MOST, EventLogEvents


class EventLogSessionManager(StreamableHTTPSessionManager):
    """In place of the SDK's ``StreamableHTTPSessionManager``, whose sessions would share one store.

    ``most`` is how many events are replayed at most; ``options`` are those of the SDK's manager.
    """

    def __init__(self, app: Server[Any], tenant: Tenant, *, most: int = MOST, **options: Any) -> None:
        self._tenant = tenant
        self._most = most
        super().__init__(app, **options)

    @property
    def event_store(self) -> EventStore | None:
        """Asked once for each session that begins: a store that no other session has."""
        return EventLogEvents(self._tenant, new_id(), most=self._most)

    @event_store.setter
    def event_store(self, store: EventStore | None) -> None:
        if store is not None:
            raise TypeError("event_store: each session gets a store of its own; leave it out")
