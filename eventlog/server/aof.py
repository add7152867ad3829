"""The append-only file as bytes: which one is the last, and what stands behind a damage in it. Pure.

A torn tail is what a power cut or a full disk leaves: a command or transaction that was not finished, perhaps
with NUL bytes behind it. Nothing behind it can be read, so cutting it loses nothing that could be kept.
Damage in the middle is another thing: whole commands follow, and a cut would throw them away.
"""

from __future__ import annotations

import mmap
import re

FOLDER = "appendonlydir"
MANIFEST = "appendonly.aof.manifest"

_READABLE_UP_TO = re.compile(rb"ok_up_to=(\d+)")
_COMMAND = re.compile(rb"\*([1-9]\d{0,9})\r\n(?=\$\d)")
_ARGUMENT = re.compile(rb"\$(\d{1,12})\r\n")
_NOTE = re.compile(rb"#[^\r\n]*\r\n")

Bytes = bytes | mmap.mmap


def last_incremental(manifest: str) -> str | None:
    """The name of the file that the server wrote last, from lines as ``file <name> seq 2 type i``."""
    last: tuple[int, str] | None = None
    for line in manifest.splitlines():
        words = line.split()
        fields = dict(zip(words[::2], words[1::2], strict=False))
        if fields.get("type") == "i" and fields.get("seq", "").isdigit() and "file" in fields:
            last = max(last or (0, ""), (int(fields["seq"]), fields["file"]))
    return last[1] if last else None


def readable_up_to(output: bytes) -> int | None:
    """The offset up to which the check tool found whole commands, from what it printed."""
    match = _READABLE_UP_TO.search(output)
    return int(match[1]) if match else None


def whole_command_behind(data: Bytes, start: int) -> int | None:
    """The offset of a whole command that a cut at ``start`` would throw away, or None if the tail is only
    torn.

    ``start`` is where the check tool stopped. It stops before a MULTI that has no EXEC, so commands of that
    transaction may follow; they were never to be applied and may go. A damaged length can swallow what
    follows it, so commands are looked for at every place behind the damage, not only where the next one
    should begin.
    """
    at = start
    while (end := _end(data, at)) is not None:
        if at == start and not _is(data, at, b"MULTI"):
            return at
        if _is(data, at, b"EXEC"):
            return start
        at = end
    for match in _COMMAND.finditer(data, at + 1):
        if _end(data, match.start()) is not None:
            return match.start()
    return None


def _end(data: Bytes, at: int) -> int | None:
    """Where the command (or the note line) at ``at`` ends; None unless all of it is there and well formed."""
    note = _NOTE.match(data, at)
    if note:
        return note.end()
    head = _COMMAND.match(data, at)
    if head is None:
        return None
    at = head.end()
    for _ in range(int(head[1])):
        argument = _ARGUMENT.match(data, at)
        if argument is None:
            return None
        at = argument.end() + int(argument[1])
        if data[at : at + 2] != b"\r\n":
            return None
        at += 2
    return at


def _is(data: Bytes, at: int, name: bytes) -> bool:
    """Whether the command at ``at`` is the one-word command ``name``."""
    head = b"*1\r\n$%d\r\n%s\r\n" % (len(name), name)
    return data[at : at + len(head)].upper() == head
