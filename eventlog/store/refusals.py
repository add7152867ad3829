"""The error for each check an append can fail, so that every store says the same. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson

from eventlog import errors
from eventlog.codec import content_of
from eventlog.identity import Cursor, LogId
from eventlog.store.port import Append, Appended, Entry


def name(log: LogId) -> str:
    """How messages name the conversation."""
    return f"conversation {log.conversation!r} of {log.tenant!r}"


def reused(request: Append) -> errors.OperationReused:
    return errors.OperationReused(
        f"operation {request.operation_id!r} was appended to {name(request.log)} before with other content: "
        "use a new operation id for new content"
    )


def deleted(request: Append) -> errors.ConversationDeleted:
    return gone(request.log)


def gone(log: LogId) -> errors.ConversationDeleted:
    return errors.ConversationDeleted(
        f"{name(log)} was deleted, and nothing of it is left: use another conversation id"
    )


def lost(request: Append, last: Cursor) -> errors.LogLost:
    return errors.LogLost(
        f"version {request.cursor.version} of {name(request.log)} is gone: the server lost acknowledged events; "
        f"what is left ends at version {last.version}: open the conversation anew and check what is missing",
        last,
    )


def truncated(request: Append, base: Cursor) -> errors.Truncated:
    return errors.Truncated(
        f"version {request.cursor.version} of {name(request.log)} was trimmed, up to version {base.version}: "
        "open the conversation anew",
        base,
    )


def unknown(request: Append) -> errors.OutcomeUnknown:
    return errors.OutcomeUnknown(
        f"whether operation {request.operation_id!r} was appended to {name(request.log)} cannot be learnt: the record "
        "of operations no longer reaches back to it; read the log to find out",
        request.operation_id,
    )


def fenced(log: LogId, run: str, holder: str, since_ms: int) -> errors.RunFenced:
    return errors.RunFenced(
        f"run {run!r} of {name(log)} is held by {holder or 'another'} since {_time(since_ms)}: "
        "this holder was replaced and must stop",
        run,
    )


def closed(log: LogId, run: str) -> errors.RunClosed:
    return errors.RunClosed(
        f"run {run!r} of {name(log)} is not open: it was committed or aborted; start another run, "
        "or add a late result outside any run",
        run,
    )


def busy(request: Append, run: str, holder: str, since_ms: int, lease_ms: int, now_ms: int) -> errors.ConversationBusy:
    return in_use(request.log, run, holder, since_ms, lease_ms, now_ms)


def in_use(log: LogId, run: str, holder: str, since_ms: int, lease_ms: int, now_ms: int) -> errors.ConversationBusy:
    expired = lease_ms <= now_ms
    way_out = (
        f"its lease expired at {_time(lease_ms)}: abort it or take it over"
        if expired
        else f"its lease runs until {_time(lease_ms)}: wait for it"
    )
    return errors.ConversationBusy(
        f"run {run!r} of {name(log)} is open, held by {holder or 'another'} since {_time(since_ms)}; {way_out}",
        run,
        expired=expired,
    )


def answered(request: Append, run: str, call: int, result: int) -> errors.AlreadyAnswered:
    return errors.AlreadyAnswered(
        f"the function call at version {call} of {name(request.log)} was answered in run {run!r} at version {result}: "
        "a call has one result in its run",
        run,
    )


def conflict(request: Append, actual: Cursor) -> errors.VersionConflict:
    expected = request.expected
    wanted = f"version {expected.version}" if isinstance(expected, Cursor) else f"{expected.value!r}"
    return errors.VersionConflict(
        f"{name(request.log)} is at version {actual.version}, not at the expected {wanted}: "
        "read it again and decide anew",
        actual,
    )


def limit(request: Append, what: str) -> errors.LimitExceeded:
    return errors.LimitExceeded(f"{name(request.log)}: {what}")


def retried(request: Append, first: int, entries: list[Entry]) -> Appended:
    """The first outcome of a retry whose events stand in ``entries``, or ``OperationReused``.

    ``entries`` are read from ``first``, the version of the operation's first event, on: one more
    than the request has. When that event was trimmed, the contents cannot be compared.
    """
    if not entries or entries[0].version != first:
        raise unknown(request)
    prefix = request.operation_id + "."
    mine = [entry for entry in entries if orjson.loads(entry.document)["id"].rpartition(".")[0] + "." == prefix]
    given = [content_of(document) for document in request.encoded.documents]
    if [content_of(entry.document) for entry in mine] != given:
        raise reused(request)
    return Appended(request.log.cursor(mine[-1].version, mine[-1].stamp), mine[0].version, request.operation_id, True)


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
