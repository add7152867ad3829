"""How views stand, and what was found in them, as rows for people and JSON for programs."""

from __future__ import annotations

from typing import Any

from eventlog.messages import Json
from eventlog.parking import Parked
from eventlog.store.views import ViewId
from gateway.command.rebuilding import Rebuilding
from gateway.command.runs import moment
from gateway.command.summary import many, one_line
from projections.difference import Difference
from projections.projection import Projection
from projections.registry import Generation
from projections.status import GenerationStatus, PartitionProgress, ProjectionStatus
from projections.verifying import Verifying

GENERATION = ("projection", "generation", "version", "state", "scanned", "lag", "processes", "waiting", "begun")
PARTITION = ("projection", "generation", "partition", "mark", "end", "lag", "scan", "waiting", "holder", "lease until")


def generation_row(name: str, one: GenerationStatus, total: int | None) -> tuple[object, ...]:
    """A row of ``GENERATION``. ``total`` is how many conversations there are."""
    number, version, _, since = one.generation
    scanned = "all" if one.is_scanned else f"{one.scanned}/{'?' if total is None else max(total, one.scanned)}"
    return (name, number, version, one.role, scanned, one.lag, len(one.members), one.waiting, moment(since))


def unbuilt_row(projection: Projection[Any]) -> tuple[object, ...]:
    """The row of a projection of which no view is kept."""
    return (projection.name, None, projection.version, "not built", None, None, None, None, None)


def partition_row(name: str, one: GenerationStatus, part: PartitionProgress) -> tuple[object, ...]:
    """A row of ``PARTITION``."""
    scan = "done" if part.scan.done else f"{part.scan.conversations} conversations"
    lease = moment(part.lease_ms) if part.holder else None
    where = (name, one.generation.number, part.partition)
    return (*where, part.mark, part.end, part.lag, scan, part.waiting, part.holder, lease)


def failure_line(name: str, one: GenerationStatus, failure: Parked) -> str:
    """An event that could not be applied, on one line."""
    effect = "its conversation waits" if failure.waits else "the projection stands before it"
    where = f"version {failure.version} of {failure.conversation!r} of {failure.tenant!r}"
    return one_line(f"{name}.{one.generation.number}: {where}: {effect}: {failure.error}", 400)


def projection_json(one: ProjectionStatus, total: int | None) -> dict[str, Json]:
    """A projection and its generations. ``total`` is how many conversations there are, where one is still scanned."""
    return {
        "projection": one.name,
        "live": one.record.live or None,
        "before": one.record.before or None,
        "generations": [_generation_json(each, total) for each in one.generations],
    }


def unbuilt_json(projection: Projection[Any]) -> dict[str, Json]:
    """A projection of which no view is kept."""
    return {"projection": projection.name, "live": None, "before": None, "generations": []}


def rebuilt_json(name: str, built: Generation, did: Rebuilding) -> dict[str, Json]:
    """What a rebuild did."""
    return {
        "projection": name,
        "generation": built.number,
        "version": built.version,
        "events": did.events,
        "seconds": round(did.seconds, 3),
    }


def difference_json(view: ViewId, found: Difference) -> dict[str, Json]:
    """A difference between a view and the logs."""
    return {
        "projection": view.projection,
        "generation": view.generation,
        "tenant": found.log.tenant,
        "conversation": found.log.conversation,
        "version": found.version,
        "where": found.where,
        "kept": found.kept,
        "wanted": found.wanted,
    }


def compared(verifying: Verifying) -> str:
    """How much was compared, for people."""
    behind = f"; {verifying.behind:,} behind" if verifying.behind else ""
    waiting = f"; {verifying.waiting:,} waiting" if verifying.waiting else ""
    return f"{many(verifying.conversations, 'conversation')}, {many(verifying.events, 'event')}{behind}{waiting}"


def _generation_json(one: GenerationStatus, total: int | None) -> dict[str, Json]:
    return {
        "generation": one.generation.number,
        "version": one.generation.version,
        "state": one.role,
        "begun": moment(one.generation.since_ms),
        "scanned": one.is_scanned,
        "conversations_scanned": one.scanned,
        "conversations": None if one.is_scanned else total,
        "lag": one.lag,
        "waiting": one.waiting,
        "processes": [
            {"id": member.id, "name": member.name, "lease_until": moment(member.lease_ms)} for member in one.members
        ],
        "failures": [_failure_json(failure) for failure in one.failures],
        "partitions": [_partition_json(part) for part in one.partitions],
    }


def _failure_json(one: Parked) -> dict[str, Json]:
    return {
        "tenant": one.tenant,
        "conversation": one.conversation,
        "version": one.version,
        "at": moment(one.at_ms),
        "waits": one.waits,
        "error": one.error,
        "trace": one.trace,
    }


def _partition_json(one: PartitionProgress) -> dict[str, Json]:
    return {
        "partition": one.partition,
        "mark": one.mark,
        "end": one.end,
        "lag": one.lag,
        "scanned": one.scan.done,
        "conversations_scanned": one.scan.conversations,
        "waiting": one.waiting,
        "holder": one.holder or None,
        "lease_until": moment(one.lease_ms) if one.holder else None,
    }
