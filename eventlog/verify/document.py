"""What is wrong with the bytes of one event, taken by itself. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from eventlog.codec import SCHEMA
from eventlog.events import DATA
from eventlog.identity import MAX_ID_BYTES
from eventlog.verify.fault import show

_TYPE = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_SHAPES: dict[str, TypeAdapter[Any]] = {kind: TypeAdapter(shape) for kind, shape in DATA.items()}


def check_document(document: bytes) -> Iterator[tuple[str, str]]:
    """(what is wrong, what is right) of the bytes that should hold an event."""
    try:
        event = orjson.loads(document)
    except ValueError:
        event = None
    if not isinstance(event, dict) or not event.keys() >= {"id", "type", "at", "data"}:
        yield f"it holds {show(document)}", "it should hold an event"
        return
    if not document.startswith(b'{"id":"'):
        yield f"the document begins {show(document[:20])}", "its id should stand first: retries are known by it"
    operation, _, index = event["id"].rpartition(".") if isinstance(event["id"], str) else ("", "", "")
    if not re.fullmatch(r"0|[1-9][0-9]{0,8}", index) or not 1 <= len(operation.encode()) <= MAX_ID_BYTES:
        yield f"the event id is {show(event['id'])}", "it should be <operation>.<index>"
    if not _is_time(event["at"]):
        yield f"the time is {show(event['at'])}", "it should be RFC 3339 in UTC"
    for name, kind in (("data", dict), ("run", str), ("actor", str), ("causation", str), ("meta", dict)):
        value = event.get(name)
        if not isinstance(value, kind) and (value is not None or name == "data"):
            yield f"{name} is {show(value)}", f"it should be a {kind.__name__}"
    call, schema = event.get("call"), event.get("schema", 1)
    if call is not None and (type(call) is not int or call < 1):
        yield f"call is {show(call)}", "it should be 1 or more"
    if type(schema) is not int or schema < 1:
        yield f"schema is {show(schema)}", "it should be 1 or more"
    if not isinstance(event["type"], str) or not _TYPE.fullmatch(event["type"]):
        yield f"the type is {show(event['type'])}", "it should be 1 to 64 of A-Z a-z 0-9 . _ -"
    elif event["type"] in _SHAPES and schema == SCHEMA[event["type"]]:
        yield from _shape(event["type"], event["data"])


def _shape(kind: str, data: object) -> Iterator[tuple[str, str]]:
    try:
        _SHAPES[kind].validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, ("data", *first["loc"])))
        yield f"{where} is {show(first['input'])}", f"it should be that of a {kind}: {first['msg']}"


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and value.endswith("Z") and datetime.fromisoformat(value) is not None
    except ValueError:
        return False
