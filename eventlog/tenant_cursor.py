"""A place in all of a tenant's conversations at once: one position in each partition's feed. Pure.

As text: ``t1.`` and, in URL-safe base64 without padding, the tenant's tag (4 bytes) and these numbers
as varints: how many partitions; for each, ``seq`` and, unless that is 0, ``stamp`` of the last feed
entry passed; then nothing, or a partition and how many events of its entry were given so far.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from typing import NamedTuple

from eventlog.errors import CursorInvalid
from eventlog.identity import tenant_path

_PREFIX = "t1."
_MOST_PARTITIONS = 16_384
_TEXT = re.compile(r"t1\.([A-Za-z0-9_-]{7,500000})", re.ASCII)
_TAG_BYTES = 4
_BITS = 63


class Position(NamedTuple):
    """The last entry passed of one feed; ``seq`` 0 stands before the first."""

    seq: int
    stamp: int


class Within(NamedTuple):
    """The last entry of this partition is not passed as a whole: only so many of its events were given."""

    partition: int
    events: int


class TenantCursor(NamedTuple):
    """What a follower of a tenant has passed, opaque: ``str(cursor)`` and ``TenantCursor.parse`` are inverse."""

    tenant: str
    """The tenant's tag."""
    positions: tuple[Position, ...]
    within: Within | None = None

    def __str__(self) -> str:
        packed = bytearray(bytes.fromhex(self.tenant))
        _put(packed, len(self.positions))
        for seq, stamp in self.positions:
            _put(packed, seq)
            if seq:
                _put(packed, stamp)
        if self.within is not None:
            _put(packed, self.within.partition)
            _put(packed, self.within.events)
        return _PREFIX + urlsafe_b64encode(packed).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> TenantCursor:
        """Read a cursor from its text, or raise ``CursorInvalid``."""
        match = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if match is None or len(match[1]) % 4 == 1:
            raise _malformed(text)
        packed = urlsafe_b64decode(match[1] + "=" * (-len(match[1]) % 4))
        numbers = _numbers(packed[_TAG_BYTES:])
        count = numbers.pop(0) if numbers else 0
        positions: list[Position] = []
        while len(positions) < count and numbers:
            seq = numbers.pop(0)
            if seq and not numbers:
                raise _malformed(text)
            positions.append(Position(seq, numbers.pop(0) if seq else 0))
        within = Within(*numbers) if len(numbers) == len(Within._fields) else None
        cursor = cls(packed[:_TAG_BYTES].hex(), tuple(positions), within)
        # There is one text for each cursor: what does not come out again was not written by us.
        if not 1 <= count <= _MOST_PARTITIONS or len(positions) != count or str(cursor) != text:
            raise _malformed(text)
        if within is not None and not (within.partition < count and positions[within.partition].seq and within.events):
            raise _malformed(text)
        return cursor


def tenant_tag(tenant: str) -> str:
    """Eight hexadecimal digits that tell cursors of different tenants apart."""
    return blake2b(tenant_path(tenant).encode(), digest_size=_TAG_BYTES).hexdigest()


def check_tenant_cursor(tenant: str, partitions: int, cursor: TenantCursor | str) -> TenantCursor:
    """Return the cursor when it is of this tenant and of so many partitions, else raise ``CursorInvalid``."""
    parsed = TenantCursor.parse(cursor) if not isinstance(cursor, TenantCursor) else TenantCursor.parse(str(cursor))
    if parsed.tenant != tenant_tag(tenant):
        raise CursorInvalid(f"the cursor {str(parsed)[:40]}… is of another tenant, not of {tenant!r}")
    if len(parsed.positions) != partitions:
        raise CursorInvalid(
            f"the cursor {str(parsed)[:40]}… is of a log with {len(parsed.positions)} partitions, this one has "
            f"{partitions}: use it where it was given"
        )
    return parsed


def _malformed(text: object) -> CursorInvalid:
    return CursorInvalid(
        f"{ascii(text)[:80]} is not a cursor of a tenant: pass one back as `tenant.follow` gave it, unchanged"
    )


def _put(packed: bytearray, number: int) -> None:
    while number > 0x7F:
        packed.append(number & 0x7F | 0x80)
        number >>= 7
    packed.append(number)


def _numbers(packed: bytes) -> list[int]:
    """All numbers; what is no number of at most 63 bits is left out, so that it does not come out again."""
    numbers: list[int] = []
    number = shift = 0
    for byte in packed:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            if number < 1 << _BITS:
                numbers.append(number)
            number = shift = 0
        elif shift > _BITS:
            return []
    return numbers
