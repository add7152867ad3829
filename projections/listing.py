"""What is asked across a tenant's conversations: which there are, their runs, open calls and usage.

Each function reads one generation of a built-in view, kept up to date by projectors: what it tells
is as of a moment that it tells, too. Raises ``ViewMissing`` while nobody has built the view.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, NamedTuple, TypeVar

from eventlog.errors import InvalidInput
from eventlog.identity import LogId, check_id
from eventlog.log import Tenant
from eventlog.messages import Json
from eventlog.store.views import Contents, Found, ViewId
from projections.index import check, how_far, page, walk
from projections.live import Live
from projections.page import AsOf, Index, Page, cut
from projections.projection import Projection
from projections.views.directory import ACTIVITY, DIRECTORY, DirectoryEntry
from projections.views.fields import CUT, agent_index, escaped, label_index
from projections.views.open_calls import APPROVAL, FINISHED_RUN, OPEN_CALLS, OPEN_RUN, SINCE, OpenCall
from projections.views.runs import RUNS, STARTED, STATES, RunEntry, state_index
from projections.views.usage import SERVICE_CALLS, USAGE, SumName

T = TypeVar("T")

Dimension = Literal["day", "model", "agent"]
DIMENSIONS: tuple[Dimension, ...] = ("day", "model", "agent")
_OPEN_RUN_INDEX = {None: SINCE, True: OPEN_RUN, False: FINISHED_RUN}


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What completed service calls used together. None stands for what no event told, or was not asked for."""

    day: str | None
    """In UTC: ``2026-12-01``."""
    model: str | None
    agent: str | None
    service_calls: int
    input_tokens: int
    output_tokens: int
    others: dict[str, int]
    """Other token numbers, by their names. They may be parts of the two, or their sum."""

    def as_json(self) -> dict[str, Json]:
        """The row as a JSON object."""
        return {field: getattr(self, field) for field in self.__slots__}


class UsageReport(NamedTuple):
    """The usage of a tenant, by what was asked for, in its order."""

    rows: tuple[UsageRow, ...]
    as_of: AsOf

    def as_json(self) -> dict[str, Json]:
        """The report as a JSON object."""
        return {"rows": [row.as_json() for row in self.rows], "as_of": self.as_of.as_json()}


async def conversations(
    tenant: Tenant,
    *,
    limit: int = 50,
    after: str | None = None,
    before: str | None = None,
    labels: Mapping[str, str] | None = None,
    agent: str | None = None,
) -> Page[DirectoryEntry]:
    """The tenant's conversations, the one that was active last first; those with all these labels and this agent.

    Of a label, a value and an agent's name 250 characters are compared. Raises ``CursorInvalid``
    for a cursor of another list, ``InvalidInput`` for a wrong ``limit``, and ``ViewMissing``.
    """
    wanted = {name[:CUT]: value[:CUT] for name, value in (labels or {}).items()}
    who = None if agent is None else agent[:CUT]

    def read(found: Found) -> DirectoryEntry | None:
        entry = DirectoryEntry.of(found)
        is_wanted = (who is None or who in entry.agents) and wanted.items() <= entry.labels.items()
        return entry if is_wanted else None

    index = ACTIVITY
    if who is not None:
        index = agent_index(who)
    elif wanted:
        index = label_index(*min(wanted.items()))
    return await entries(tenant, DIRECTORY, index, read, limit=limit, after=after, before=before, reverse=True)


async def runs(
    tenant: Tenant,
    *,
    limit: int = 50,
    after: str | None = None,
    before: str | None = None,
    state: Literal["open", "committed", "aborted"] | None = None,
    agent: str | None = None,
    conversation: str | None = None,
) -> Page[RunEntry]:
    """The tenant's runs, the one that was started last first; those in this state, of this agent and conversation.

    An open run may be one whose holder is gone: ``projections.recovery`` tells. Raises as ``conversations``.
    """
    if state is not None and state not in STATES:
        raise InvalidInput(f"state={state!r}: give one of {', '.join(STATES)}")
    who = None if agent is None else agent[:CUT]

    def read(found: Found) -> RunEntry | None:
        entry = RunEntry.of(found)
        is_wanted = (state is None or entry.state == state) and (who is None or entry.agent == who)
        return entry if is_wanted else None

    if conversation is not None:
        log = LogId(tenant.id, check_id(conversation, "conversation"))
        return await _page_of_one(tenant, RUNS, log, STARTED, read, limit, after, before)
    index = STARTED
    if who is not None:
        index = agent_index(who)
    elif state is not None:
        index = state_index(state)
    return await entries(tenant, RUNS, index, read, limit=limit, after=after, before=before, reverse=True)


async def open_calls(
    tenant: Tenant,
    *,
    limit: int = 50,
    after: str | None = None,
    before: str | None = None,
    approval_only: bool = False,
    in_open_run: bool | None = None,
) -> Page[OpenCall]:
    """The tenant's function calls that nobody has answered or that wait for approval, the oldest first.

    ``approval_only`` gives those that wait for approval, the one that has waited longest first.
    ``in_open_run`` gives those of open runs, or of finished ones; there also those of which a
    result is recorded that no service call has carried yet. Raises as ``conversations``.
    """

    def read(found: Found) -> OpenCall | None:
        call = OpenCall.of(found)
        return call if in_open_run is None or call.in_open_run == in_open_run else None

    index = APPROVAL if approval_only else _OPEN_RUN_INDEX[in_open_run]
    return await entries(tenant, OPEN_CALLS, index, read, limit=limit, after=after, before=before, reverse=False)


