"""What the server's replies say, in our terms. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from eventlog.errors import EventLogError, ServerError, ServerUnfit, Unreadable
from eventlog.identity import Cursor, LogId
from eventlog.store import refusals
from eventlog.store.port import Append, Entry, FeedEntry, OpenRun

_NOT_ALLOWED_IN_SCRIPT = ("The user executing the script", "ACL failure in script")
_new = tuple.__new__  # entries are read by the thousand


def refusal(request: Append, code: bytes, details: list[bytes], over: str | None) -> EventLogError:
    """The error for what append.lua refused."""
    claim_run = request.claim.run if request.claim else ""
    match code, details:
        case b"DELETED", _:
            return refusals.deleted(request)
        case b"TRUNCATED", [base]:
            return refusals.truncated(request, cursor(request.log, base))
        case b"LOST", [last]:
            return refusals.lost(request, cursor(request.log, last))
        case b"UNKNOWN", _:
            return refusals.unknown(request)
        case b"CLOSED", _:
            return refusals.closed(request.log, claim_run)
        case b"FENCED", [holder, since]:
            return refusals.fenced(request.log, claim_run, holder.decode(), int(since))
        case b"BUSY", [run, holder, since, lease, now]:
            return refusals.busy(request, run.decode(), holder.decode(), int(since), int(lease), int(now))
        case b"ANSWERED", [call, result]:
            return refusals.answered(request, claim_run, int(call), int(result))
        case b"CONFLICT", [last]:
            return refusals.conflict(request, cursor(request.log, last))
        case b"LIMIT", _:
            return refusals.limit(request, over or "too large")
        case b"UNREADABLE", _:
            return Unreadable(
                f"a key of {refusals.name(request.log)} does not hold what it should, and nothing was written: "
                "`eventlog verify` names it"
            )
    return Unreadable(f"the append script replied {code!r}")


def server_error(reason: str) -> ServerError:
    if reason.startswith("OOM"):
        return ServerUnfit(f"the server is out of memory and wrote nothing: {reason}; raise maxmemory or trim")
    if reason.startswith("MISCONF"):
        return ServerUnfit(
            f"the server cannot write to its disk and took nothing: {reason}; make room, or mend the disk"
        )
    if reason.startswith("READONLY"):
        return ServerUnfit(f"the server is a replica and wrote nothing: {reason}; connect to its primary")
    if reason.startswith("NOAUTH"):
        return ServerUnfit(f"the server wants a password: {reason}; write it as redis://USER:PASSWORD@HOST")
    if reason.startswith("WRONGTYPE"):
        return ServerError(f"a key is of another type than ours: {reason}; `eventlog verify` names it")
    if reason.startswith("NOPERM") or any(words in reason for words in _NOT_ALLOWED_IN_SCRIPT):
        return ServerUnfit(f"the user may not do this: {_plain(reason)}; grant it the commands and keys it needs")
    return ServerError(f"the server refused: {reason}")


def _plain(reason: str) -> str:
    """The reason without what only the script's author can use: its digest, and a line in it."""
    said = re.sub(r"\s*\bscript: [0-9a-f]{40}, on @user_script:\d+\.?", "", reason).removeprefix("ERR ")
    if "can't run this command" in said:
        return "it may run the script, but not one of the commands in it, and the server does not say which"
    return said


def entry(item: Any) -> Entry:
    try:
        identity, fields = item
        version, _, stamp = identity.partition(b"-")
        return _new(Entry, (int(version), int(stamp), fields[1]))
    except (TypeError, ValueError, IndexError) as error:
        raise Unreadable(f"a stream entry does not hold an event: {item!r:.80}") from error


def picked(stretches: Iterable[list[Any]], versions: Sequence[int]) -> list[Entry]:
    """Those of the entries that are wanted. A stretch without a hole is not looked through, but counted off."""
    found: list[Entry] = []
    wanted = iter(versions)
    version = next(wanted, None)
    for items in stretches:
        if not items:
            continue
        first, last = entry(items[0]).version, entry(items[-1]).version
        if last - first + 1 == len(items):
            while version is not None and version <= last:
                if version >= first:
                    found.append(entry(items[version - first]))
                version = next(wanted, None)
            continue
        there = {one.version: one for one in map(entry, items)}
        while version is not None and version <= last:
            if version in there:
                found.append(there[version])
            version = next(wanted, None)
    return found


def feed_entry(partition: int, item: Any) -> FeedEntry:
    try:
        identity, (_, path, _, first, _, count, _, kinds, _, stamp) = item
        seq = int(identity.removeprefix(b"0-"))
        return FeedEntry(partition, seq, listed(path), int(first), int(count), kinds.decode(), int(stamp))
    except (TypeError, ValueError) as error:
        raise Unreadable(
            f"the feed of partition {partition} holds {item!r:.80}, which names no append: `eventlog verify` names it"
        ) from error


def listed(path: bytes) -> LogId:
    try:
        log = LogId.of_path(path.decode())
    except UnicodeDecodeError:
        log = LogId("", "")
    if log.path.encode() != path:
        raise Unreadable(f"the list of conversations holds {path!r}, which names none: remove it")
    return log


def cursor(log: LogId, entry_id: bytes) -> Cursor:
    version, _, stamp = entry_id.partition(b"-")
    return log.cursor(int(version), int(stamp))


def open_run(name: bytes, packed: bytes) -> OpenRun:
    mode, exclusive, first, call, since, lease, _fence, holder = packed.split(b"|", 7)
    return OpenRun(
        name[4:].decode(),
        mode.decode(),
        exclusive == b"1",
        int(first),
        int(call),
        int(since),
        int(lease),
        holder.decode(),
    )
