"""JSON text. Read strictly: nothing is taken that the log could not keep as it is. Written safely. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import NoReturn

import orjson

from eventlog.errors import InvalidInput
from eventlog.messages import Json

_OBEYED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What JSON allows in a string and a terminal would obey: DEL, the C1 controls, line ends, changes of direction."""


class _Twice(dict[str, Json]):
    """An object in whose text this key stands more than once."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key


def write(value: Json) -> bytes:
    """The value as one line of JSON, in which nothing stands that a terminal would obey."""
    text = orjson.dumps(value).decode()
    # Outside of strings JSON is ASCII, so all of these stand where an escape may stand.
    return _OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()


def parse(text: bytes) -> Json:
    """The JSON value of UTF-8 text.

    Integers keep all their digits, so that ``codec.find_fault`` can refuse those beyond 64 bits.
    Raises ``InvalidInput`` for what is not JSON; NaN and Infinity are not. So it does, with the path,
    for a key that stands twice in one object: one of the two values would be lost.
    """
    twice: list[_Twice] = []

    def take(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        taken = dict(pairs)
        if len(taken) < len(pairs):
            # Where this object stands is not known before all is read: it is marked, and found then.
            taken = _Twice(Counter(key for key, _ in pairs).most_common(1)[0][0])
            twice.append(taken)
        return taken

    try:
        value = json.loads(text.decode(), parse_constant=_refuse, object_pairs_hook=take)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"not UTF-8 at byte {error.start + 1}: save it as UTF-8") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise InvalidInput(f"not JSON at {where}: {error.msg}") from None
    except RecursionError:
        raise InvalidInput("not readable: nested too deep") from None
    except ValueError as error:
        raise InvalidInput(f"not JSON: {error}") from None
    if twice:
        raise InvalidInput(f"{_path_to_twice(value)[:200]}: the key stands twice in its object; keep one")
    return value


def _path_to_twice(document: Json) -> str:
    """The path of the first key that stands twice. There is one: what hides a mark is marked itself."""
    waiting = [("", document)]
    while True:
        path, value = waiting.pop()
        within = f"{path}." if path else ""
        if isinstance(value, _Twice):
            return f"{within}{value.key}"
        if isinstance(value, dict):
            waiting += [(f"{within}{key}", item) for key, item in reversed(value.items())]
        elif isinstance(value, list):
            waiting += [(f"{path}[{index}]", item) for index, item in reversed(list(enumerate(value)))]


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number; send null or a string instead")
