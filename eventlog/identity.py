"""Ids, cursors, and where a conversation's keys live. Pure.

Ids are any text of 1 to 1,000 bytes. They are percent-encoded into keys, so that no two ids of
different meaning can share a key (a tenant ``a/b`` never reaches ``a``'s conversation ``b/…``).
"""

from __future__ import annotations

import re
import secrets
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import quote, unquote

from eventlog.errors import CursorInvalid, InvalidId

MAX_ID_BYTES = 1000
_CURSOR = re.compile(r"(0|[1-9][0-9]{0,15})-(0|[1-9][0-9]{0,18})~([0-9a-f]{8})", re.ASCII)
_NAMESPACE = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


def check_id(value: object, what: str) -> str:
    """Return ``value`` when it is text of 1 to 1,000 UTF-8 bytes, else raise ``InvalidId``."""
    if not isinstance(value, str):
        raise InvalidId(f"{what} must be text, not {type(value).__name__}: give a str")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise InvalidId(f"{what} {ascii(value)[:80]} has a lone surrogate: give well-formed text") from error
    if not 1 <= size <= MAX_ID_BYTES:
        raise InvalidId(
            f"{what} {ascii(value)[:80]} has {size:,} bytes; 1 to {MAX_ID_BYTES:,} are allowed: "
            f"give a {'shorter' if size else 'non-empty'} one"
        )
    return value


def check_namespace(value: str) -> str:
    """Return ``value`` when it can stand in front of every key, else raise ``InvalidId``."""
    if not _NAMESPACE.fullmatch(value):
        raise InvalidId(f"namespace {ascii(value)[:80]}: use 1 to 64 of the characters A-Z a-z 0-9 . _ -")
    return value


def new_id() -> str:
    """A fresh operation id: 128 random bits as 22 URL-safe characters."""
    return secrets.token_urlsafe(16)


def new_stamp() -> int:
    """63 random bits, never 0: the mark of one transmission of one append."""
    return secrets.randbits(63) or 1


def new_fence() -> str:
    """64 random bits in hexadecimal: the proof of holding a run, compared for equality only."""
    return secrets.token_hex(8)


class Cursor(NamedTuple):
    """The event a reader or writer last saw: its version, its stamp, and which log it is of.

    As text it is one opaque string: ``str(cursor)`` and ``Cursor.parse`` are inverse. Version 0
    stands before the first event.
    """

    version: int
    stamp: int
    log: str

    def __str__(self) -> str:
        return f"{self.version}-{self.stamp}~{self.log}"

    @property
    def entry_id(self) -> str:
        """The id of the event's stream entry, ``<version>-<stamp>``."""
        return f"{self.version}-{self.stamp}"

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Read a cursor from its text, or raise ``CursorInvalid``."""
        match = _CURSOR.fullmatch(text) if isinstance(text, str) else None
        if match is None or int(match[2]) >= 1 << 63:
            raise CursorInvalid(f"{ascii(text)[:80]} is not a cursor: pass one back as this log gave it, unchanged")
        return cls(int(match[1]), int(match[2]), match[3])


class LogId(NamedTuple):
    """Which log: a tenant's conversation."""

    tenant: str
    conversation: str

    @property
    def path(self) -> str:
        """``<tenant>/<conversation>``, each percent-encoded: the end of the conversation's keys."""
        return _path(self.tenant, self.conversation)

    @property
    def tag(self) -> str:
        """Eight hexadecimal digits that tell cursors of different logs apart."""
        return _tag(self.path)

    @classmethod
    def of_path(cls, path: str) -> LogId:
        """The inverse of ``path``."""
        tenant, _, conversation = path.partition("/")
        return cls(unquote(tenant), unquote(conversation))

    def cursor(self, version: int, stamp: int) -> Cursor:
        """A cursor of this log."""
        return Cursor(version, stamp, self.tag)

    def check_cursor(self, cursor: Cursor | str) -> Cursor:
        """Return the cursor when it is of this log, else raise ``CursorInvalid``."""
        parsed = cursor if isinstance(cursor, Cursor) else Cursor.parse(cursor)
        if parsed.log != self.tag:
            raise CursorInvalid(
                f"cursor {parsed} is of another conversation or tenant, not of {self.conversation!r} of {self.tenant!r}"
            )
        return parsed


def tenant_path(tenant: str) -> str:
    """What the ``path`` of each of a tenant's conversations begins with."""
    return quote(tenant, safe="") + "/"


def partition_of(path: str, partitions: int) -> int:
    """The partition, 0 to ``partitions`` - 1, that a conversation's path is hashed onto. Fixed for ever."""
    return int.from_bytes(blake2b(path.encode(), digest_size=8).digest(), "big") % partitions


@lru_cache(maxsize=4096)
def _path(tenant: str, conversation: str) -> str:
    return tenant_path(tenant) + quote(conversation, safe="")


@lru_cache(maxsize=4096)
def _tag(path: str) -> str:
    return blake2b(path.encode(), digest_size=4).hexdigest()
