"""An event-sourced message log for AI agents on Redis Streams.

Agents append immutable events, atomically, once, in order, fenced; ``projections`` reads them.
"""

from eventlog.consumer_group import ConsumerGroup, GroupStatus
from eventlog.conversation import Conversation
from eventlog.delivery import Delivery
from eventlog.durability import ALWAYS, EVERYSEC, MEMORY, Durability, replicated
from eventlog.errors import (
    AlreadyAnswered,
    AppendRefused,
    ConversationBusy,
    ConversationDeleted,
    CursorInvalid,
    EditRefused,
    EventLogError,
    FollowerTooSlow,
    Gap,
    GroupGone,
    InvalidEvent,
    InvalidId,
    InvalidInput,
    LayoutMismatch,
    LimitExceeded,
    LogClosed,
    LogLost,
    OperationReused,
    OutcomeUnknown,
    ReaderError,
    ReaderFenced,
    RunClosed,
    RunFenced,
    RunRefused,
    ServerError,
    ServerNotFound,
    ServerUnavailable,
    ServerUnfit,
    Truncated,
    Unreadable,
    VersionConflict,
)
from eventlog.events import Draft, Event, Mode
from eventlog.identity import Cursor, LogId
from eventlog.log import EventLog, Tenant
from eventlog.messages import Message, assistant, system, text, tool, tool_call, tool_result, user
from eventlog.parking import Parked
from eventlog.progress import FunctionCall, Progress
from eventlog.run import ResumedRun, Run
from eventlog.service_call import ServiceCall
from eventlog.sharing import Backoff
from eventlog.store.port import ANY, EXISTS, NONE, Appended, Expectation, Head, Limits, OpenRun
from eventlog.subscription import Followed, Kind
from eventlog.tenant_cursor import TenantCursor

__all__ = [
    "ALWAYS",
    "ANY",
    "EVERYSEC",
    "EXISTS",
    "MEMORY",
    "NONE",
    "AlreadyAnswered",
    "AppendRefused",
    "Appended",
    "Backoff",
    "ConsumerGroup",
    "Conversation",
    "ConversationBusy",
    "ConversationDeleted",
    "Cursor",
    "CursorInvalid",
    "Delivery",
    "Draft",
    "Durability",
    "EditRefused",
    "Event",
    "EventLog",
    "EventLogError",
    "Expectation",
    "Followed",
    "FollowerTooSlow",
    "FunctionCall",
    "Gap",
    "GroupGone",
    "GroupStatus",
    "Head",
    "InvalidEvent",
    "InvalidId",
    "InvalidInput",
    "Kind",
    "LayoutMismatch",
    "LimitExceeded",
    "Limits",
    "LogClosed",
    "LogId",
    "LogLost",
    "Message",
    "Mode",
    "OpenRun",
    "OperationReused",
    "OutcomeUnknown",
    "Parked",
    "Progress",
    "ReaderError",
    "ReaderFenced",
    "ResumedRun",
    "Run",
    "RunClosed",
    "RunFenced",
    "RunRefused",
    "ServerError",
    "ServerNotFound",
    "ServerUnavailable",
    "ServerUnfit",
    "ServiceCall",
    "Tenant",
    "TenantCursor",
    "Truncated",
    "Unreadable",
    "VersionConflict",
    "assistant",
    "replicated",
    "system",
    "text",
    "tool",
    "tool_call",
    "tool_result",
    "user",
]
