"""JSON text, read strictly: nothing is taken that the log could not keep as it is. Pure."""

from __future__ import annotations

import json
from typing import NoReturn

from eventlog.errors import InvalidInput
from eventlog.messages import Json


def parse(text: bytes) -> Json:
    """The JSON value of UTF-8 text.

    Integers keep all their digits, so that ``codec.find_fault`` can refuse those beyond 64 bits.
    Raises ``InvalidInput`` for what is not JSON; NaN and Infinity are not.
    """
    try:
        return json.loads(text.decode(), parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"not UTF-8 at byte {error.start + 1}: save it as UTF-8") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise InvalidInput(f"not JSON at {where}: {error.msg}") from None
    except RecursionError:
        raise InvalidInput("not readable: nested too deep") from None
    except ValueError as error:
        raise InvalidInput(f"not JSON: {error}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number; send null or a string instead")
