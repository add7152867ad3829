"""Bytes to events and back: validation, schema versions, upcasters. Pure.

Each event is stored as one JSON document whose first field is its id: that is how a retry is told
from another append without reading the rest. Events are strictly validated when they are encoded,
and only lifted, not validated again, when they are decoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from math import isfinite
from typing import Any, NamedTuple

import orjson
from pydantic import TypeAdapter, ValidationError

from eventlog.errors import InvalidEvent, InvalidId, Unreadable
from eventlog.events import DATA, NEEDS_CALL, NEEDS_RUN, Draft, Event
from eventlog.identity import check_id

MAX_DEPTH = 200
_TYPE = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

SCHEMA: Mapping[str, int] = dict.fromkeys(DATA, 1)
"""The schema version that each known type is written with."""

UPCASTERS: Mapping[tuple[str, int], Upcaster] = {}
"""(type, schema version) -> the function that lifts such data to the next version."""

_UNIONS = frozenset({"parts", "partial"})
"""The fields whose items are one of several shapes."""

_new = tuple.__new__  # a NamedTuple's own constructor takes twice as long, and events are read by the thousand

_VALIDATE: dict[str, Callable[[object], object]] = {
    kind: TypeAdapter(shape).validator.validate_python for kind, shape in DATA.items()
}


class Encoded(NamedTuple):
    """The events of one operation, ready to be stored."""

    documents: tuple[bytes, ...]
    digest: str
    """40 hexadecimal digits over what the caller gave: no clock, no generated id."""
    kinds: str
    """The distinct event types in order of appearance, joined by commas."""
    id_prefix: bytes
    """How the document of the operation's first event begins."""


def encode(drafts: Sequence[Draft], operation_id: str, at: str) -> Encoded:
    """Validate and encode the events of one operation.

    ``at`` is the time for all of them, RFC 3339 in UTC. Raises ``InvalidEvent`` with the path of
    what is wrong (``events[2].data.role``).
    """
    beginning = b'{"id":' + orjson.dumps(operation_id)[:-1]
    middle = b'","at":"%b"' % at.encode()
    documents: list[bytes] = []
    given: list[bytes] = []
    kinds: dict[str, None] = {}
    for index, draft in enumerate(drafts):
        content = _content(draft, index)
        kind = draft.type.encode()
        documents.append(b'%b.%d","type":"%b%b%b' % (beginning, index, kind, middle, content))
        given += (kind, content)
        kinds[draft.type] = None
    digest = blake2b(b"\n".join(given), digest_size=20).hexdigest()
    return Encoded(tuple(documents), digest, ",".join(kinds), beginning + b'.0"')


def decode(
    version: int, stamp: int, document: bytes, *, upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS
) -> Event:
    """Read a stored event back, lifted to the current schema. Raises ``Unreadable``."""
    try:
        fields = orjson.loads(document)
        get = fields.get
        kind, data, schema = fields["type"], fields["data"], get("schema", 1)
        event = _new(
            Event,
            (
                version,
                stamp,
                kind,
                fields["id"],
                get("run"),
                get("call"),
                fields["at"],
                get("actor"),
                get("causation"),
                schema,
                data,
                get("meta"),
            ),
        )
        if upcasters and (kind, schema) in upcasters:
            event = _lift(event, upcasters)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise Unreadable(
            f"version {version} does not hold an event: {document[:80]!r}; restore it from a backup"
        ) from error
    if type(data) is not dict or not _fits(event):
        raise Unreadable(f"version {version} does not hold an event: {document[:80]!r}; restore it from a backup")
    return event


def _fits(event: Event) -> bool:
    """Whether the fields that every reader builds on are of the type they must be."""
    return (
        type(event.type) is str
        and type(event.id) is str
        and (event.run is None or type(event.run) is str)
        and (event.call is None or type(event.call) is int)
        and type(event.schema) is int
    )


def content_of(document: bytes) -> bytes:
    """What the caller gave of a stored event, in one canonical form: no id, no clock, keys sorted."""
    fields = orjson.loads(document)
    given = {name: value for name, value in fields.items() if name not in ("id", "at")}
    return orjson.dumps(given, option=orjson.OPT_SORT_KEYS)


def _lift(event: Event, upcasters: Mapping[tuple[str, int], Upcaster]) -> Event:
    data, schema = event.data, event.schema
    while (upcaster := upcasters.get((event.type, schema))) is not None:
        data, schema = upcaster(data), schema + 1
    return event._replace(data=data, schema=schema)


