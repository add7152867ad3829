"""The framework's content for what stands in the log, whatever it is and whoever wrote it. Pure.

The framework cannot read all that it writes (outputs that are JSON objects of their own), and parts
of other writers may have types and fields that it has no word for. One such part must not make
a conversation unreadable: it becomes the content that comes nearest.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, get_args

from agent_framework import Content
from agent_framework._types import ContentType

_TYPES = frozenset(get_args(ContentType))
_FIELDS = frozenset(inspect.signature(Content).parameters) - {"type"}
_ONE = ("function_call", "screenshot")
"""Fields that hold a content."""
_SEVERAL = ("inputs", "outputs", "items")
"""Fields that may hold contents, or JSON of their own."""
_UNREADABLE = (TypeError, ValueError, KeyError, AttributeError)
"""What the framework raises for a document that is no content of its."""


def nearest(document: Mapping[str, Any]) -> Content:
    """The content that the document says. One that the framework has no word for becomes its JSON as a text."""
    for read in (Content.from_dict, _without_nested, _with_unknown_fields_aside):
        with suppress(*_UNREADABLE):
            return read(document)
    return Content.from_text(json.dumps(document, ensure_ascii=False))


def _without_nested(document: Mapping[str, Any]) -> Content:
    """As ``Content.from_dict``, where what looks like a content and is none stays as it is."""
    fields = {name: value for name, value in document.items() if name != "type"}
    for name in _ONE:
        if isinstance(fields.get(name), dict):
            fields[name] = nearest(fields[name])
    for name in _SEVERAL:
        if isinstance(fields.get(name), list):
            fields[name] = [_content_or_json(item) for item in fields[name]]
    return Content(document["type"], **fields)


def _with_unknown_fields_aside(document: Mapping[str, Any]) -> Content:
    """A content with fields of another version of the framework, which become additional properties."""
    if document["type"] not in _TYPES:
        raise TypeError("no type of the framework's")
    known = {name: value for name, value in document.items() if name in _FIELDS}
    aside = {name: value for name, value in document.items() if name not in _FIELDS and name != "type"}
    properties = {**(known.get("additional_properties") or {}), **aside}
    return _without_nested({**known, "type": document["type"], "additional_properties": properties})


def _content_or_json(value: Any) -> Any:
    """A content when it is one, told by whether it is written again as it stands."""
    if not isinstance(value, dict):
        return value
    with suppress(*_UNREADABLE):
        content = _without_nested(value) if value.get("type") else None
        if content is not None and content.to_dict() == value:
            return content
    return value
