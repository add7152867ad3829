"""Messages and their parts. Pure.

A message is what a model service is sent or replies with. Part types carry the names of the
OpenTelemetry GenAI semantic conventions; a part of any other type passes through whole, a part of
a known type must be well formed. A call of a tool that the application must answer is a
``tool_call`` part and its answer a ``tool_call_response``; tools that the provider ran itself are
plain parts of other types (``server_tool_call`` …) and never wait for an answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Discriminator, Tag
from typing_extensions import TypedDict

_OPEN = ConfigDict(extra="allow", strict=True)

Json = Any
"""A JSON value: None, bool, int of 64 bits, finite float, str, list or dict of these."""


class TextPart(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    type: Literal["text"]
    content: str


class ReasoningPart(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    type: Literal["reasoning"]
    content: str


class BlobPart(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    type: Literal["blob"]
    content: str
    """Base64."""
    modality: NotRequired[str]
    mime_type: NotRequired[str | None]


class FilePart(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    type: Literal["file"]
    file_id: str
    modality: NotRequired[str]
    mime_type: NotRequired[str | None]


class UriPart(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    type: Literal["uri"]
    uri: str
    modality: NotRequired[str]
    mime_type: NotRequired[str | None]


class ToolCallPart(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    type: Literal["tool_call"]
    id: str
    name: str
    arguments: NotRequired[Json]
    extra: NotRequired[dict[str, Json]]


class ToolCallResponsePart(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    type: Literal["tool_call_response"]
    id: str
    response: Json
    is_error: NotRequired[bool]
    synthetic: NotRequired[bool]
    extra: NotRequired[dict[str, Json]]


class OtherPart(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    type: str


_KNOWN = frozenset({"text", "reasoning", "blob", "file", "uri", "tool_call", "tool_call_response"})


def _part_tag(part: object) -> str:
    """A callable discriminator: a malformed known type must not slip through as ``OtherPart``."""
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) and kind in _KNOWN else "other"


Part = Annotated[
    Annotated[TextPart, Tag("text")]
    | Annotated[ReasoningPart, Tag("reasoning")]
    | Annotated[BlobPart, Tag("blob")]
    | Annotated[FilePart, Tag("file")]
    | Annotated[UriPart, Tag("uri")]
    | Annotated[ToolCallPart, Tag("tool_call")]
    | Annotated[ToolCallResponsePart, Tag("tool_call_response")]
    | Annotated[OtherPart, Tag("other")],
    Discriminator(_part_tag),
]


@dataclass(slots=True)
class Message:
    """A message, to be recorded or as a view holds it.

    ``parts`` are JSON objects with a ``type``. ``log``, ``versions`` and ``stamp`` say which events
    it was read from (the log's tag, their versions, the stamp of the first); they are empty for a
    message that is new.
    """

    role: str
    parts: list[dict[str, Json]]
    message_id: str | None = None
    author: str | None = None
    extra: dict[str, Json] | None = None
    log: str | None = None
    versions: tuple[int, ...] = field(default=())
    stamp: int = 0

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(str(part.get("content", "")) for part in self.parts if part.get("type") == "text")

    def as_json(self) -> dict[str, Json]:
        """The message as a JSON object, without what is absent."""
        document: dict[str, Json] = {"role": self.role, "parts": self.parts}
        for name, value in (("message_id", self.message_id), ("author", self.author), ("extra", self.extra)):
            if value is not None:
                document[name] = value
        if self.versions:
            document["versions"] = list(self.versions)
        return document


def text(content: str) -> dict[str, Json]:
    """A text part."""
    return {"type": "text", "content": content}


def tool_call(call_id: str, name: str, arguments: Json = None) -> dict[str, Json]:
    """A part that calls a tool of the application. ``arguments`` is kept as it came."""
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}


def tool_result(call_id: str, response: Json, *, is_error: bool = False) -> dict[str, Json]:
    """A part that answers a tool call by its id."""
    part: dict[str, Json] = {"type": "tool_call_response", "id": call_id, "response": response}
    if is_error:
        part["is_error"] = True
    return part


def _message(role: str, parts: tuple[str | dict[str, Json], ...], author: str | None) -> Message:
    return Message(role, [text(part) if isinstance(part, str) else part for part in parts], author=author)


def user(*parts: str | dict[str, Json], author: str | None = None) -> Message:
    """A message of the user; a plain string is a text part."""
    return _message("user", parts, author)


def system(*parts: str | dict[str, Json], author: str | None = None) -> Message:
    """A message of the application to the model."""
    return _message("system", parts, author)


def assistant(*parts: str | dict[str, Json], author: str | None = None) -> Message:
    """A message of the model."""
    return _message("assistant", parts, author)


def tool(*parts: dict[str, Json], author: str | None = None) -> Message:
    """A message of tool results; see ``tool_result``."""
    return _message("tool", parts, author)