def _content(draft: Draft, index: int) -> bytes:
    """The part of the document that the caller gave, from ``,"schema"`` to the closing brace."""
    kind, data, run, call, actor, causation, meta = draft
    if not isinstance(kind, str) or not _TYPE.fullmatch(kind):
        raise InvalidEvent(
            f"events[{index}].type", f"{ascii(kind)[:80]} is not an event type: use 1 to 64 of A-Z a-z 0-9 . _ -"
        )
    if type(data) is not dict:
        raise InvalidEvent(f"events[{index}].data", f"must be an object, not {type(data).__name__}")
    if run is None and (call is not None or kind in NEEDS_CALL or kind in NEEDS_RUN):
        raise InvalidEvent(f"events[{index}].run", f"a {kind} event of a run must name it")
    if call is None and kind in NEEDS_CALL:
        raise InvalidEvent(f"events[{index}].call", f"a {kind} event must name its service call")
    try:
        sound = _sound(data, 0)
        validate = _VALIDATE.get(kind)
        if sound and validate is not None:
            validate(data)
            if kind == "message-added":
                _check_plain(data["parts"], index)
        content = orjson.dumps(data)
    except ValidationError as error:
        raise _invalid(error, index) from None
    except (orjson.JSONEncodeError, RecursionError):
        sound = False
    if not sound:
        find_fault(data, f"events[{index}].data")
    head = b',"schema":%d' % SCHEMA.get(kind, 1)
    if run is not None:
        head += b',"run":' + _id(run, f"events[{index}].run")
    if call is not None:
        if type(call) is not int or not 1 <= call < 1 << 53:
            raise InvalidEvent(
                f"events[{index}].call", f"{call!r} is not the number of a service call: they are 1, 2, 3 …"
            )
        head += b',"call":%d' % call
    if actor is not None:
        head += b',"actor":' + _id(actor, f"events[{index}].actor")
    if causation is not None:
        head += b',"causation":' + _id(causation, f"events[{index}].causation")
    if meta is None:
        return head + b',"data":' + content + b"}"
    if type(meta) is not dict:
        raise InvalidEvent(f"events[{index}].meta", f"must be an object, not {type(meta).__name__}")
    find_fault(meta, f"events[{index}].meta")
    return head + b',"data":' + content + b',"meta":' + orjson.dumps(meta) + b"}"


def _check_plain(parts: list[dict[str, Any]], index: int) -> None:
    """Calls and results are events of their own: as parts of a message they would never be answered."""
    for position, part in enumerate(parts):
        if part["type"] == "tool_call" or part["type"] == "tool_call_response":
            kind = "function-call" if part["type"] == "tool_call" else "function-result"
            raise InvalidEvent(
                f"events[{index}].data.parts[{position}].type", f"a {part['type']} is recorded as a {kind} event"
            )


def _id(value: str, path: str) -> bytes:
    try:
        return orjson.dumps(check_id(value, "it"))
    except InvalidId as error:
        raise InvalidEvent(path, str(error)) from None


def _invalid(error: ValidationError, index: int) -> InvalidEvent:
    """The first fault that pydantic found, with its path in our terms (it names a union's branch, too)."""
    first = error.errors(include_url=False)[0]
    where, field, in_union = f"events[{index}].data", "", False
    for step in first["loc"]:
        if isinstance(step, int):
            where, in_union = f"{where}[{step}]", field in _UNIONS
        elif in_union:
            in_union = False  # pydantic names the branch of the union, which is no part of the path
        else:
            where, field = f"{where}.{step}", step
    return InvalidEvent(where, f"{first['msg'].removeprefix('Value error, ')}; got {ascii(first['input'])[:80]}")


def _sound(value: Any, depth: int) -> bool:
    """Whether ``value`` is JSON as it is, as far as orjson does not tell: it writes NaN as null."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return True
    if kind is dict:
        if depth >= MAX_DEPTH:
            return False
        for key, item in value.items():
            if type(key) is not str or (type(item) is not str and not _sound(item, depth + 1)):
                return False
        return True
    if kind is list:
        if depth >= MAX_DEPTH:
            return False
        for item in value:
            if type(item) is not str and not _sound(item, depth + 1):
                return False
        return True
    if kind is int:
        return bool(-(1 << 63) <= value < 1 << 64)
    return kind is float and isfinite(value)


def find_fault(value: Any, path: str, depth: int = 0) -> None:
    """Raise ``InvalidEvent`` with the path unless ``value`` is JSON as it is."""
    kind = type(value)
    if value is None or kind is bool:
        return
    if kind is str:
        if not _well_formed(value):
            raise InvalidEvent(path, f"{ascii(value)[:80]} has a lone surrogate: give well-formed text")
    elif kind is int:
        if not -(1 << 63) <= value < 1 << 64:
            raise InvalidEvent(path, f"the integer {value} does not fit in 64 bits: send it as a string")
    elif kind is float:
        if not isfinite(value):
            raise InvalidEvent(path, f"{value} is not a finite number: send null or a string instead")
    elif kind is dict or kind is list:
        if depth >= MAX_DEPTH:
            raise InvalidEvent(path[:200], f"nested deeper than {MAX_DEPTH} levels: flatten it or send it as a string")
        for key, item in value.items() if kind is dict else enumerate(value):
            if kind is dict and (type(key) is not str or not _well_formed(key)):
                raise InvalidEvent(path, f"the key {ascii(key)[:80]} is not well-formed text")
            find_fault(item, f"{path}.{key}" if kind is dict else f"{path}[{key}]", depth + 1)
    else:
        raise InvalidEvent(path, f"a {kind.__name__} is not JSON: give None, bool, int, float, str, list or dict")


def _well_formed(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