async def usage(
    tenant: Tenant,
    since: date | str | None = None,
    until: date | str | None = None,
    by: Sequence[Dimension] = ("model", "agent", "day"),
) -> UsageReport:
    """What the tenant's completed service calls used from the day ``since`` to ``until``, both included.

    Days are those of UTC, as ``date`` or ``2026-12-01``. One row for each combination of what
    ``by`` names, sorted by it in its order; with an empty ``by`` one row in all. What tells no
    day counts only when neither is given. Raises ``InvalidInput`` and ``ViewMissing``.
    """
    first, last = _day(since, "since"), _day(until, "until")
    for dimension in by:
        if dimension not in DIMENSIONS:
            raise InvalidInput(f"by={dimension!r}: give some of {', '.join(DIMENSIONS)}")
    live = Live.of(tenant.store)
    view = await live.view(USAGE)
    as_of = await how_far(live.store, live.readers, view)
    rows: dict[tuple[str | None, ...], dict[str, int]] = {}
    for packed, amount in (await _totals(live, view, tenant.id)).items():
        name = SumName.unpack(packed)
        if _is_within(name.day, first, last):
            row = rows.setdefault(tuple(getattr(name, dimension) for dimension in by), {})
            row[name.field] = row.get(name.field, 0) + amount
    ordered = sorted(rows.items(), key=lambda item: [(value is not None, value or "") for value in item[0]])
    return UsageReport(tuple(_row(dict(zip(by, values, strict=True)), sums) for values, sums in ordered), as_of)


async def totals(tenant: Tenant, projection: Projection[Any]) -> dict[str, int]:
    """The sums of a projection over all of the tenant's conversations. Raises ``ViewMissing``."""
    live = Live.of(tenant.store)
    return await _totals(live, await live.view(projection), tenant.id)


async def entries(
    tenant: Tenant,
    projection: Projection[Any],
    index: str,
    read: Callable[[Found], T | None],
    *,
    limit: int = 50,
    after: str | None = None,
    before: str | None = None,
    reverse: bool = False,
) -> Page[T]:
    """A page of what a projection files in one of its indexes, by what it is sorted there, or in ``reverse``.

    ``read`` makes an item of a line, or None of one that is to be passed over. Raises
    ``ViewMissing``, ``CursorInvalid``, and ``InvalidInput`` for other arguments.
    """
    live = Live.of(tenant.store)
    view = await live.view(projection)
    return await page(
        live.store,
        live.readers,
        live.views,
        view,
        tenant.id,
        index,
        read,
        limit=limit,
        after=after,
        before=before,
        reverse=reverse,
    )


async def _page_of_one(
    tenant: Tenant,
    projection: Projection[Any],
    log: LogId,
    index: str,
    read: Callable[[Found], T | None],
    limit: int,
    after: str | None,
    before: str | None,
) -> Page[T]:
    """A page of what one conversation has in an index, the newest first: all of it is read at once."""
    which = Index(projection.name, tenant.id, f"{index}/{escaped(log.conversation)}")
    start = check(which, limit, after, before)
    live = Live.of(tenant.store)
    view = await live.view(projection)
    as_of = await how_far(live.store, live.readers, view)
    lines = _lines(log, await live.views.contents(view, log), index)

    async def fetch(count: int, place: str | None, reverse: bool) -> list[Found]:
        found = sorted(lines, key=lambda line: line.member, reverse=reverse)
        if place is not None:
            found = [line for line in found if (line.member < place if reverse else line.member > place)]
        return found[:count]

    found = await walk([fetch], read, limit, start, reverse=before is None)
    return cut(found, which, limit, as_of, after=after is not None, before=before is not None)


def _lines(log: LogId, contents: Contents | None, index: str) -> list[Found]:
    entries = {} if contents is None else contents.entries
    return [
        Found(f"{filed.under[index]}\0{key}", log, key, filed.document)
        for key, filed in entries.items()
        if index in filed.under
    ]


async def _totals(live: Live, view: ViewId, tenant: str) -> dict[str, int]:
    """A view's totals of a tenant, over all partitions."""
    found: dict[str, int] = {}
    partitions = range(live.store.partitions)
    for part in await asyncio.gather(*(live.views.totals(view, partition, tenant) for partition in partitions)):
        for name, amount in part.items():
            found[name] = found.get(name, 0) + amount
    return found


def _row(by: Mapping[str, str | None], sums: Mapping[str, int]) -> UsageRow:
    named = ("input_tokens", "output_tokens", SERVICE_CALLS)
    others = {field: amount for field, amount in sorted(sums.items()) if field not in named}
    return UsageRow(
        by.get("day"),
        by.get("model"),
        by.get("agent"),
        sums.get(SERVICE_CALLS, 0),
        sums.get("input_tokens", 0),
        sums.get("output_tokens", 0),
        others,
    )


def _day(value: date | str | None, what: str) -> str | None:
    """The day as text that sorts as days do."""
    try:
        # A datetime is a date, too; its day need not be that of UTC.
        day = value if value is None or type(value) is date else date.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidInput(f"{what}={value!r}: give a day as date or as 2026-12-01, or None for no bound") from None
    return None if day is None else day.isoformat()


def _is_within(day: str | None, first: str | None, last: str | None) -> bool:
    if day is None:
        return first is None and last is None
    return (first is None or day >= first) and (last is None or day <= last)
