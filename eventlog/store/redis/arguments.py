"""The arguments of append.lua, in its order. Pure."""

from __future__ import annotations

from eventlog.store.port import OPERATION_WINDOW, Append, Expectation
from eventlog.store.redis.keys import Keys


def append_arguments(
    keys: Keys, request: Append, stamp: int, over: str | None, *, retry: bool, replicated: bool = False
) -> tuple[str | bytes | int, ...]:
    """The keys and arguments of append.lua, in its order."""
    encoded, expected = request.encoded, request.expected
    operation: tuple[str | bytes | int, ...] = (
        6,
        *keys.of_log(request.log),
        request.operation_id,
        encoded.digest,
        stamp,
        request.cursor.entry_id,
        expected.value if isinstance(expected, Expectation) else expected.entry_id,
        "over" if over else ("retry" if retry else ""),
        "1" if replicated else "",
        OPERATION_WINDOW,
        request.log.path,
        encoded.kinds,
        encoded.id_prefix,
        len(encoded.documents),
        *(() if over else encoded.documents),
    )
    claim = request.claim
    if claim is None and not request.alone and not request.supersedes:
        return operation
    if claim is None:
        return (*operation, "none", *("",) * 9, "1" if request.alone else "", *request.supersedes)
    return (
        *operation,
        claim.step.value,
        claim.run,
        claim.fence,
        claim.lease_ms,
        claim.mode,
        "1" if claim.exclusive else "0",
        claim.holder,
        claim.last_call,
        "1" if claim.closes else "",
        ",".join(map(str, claim.answers)),
        "1" if request.alone else "",
        *request.supersedes,
    )
