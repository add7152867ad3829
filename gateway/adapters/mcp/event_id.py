"""How a client names the last event it saw: the stream, and the cursor of the event in its session's log. Pure."""

from __future__ import annotations

from urllib.parse import quote, unquote

from eventlog.errors import CursorInvalid
from eventlog.identity import Cursor


def event_id(stream: str, cursor: Cursor) -> str:
    """One line of visible ASCII, as an SSE id must be."""
    return f"{quote(stream, safe='')}@{cursor}"


def parse(text: str) -> tuple[str, Cursor]:
    """The inverse. Raises ``CursorInvalid``."""
    stream, separator, cursor = text.rpartition("@") if isinstance(text, str) else ("", "", "")
    if not separator or not stream.isascii() or quote(unquote(stream), safe="") != stream:
        raise CursorInvalid(f"{ascii(text)[:80]} is not an event id: send back the last one that came, unchanged")
    return unquote(stream), Cursor.parse(cursor)
