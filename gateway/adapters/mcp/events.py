"""The events of one MCP session: what went out on its streams, to be replayed to a client that comes back."""

from __future__ import annotations

from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter

from eventlog.conversation import Conversation
from eventlog.errors import CursorInvalid, FollowerTooSlow, InvalidEvent
from eventlog.events import Draft, Event
from eventlog.identity import Cursor
from eventlog.log import Tenant
from gateway.adapters.mcp import event_id

MESSAGE = "mcp-message"
"""The type of the events: ``stream`` and ``message``; null only gives the client a place to resume from."""
MOST = 10_000
"""How many events may have come since the one a client saw last."""


class EventLogEvents(EventStore):
    """The ``EventStore`` of one session, in a conversation of its own.

    Streams of different sessions share their names (the ids of requests), so one store must not
    serve two: ``EventLogSessionManager`` gives each session its own. An event id counts for the
    stream it names, in this session; any other is ``CursorInvalid``, and nothing is replayed: the
    stream is judged first, and of an event on a stream that is not this session's nothing is looked up.
    """

    def __init__(self, tenant: Tenant, session: str, *, most: int = MOST) -> None:
        self.conversation: Conversation = tenant.conversation(f"mcp/{session}")
        self._most = most
        self._streams: set[str] = set()
        """The streams that this session is known to have."""
        self._seen: Cursor | None = None
        """Up to where its log was read for them."""

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Record what goes out on a stream; return its id. Raises errors of the ``ServerError`` branch."""
        data = {"stream": stream_id, "message": None if message is None else _as_json(message)}
        try:
            appending = self.conversation.append(Draft(MESSAGE, data))
        except InvalidEvent:  # no JSON of ours, as integers beyond 64 bits
            data["message"] = "" if message is None else _as_text(message)
            appending = self.conversation.append(Draft(MESSAGE, data))
        appended = await appending
        self._streams.add(stream_id)
        return event_id.event_id(stream_id, appended.cursor)

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send again what went out on the stream after the event; return the stream.

        Raises ``CursorInvalid`` for an event of another stream, session or tenant, ``FollowerTooSlow`` when more
        has come since than is replayed, ``LogLost`` or ``Truncated`` where events are missing: then nothing is sent.
        """
        stream, cursor = event_id.parse(last_event_id)
        if not await self._has(stream):
            raise CursorInvalid(f"stream {ascii(stream)[:80]} is none of this session: begin another session")
        cursor = self.conversation.log.check_cursor(cursor)
        seen = await self._at(cursor)
        if seen is None or seen.type != MESSAGE or seen.data.get("stream") != stream:
            raise CursorInvalid(
                f"event {ascii(last_event_id)[:80]} did not go out on stream {ascii(stream)[:80]} of this session"
            )
        behind = (await self.conversation.head()).last.version - cursor.version
        if behind > self._most:
            raise FollowerTooSlow(
                f"{behind:,} events came since {cursor}, at most {self._most:,} are replayed: begin another session",
                cursor,
            )
        async for event in self.conversation.read(cursor, types=[MESSAGE]):
            message = event.data.get("message")
            if event.data.get("stream") == stream and message is not None:
                await send_callback(EventMessage(_message(message), self._id_of(stream, event)))
        return stream

    async def _has(self, stream: str) -> bool:
        """Whether anything went out on the stream; what came since the last time is read only when it is not known."""
        if stream not in self._streams:
            async for event in self.conversation.read(self._seen):
                if event.type == MESSAGE:
                    self._streams.add(str(event.data.get("stream")))
                self._seen = self.conversation.log.cursor(event.version, event.stamp)
        return stream in self._streams

    async def _at(self, cursor: Cursor) -> Event | None:
        """The event at a cursor. Raises ``LogLost`` or ``Truncated`` when it is not there."""
        async for _ in self.conversation.pages(cursor, until=cursor.version):
            pass  # what this checks is that the event is still the same
        found = [event async for event in self.conversation.read(until=cursor.version, reverse=True, limit=1)]
        return found[0] if found and found[0].stamp == cursor.stamp else None

    def _id_of(self, stream: str, event: Event) -> str:
        return event_id.event_id(stream, self.conversation.log.cursor(event.version, event.stamp))


def _as_json(message: JSONRPCMessage) -> object:
    return message.model_dump(by_alias=True, mode="json", exclude_unset=True)


def _as_text(message: JSONRPCMessage) -> str:
    return message.model_dump_json(by_alias=True, exclude_unset=True)


def _message(stored: object) -> JSONRPCMessage:
    if isinstance(stored, str):
        return jsonrpc_message_adapter.validate_json(stored)
    return jsonrpc_message_adapter.validate_python(stored)
