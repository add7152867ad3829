"""What a projection makes of events, and whether it makes the same of them in pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import orjson

from eventlog.events import Event
from eventlog.identity import LogId
from eventlog.store.view_checks import check_writings
from eventlog.store.views import Filed, Kept, Writing
from projections.folding import Folding, fold
from projections.projection import Projection

LOG = LogId("t", "c")


@dataclass
class Content:
    """What a store holds after these writings."""

    kept: Kept | None = None
    rows: list[bytes] = field(default_factory=list)
    entries: dict[str, Filed] = field(default_factory=dict)
    sums: Counter[str] = field(default_factory=Counter)

    def write(self, writing: Writing) -> None:
        check_writings([writing], 0, 1)
        if writing.fresh:
            self.rows, self.entries, self.sums = [], {}, Counter()
        self.kept = writing.kept
        self.rows += writing.rows
        for key, filed in writing.entries.items():
            self.entries.pop(key, None)
            if filed is not None:
                self.entries[key] = filed
        self.sums.update(writing.sums)

    def documents(self, index: str | None = None) -> list[dict[str, Any]]:
        """The documents of an index in its order, or all of them."""
        filed = [one for one in self.entries.values() if index is None or index in one.under]
        if index is not None:
            filed.sort(key=lambda one: one.under[index])
        return [orjson.loads(one.document) for one in filed]


def whole(projection: Projection[Any], events: Sequence[Event]) -> Content:
    content = Content()
    content.write(fold(projection, LOG, events))
    return content


def in_pieces(projection: Projection[Any], events: Sequence[Event], cuts: Sequence[int]) -> Content:
    """As a projector comes by: folded up to each cut, written, put down and taken up again."""
    content = Content()
    places = sorted({cut % (len(events) + 1) for cut in cuts} | {0, len(events)})
    for first, end in pairwise(places):
        folding = Folding(projection, LOG, content.kept)
        for index in range(first, end):
            if not folding.take(events[index]):
                folding.refold(events[: index + 1])
        content.write(folding.writing())
    return content
