"""The event vocabulary: what can happen, and what each event says. Pure.

An event is an immutable fact at a version of its conversation. ``Event`` is one as read back,
``Draft`` one to be appended. ``DATA`` gives the shape of each known type's ``data``; other types
pass through. Events refer to others of their conversation by version.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, NotRequired

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from eventlog.messages import Json, Part

_OPEN = ConfigDict(extra="allow", strict=True)

Version = Annotated[int, Field(ge=1, lt=1 << 53)]
Name = Annotated[str, Field(min_length=1)]


class Mode(StrEnum):
    """When what a run did enters the history."""

    PER_SERVICE_CALL = "per-service-call"
    """Each completed service call enters at once."""
    PER_RUN = "per-run"
    """All of the run enters when it is committed, or nothing."""


class Parent(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    conversation: str
    run: str


class RunStarted(TypedDict):
    """A run was opened. Its id is the operation id of this append."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    mode: Literal["per-service-call", "per-run"]
    agent: NotRequired[str | None]
    parent: NotRequired[Parent | None]
    labels: NotRequired[dict[str, str]]


class RunResumed(TypedDict):
    """The run has a new holder."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    by: str
    fence: str


class MessageAdded(TypedDict):
    """A message, or one stretch of it. An output when the envelope carries ``call``, else an input."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    message_id: str
    role: Name
    parts: list[Part]
    author: NotRequired[str | None]
    extra: NotRequired[dict[str, Json] | None]


class FunctionCall(TypedDict):
    """The model asks the application to run a tool. ``arguments`` is kept as it came.

    ``extra`` is what the provider added to this call, ``message_extra`` to its message; ``part``
    holds any other fields that the part had.
    """

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    message_id: str
    call_id: str
    name: str
    arguments: NotRequired[Json]
    author: NotRequired[str | None]
    extra: NotRequired[dict[str, Json] | None]
    message_extra: NotRequired[dict[str, Json] | None]
    part: NotRequired[dict[str, Json] | None]


class FunctionResult(TypedDict):
    """A tool returned. ``answers`` is the version of its ``function-call``; without it the ``call_id`` decides."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    message_id: str
    call_id: str
    output: Json
    answers: NotRequired[Version | None]
    is_error: NotRequired[bool]
    synthetic: NotRequired[bool]
    author: NotRequired[str | None]
    extra: NotRequired[dict[str, Json] | None]
    message_extra: NotRequired[dict[str, Json] | None]
    part: NotRequired[dict[str, Json] | None]


class ServiceCallStarted(TypedDict):
    """A request is about to go out. ``sends`` are the versions of its inputs in the order sent.

    ``continues`` holds the service ids it builds on; None when the whole history was sent.
    """

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    sends: list[Version]
    continues: NotRequired[dict[str, Json] | None]
    model: NotRequired[str | None]
    instructions: NotRequired[str | None]
    tools: NotRequired[str | None]


class ServiceCallCompleted(TypedDict):
    """The service replied; in one append with its outputs, after them. ``service`` holds the ids it gave."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    finish_reason: NotRequired[str | None]
    model: NotRequired[str | None]
    usage: NotRequired[dict[str, Json] | None]
    service: NotRequired[dict[str, Json] | None]


class ServiceCallFailed(TypedDict):
    """The call failed. ``unknown``: the service may hold it all the same (a time-out, a broken stream)."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    error: str
    outcome: Literal["refused", "unknown"]
    partial: NotRequired[list[Part]]


class ApprovalRequested(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    function_call: Version
    by: NotRequired[str | None]
    reason: NotRequired[str | None]


class ApprovalResolved(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    function_call: Version
    decision: Literal["approved", "denied"]
    by: NotRequired[str | None]
    reason: NotRequired[str | None]


class RunCommitted(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    outcome: Literal["completed", "terminated", "max-iterations"]
    usage: NotRequired[dict[str, Json] | None]


class RunAborted(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    reason: Literal["failed", "cancelled", "expired", "superseded", "sealed"]
    error: NotRequired[str | None]


class HistoryRewound(TypedDict):
    """History is what it was at ``to`` (0: nothing). Nothing is deleted."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    to: Annotated[int, Field(ge=0, lt=1 << 53)]


class SummaryMessage(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    role: Name
    parts: list[Part]
    author: NotRequired[str | None]
    extra: NotRequired[dict[str, Json] | None]


class HistoryCompacted(TypedDict):
    """``messages`` stand in place of what entered up to ``through``. Nothing is deleted."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    through: Version
    messages: list[SummaryMessage]


class ConversationAnnotated(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    title: NotRequired[str | None]
    labels: NotRequired[dict[str, str]]


DATA: dict[str, type] = {
    "run-started": RunStarted,
    "run-resumed": RunResumed,
    "message-added": MessageAdded,
    "function-call": FunctionCall,
    "function-result": FunctionResult,
    "service-call-started": ServiceCallStarted,
    "service-call-completed": ServiceCallCompleted,
    "service-call-failed": ServiceCallFailed,
    "approval-requested": ApprovalRequested,
    "approval-resolved": ApprovalResolved,
    "run-committed": RunCommitted,
    "run-aborted": RunAborted,
    "history-rewound": HistoryRewound,
    "history-compacted": HistoryCompacted,
    "conversation-annotated": ConversationAnnotated,
}
"""Each known type and the shape of its data."""

NEEDS_RUN = frozenset({"run-started", "run-resumed", "run-committed", "run-aborted"})
NEEDS_CALL = frozenset({"service-call-started", "service-call-completed", "service-call-failed"})


class Draft(NamedTuple):
    """An event to be appended. ``call`` is the number of a service call within ``run``."""

    type: str
    data: dict[str, Any]
    run: str | None = None
    call: int | None = None
    actor: str | None = None
    causation: str | None = None
    meta: dict[str, Any] | None = None


class Event(NamedTuple):
    """An event as it was recorded, its data lifted to the current schema.

    ``version`` counts 1, 2, 3 … in its conversation; ``stamp`` is that of the transmission that
    wrote it; ``at`` is the writer's clock, UTC, RFC 3339 with microseconds.
    """

    version: int
    stamp: int
    type: str
    id: str
    run: str | None
    call: int | None
    at: str
    actor: str | None
    causation: str | None
    schema: int
    data: dict[str, Any]
    meta: dict[str, Any] | None

    @property
    def operation_id(self) -> str:
        """The id of the operation that appended it."""
        return self.id.rpartition(".")[0]


def versions(value: Any) -> list[int]:
    """The versions in a stored ``sends``; of what is not such a list, none."""
    return [version for version in value if type(version) is int] if type(value) is list else []
