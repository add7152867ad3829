"""The projections that come with the product. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eventlog.errors import InvalidInput
from projections.projection import Projection
from projections.views.directory import DIRECTORY
from projections.views.history import HISTORY
from projections.views.open_calls import OPEN_CALLS
from projections.views.runs import RUNS
from projections.views.usage import USAGE

BUILT_IN: tuple[Projection[Any], ...] = (HISTORY, DIRECTORY, RUNS, OPEN_CALLS, USAGE)


def named(name: str, among: Iterable[Projection[Any]] = BUILT_IN) -> Projection[Any]:
    """The projection of this name. Raises ``InvalidInput``."""
    known = {projection.name: projection for projection in among}
    if name not in known:
        raise InvalidInput(f"there is no projection {name!r}; there are {', '.join(map(repr, known))}")
    return known[name]
