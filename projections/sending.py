"""The messages of a request that continues nothing, as of the start of its service call. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eventlog.events import Event
from eventlog.fold import Unit
from eventlog.messages import Message
from projections.assembly import group, view_messages
from projections.reference import Reference
from projections.standing import SPOKEN


def sending(
    rows: Sequence[Reference], units: Iterable[Unit], sends: Sequence[int], events: Mapping[int, Event], tag: str
) -> list[Message]:
    """The view's ``rows``, the ``units`` of the call's own run that have yet to enter, and what the call ``sends``.

    ``events`` holds those of them that are in the log; ``tag`` is the log's.
    """
    messages, _ = view_messages(rows, events, tag)
    seen = {version for row in rows for version in row.versions}

    def new(versions: Iterable[int]) -> list[Event]:
        """The messages, calls and results at these versions that were not sent before."""
        return [
            events[version]
            for version in versions
            if version not in seen and version in events and events[version].type in SPOKEN
        ]

    for unit in units:
        messages += group(new(unit.sends), tag)
        messages += group([events[item.version] for item in unit.outputs], tag)
        seen.update(unit.sends)
        seen.update(item.version for item in unit.outputs)
    return messages + group(new(sends), tag)
