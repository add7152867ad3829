"""Every error this product raises, in one tree.

    EventLogError
    ├── InvalidInput             what was handed over cannot be taken; nothing was sent
    │   ├── InvalidId            a tenant, conversation, operation or run id
    │   ├── InvalidEvent         an event or one of its fields; tells the path
    │   └── CursorInvalid        a cursor that is malformed or of another log
    ├── AppendRefused            the append was checked and refused; nothing was written
    │   ├── OperationReused      the operation id was used with other content
    │   ├── ConversationDeleted
    │   ├── RunRefused           the run, or another one, stands in the way
    │   │   ├── RunFenced        the run has another holder
    │   │   ├── RunClosed        the run was committed or aborted
    │   │   ├── ConversationBusy another run is open
    │   │   └── AlreadyAnswered  the run holds a result for this call
    │   ├── VersionConflict      the log is not at the expected version
    │   ├── LimitExceeded        too many events or bytes
    │   └── EditRefused          a rewind or compaction that would tear the history
    ├── OutcomeUnknown           sent, but no reply: append again with the same id to learn
    ├── Gap                      events that should be there are not
    │   ├── LogLost              they were there and the server lost them
    │   └── Truncated            they were trimmed on purpose
    ├── FollowerTooSlow          it fell too far behind; follow again after its cursor
    ├── ReaderError              a place in a feed, and who reads from it
    │   ├── ReaderFenced         the reader has another holder now
    │   ├── GroupGone            the group was removed, or never created
    │   └── FeedLost             the feed lacks what a mark names; the reader says LogLost
    ├── ProjectionError          a view and what keeps it
    │   ├── ViewMissing          no view of this projection and version is kept
    │   └── ProjectionStopped    an event could not be applied; nothing was skipped
    ├── LogClosed                the log was closed while it was used, or before
    ├── Unreadable               a stored event or key that does not hold what it should
    └── ServerError              the server, or the way to it
        ├── ServerNotFound       no server binary on this machine
        ├── ServerUnavailable    it does not answer, or not in time
        └── ServerUnfit          it answers, but must not be used as it is
            └── LayoutMismatch   the namespace was laid out otherwise

Each message names the value, the limit and the way out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eventlog.identity import Cursor


class EventLogError(Exception):
    """The root of the tree."""


class InvalidInput(EventLogError, ValueError):
    """What was handed over cannot be taken; nothing was sent."""


class InvalidId(InvalidInput):
    """An id that is empty, too long or not text."""


class InvalidEvent(InvalidInput):
    """An event that is not well formed. ``path`` tells where, as ``events[0].data.role``."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class CursorInvalid(InvalidInput):
    """A cursor that is malformed, or of another conversation or tenant."""


class AppendRefused(EventLogError):
    """The append was checked and refused; nothing was written."""


class OperationReused(AppendRefused):
    """The operation id was used before, with other content."""


class ConversationDeleted(AppendRefused):
    """The conversation was deleted; its versions never start again."""


class RunRefused(AppendRefused):
    """A run stands in the way."""

    def __init__(self, message: str, run: str) -> None:
        super().__init__(message)
        self.run = run


class RunFenced(RunRefused):
    """The run has another holder now."""


class RunClosed(RunRefused):
    """The run was committed or aborted, and takes nothing more."""


class ConversationBusy(RunRefused):
    """Another run is open on this conversation."""

    def __init__(self, message: str, run: str, *, expired: bool) -> None:
        super().__init__(message, run)
        self.expired = expired


class AlreadyAnswered(RunRefused):
    """The run already holds a result for this call."""


class VersionConflict(AppendRefused):
    """The log is not at the expected version. ``actual`` is where it is."""

    def __init__(self, message: str, actual: Cursor) -> None:
        super().__init__(message)
        self.actual = actual


class LimitExceeded(AppendRefused):
    """More events or bytes than one operation may carry."""


class EditRefused(AppendRefused):
    """A rewind or compaction that would tear the history, or change nothing."""


class OutcomeUnknown(EventLogError):
    """The append was sent and its outcome could not be learnt.

    Append again with the same ``operation_id`` and the same content: that is the way to find out.
    """

    def __init__(self, message: str, operation_id: str) -> None:
        super().__init__(message)
        self.operation_id = operation_id


class Gap(EventLogError):
    """Events that should be there are not. ``available`` is the last event that still is."""

    def __init__(self, message: str, available: Cursor) -> None:
        super().__init__(message)
        self.available = available


class LogLost(Gap):
    """The server lost events it had acknowledged."""


class Truncated(Gap):
    """The events were trimmed. ``available`` is the last trimmed one: read after it."""


class FollowerTooSlow(EventLogError):
    """The follower fell further behind than was allowed. ``cursor`` is where to go on."""

    def __init__(self, message: str, cursor: Cursor) -> None:
        super().__init__(message)
        self.cursor = cursor


class ReaderError(EventLogError):
    """A place in a feed, and who reads from it."""


class ReaderFenced(ReaderError):
    """The reader has another holder now, or its mark is not where this one left it."""


class GroupGone(ReaderError):
    """The group was removed, or never created."""


class FeedLost(ReaderError):
    """The feed does not hold the entry that a mark is to name. The reader says ``LogLost``."""


class ProjectionError(EventLogError):
    """A view, and what keeps it."""


class ViewMissing(ProjectionError):
    """No view of this projection and version is kept, or not yet whole."""


class ProjectionStopped(ProjectionError):
    """An event could not be applied. The projection stands before it; nothing was skipped."""


class LogClosed(EventLogError):
    """The log was closed while it was used, or before: open it again."""


class Unreadable(EventLogError):
    """A stored event or key that does not hold what it should."""


class ServerError(EventLogError):
    """The server, or the way to it."""


class ServerNotFound(ServerError):
    """There is no server binary on this machine."""


class ServerUnavailable(ServerError):
    """The server does not answer, or not in time."""


class ServerUnfit(ServerError):
    """The server answers, but must not be used as it is."""


class LayoutMismatch(ServerUnfit):
    """The namespace on this server was laid out otherwise."""
