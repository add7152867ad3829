"""When a rewind or a compaction may be made. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from eventlog.errors import EditRefused
from eventlog.ledger import Ledger
from eventlog.messages import Json


def check_rewind(to: int, last: int) -> None:
    """Raise ``EditRefused`` unless there is such a version to go back to."""
    if type(to) is not int or not 0 <= to <= last:
        raise EditRefused(f"cannot rewind to version {to!r}: the log has versions 0 to {last}")


def check_compaction(ledger: Ledger, through: int, messages: Sequence[dict[str, Json]]) -> None:
    """Raise ``EditRefused`` unless something is replaced and no call is parted from its result."""
    last = ledger.state.version
    if type(through) is not int or not 1 <= through <= last:
        raise EditRefused(f"cannot compact through version {through}: the log has versions 1 to {last}")
    going = [row for row in ledger.view if row.entered <= through]
    if not going:
        raise EditRefused(f"nothing in the history had entered by version {through}: choose a later one")
    versions = {version for row in going for version in row.versions}
    for call in ledger.state.calls.open:
        if call.version in versions:
            raise EditRefused(
                f"the call {call.call_id!r} at version {call.version} has no result in the history yet: "
                "compact through an earlier version, or answer it first"
            )
    for result, call_version in ledger.pairs.items():
        if (result in versions) != (call_version in versions):
            raise EditRefused(
                f"the call at version {call_version} and its result at version {result} would be parted: "
                "compact through an earlier or a later version"
            )
    for call_version, result in ledger.state.calls.early.items():
        if result in versions:
            raise EditRefused(
                f"the result at version {result} answers the call at version {call_version}, whose run is not "
                "committed yet: compact through an earlier version, or wait for the commit"
            )
    _check_pairs(messages)


def _check_pairs(messages: Sequence[dict[str, Json]]) -> None:
    """Calls that stand in the new messages must have their results there, and the other way round."""
    waiting: list[str] = []
    for part in (part for message in messages for part in message["parts"]):
        if part.get("type") == "tool_call":
            waiting.append(str(part.get("id")))
        elif part.get("type") == "tool_call_response":
            if part.get("id") not in waiting:
                raise EditRefused(f"the new messages hold a result of {part.get('id')!r} without its call before it")
            waiting.remove(str(part.get("id")))
    if waiting:
        raise EditRefused(f"the new messages hold the call {waiting[0]!r} without its result")
