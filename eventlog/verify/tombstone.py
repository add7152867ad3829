"""Whether a deleted conversation has left its head alone, and that says what it should. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from eventlog.verify.fault import Fault, id_of, show

_RIGHT = "a deleted conversation should have only its head"
_FIELDS: dict[bytes, tuple[Callable[[bytes], bool], str]] = {
    b"last": (lambda value: bool((id_of(value) or (0,))[0]), "it should be <version>-<stamp> of the last event it had"),
    b"why": (lambda value: value in (b"deleted", b"expired"), "it should be 'deleted' or 'expired'"),
    b"deleted": (lambda value: re.fullmatch(rb"[1-9][0-9]{0,15}", value) is not None, "it should be when, in ms"),
}


def check_tombstone(
    head: Mapping[bytes, bytes],
    ops: Mapping[bytes, bytes],
    old_ops: Mapping[bytes, bytes],
    last_id: bytes | None,
    score: bytes | None,
) -> Iterator[Fault]:
    """The faults of what the keys of a deleted conversation hold; ``score`` as in ``LogSnapshot``."""
    if last_id is not None:
        yield Fault("the log", f"it holds an event, {show(last_id.decode(errors='backslashreplace'))}", _RIGHT)
    for what, stored in (("the operations", ops), ("the old operations", old_ops)):
        if stored:
            yield Fault(what, f"there are {len(stored)} records", _RIGHT)
    if score:
        yield Fault("the set of conversations", "its path is there", "it should not be: it was deleted")
    for name, (is_right, right) in _FIELDS.items():
        value = head.get(name)
        if value is None or not is_right(value):
            yield Fault(_field(name), "it is missing" if value is None else f"it is {show(value)}", right)
    for name in head.keys() - {b"state", b"confirmed", *_FIELDS}:
        yield Fault(_field(name), f"it is {show(head[name])}", "it should not be there: the conversation was deleted")


def _field(name: bytes) -> str:
    return f"field {name.decode(errors='backslashreplace')!r} of the head"
