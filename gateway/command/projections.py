"""The commands for projections: run, list, lag, rebuild, rollback, verify, drop, retry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from eventlog.errors import EventLogError, InvalidInput, ProjectionStopped
from eventlog.store.views import ViewId
from gateway.command.duration import parse_duration
from gateway.command.options import AsJson, Data, Durability, Namespace, Url, exit_codes
from gateway.command.output import write, write_json, write_table
from gateway.command.own_projections import chosen, known_projections
from gateway.command.place import FAILED, INTERRUPTED, note, opened
from gateway.command.place import run as run_work
from gateway.command.projecting import Keeping, keep, logged
from gateway.command.rebuilding import Rebuilding, Ticker, shown
from gateway.command.summary import many, one_line
from gateway.command.view_rows import (
    GENERATION,
    PARTITION,
    compared,
    difference_json,
    failure_line,
    generation_row,
    partition_row,
    projection_json,
    rebuilt_json,
    unbuilt_json,
    unbuilt_row,
)
from projections import status
from projections.live import Live
from projections.projection import Projection
from projections.projector import Projector
from projections.registry import Generation, Record
from projections.status import ProjectionStatus
from projections.verifying import Verifying
from projections.views.built_in import BUILT_IN

T = TypeVar("T")

STOPPED = 3
"""The exit code when a projection stopped at an event that it cannot apply."""


class OnErrorChoice(StrEnum):
    """What becomes of an event that a projection cannot apply."""

    STOP = "stop"
    WAIT = "wait"


Name = Annotated[str, typer.Argument(metavar="NAME", help="The projection's name.")]
Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Projections. None: all.")]
Modules = Annotated[
    list[str] | None,
    typer.Option("--module", metavar="PKG.MOD:NAME", help="A projection of your own; may be repeated."),
]
_IT_STOPPED = "a projection stopped at an event it cannot apply"

projections_app = typer.Typer(
    help="Keep views of the log up to date; rebuild and check them.",
    epilog=exit_codes(),
    rich_markup_mode=None,
    no_args_is_help=True,
)


def _with_live(
    url: str | None, data: Path | None, namespace: str, durability: str, work: Callable[[Live], Awaitable[T]]
) -> T:
    async def with_live() -> T:
        async with opened(url, data, namespace, durability) as log:
            return await work(Live.of(log.store))

    return run_work(with_live)


@projections_app.command(epilog=exit_codes({0: "ended by SIGTERM, or done with --once", STOPPED: _IT_STOPPED}))
def run(
    names: Names = None,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
    module: Modules = None,
    on_error: Annotated[
        OnErrorChoice, typer.Option(help="What becomes of an event that cannot be applied.")
    ] = OnErrorChoice.STOP,
    batch: Annotated[int, typer.Option(min=1, help="About how many events are applied in one step.")] = 1_000,
    lease: Annotated[
        float, typer.Option(min=0.1, max=86_400, help="Seconds that a process that died holds its partitions.")
    ] = 15.0,
    once: Annotated[bool, typer.Option("--once", help="End when all that is there now is applied.")] = False,
    trim_feed: Annotated[
        int | None,
        typer.Option(min=1, metavar="KEEP", help="Trim feeds each minute, but for the newest KEEP entries."),
    ] = None,
    expire_idle: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Delete conversations that rested for so long (90d, 12h), each minute."),
    ] = None,
) -> None:
    """Keep views up to date, until interrupted.

    What is not built yet, or in an older version, is built first. Start it in as many processes as
    you like: they share the work. An event that cannot be applied stops its projection, and not the
    others; or, with --on-error wait, only its conversation.
    """
    projections, idle = _chosen(names, module), None
    try:
        idle = None if expire_idle is None else parse_duration(expire_idle)
    except EventLogError as error:
        raise typer.BadParameter(f"--expire-idle: {error}") from None
    how = Keeping(on_error.value, batch, lease, once, trim_feed, idle)

    async def work() -> bool:
        async with opened(url, data, namespace, durability) as log:
            return await keep(log, projections, how)

    with logged():
        if run_work(work):
            raise typer.Exit(STOPPED)


@projections_app.command("list", epilog=exit_codes())
def list_projections(
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
    module: Modules = None,
    as_json: AsJson = False,
) -> None:
    """List the views, generation by generation.

    On a pipe the fields of a line are parted by tabs: projection, generation, version, state (live,
    before, building, ready), scanned conversations, lag (appends not passed), processes, waiting
    conversations, when it was begun. What could not be applied is told on stderr.
    """
    known = _chosen(None, module)

    async def read(live: Live) -> tuple[list[ProjectionStatus], int | None]:
        found = await status.statuses(live)
        is_busy = any(not one.is_scanned for each in found for one in each.generations)
        return found, await status.conversations(live.store) if is_busy else None

    found, total = _with_live(url, data, namespace, durability, read)
    kept = {one.name for one in found}
    missing = [one for one in known if one.name not in kept]
    if as_json:
        write_json([*(projection_json(one, total) for one in found), *map(unbuilt_json, missing)])
        return
    rows = [generation_row(each.name, one, total) for each in found for one in each.generations]
    write_table(GENERATION, [*rows, *map(unbuilt_row, missing)])
    _note_failures(found)


@projections_app.command(epilog=exit_codes())
def lag(
    names: Names = None,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
    as_json: AsJson = False,
) -> None:
    """Show how far the views are, partition by partition.

    On a pipe the fields of a line are parted by tabs: projection, generation, partition, mark, end
    of the feed, lag, scan, waiting conversations, holder, its lease. What could not be applied is
    told on stderr.
    """

    async def read(live: Live) -> list[ProjectionStatus]:
        return [await status.status(live, name) for name in names] if names else await status.statuses(live)

    found = _with_live(url, data, namespace, durability, read)
    if as_json:
        write_json([projection_json(one, None) for one in found])
        return
    parts = [(each, one, part) for each in found for one in each.generations for part in one.partitions]
    write_table(PARTITION, [partition_row(each.name, one, part) for each, one, part in parts])
    _note_failures(found)


@projections_app.command(epilog=exit_codes({STOPPED: _IT_STOPPED}))
def rebuild(
    name: Name,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
    module: Modules = None,
    on_error: Annotated[
        OnErrorChoice, typer.Option(help="What becomes of an event that cannot be applied.")
    ] = OnErrorChoice.STOP,
    batch: Annotated[int, typer.Option(min=1, help="About how many events are applied in one step.")] = 1_000,
    as_json: AsJson = False,
) -> None:
    """Build a view anew beside the live one, then make it live.

    The one before is kept until it is dropped. A rebuild that was interrupted goes on where it was.
    """
    projections = _chosen([name], module)

    async def work() -> tuple[Generation, Rebuilding] | None:
        async with opened(url, data, namespace, durability) as log:
            rebuilding = Rebuilding(Live.of(log.store))
            projector = Projector(log, projections, on_error=on_error.value, batch=batch, told=rebuilding.take)
            try:
                async with shown(rebuilding, name):
                    return await projector.rebuild(name), rebuilding
            except ProjectionStopped as error:
                note(str(error))
                return None

    try:
        done = run_work(work)
    except typer.Exit as ended:
        if ended.exit_code == INTERRUPTED:
            note(f"what is built so far stays: `eventlog projections rebuild {name}` goes on with it")
        raise
    if done is None:
        raise typer.Exit(STOPPED)
    built, did = done
    if as_json:
        write_json(rebuilt_json(name, built, did))
        return
    rate = f"{many(did.events, 'event')} in {did.seconds:,.1f} s, {did.events / did.seconds:,.0f} events/s"
    write(f"generation {built.number} of {one_line(name)} is live: {rate}")


@projections_app.command(epilog=exit_codes())
def rollback(
    name: Name,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
) -> None:
    """Make the generation live that was before; once more undoes it."""

    async def work(live: Live) -> Record:
        return await status.rollback(live, name)

    record = _with_live(url, data, namespace, durability, work)
    live = record.get(record.live)
    assert live is not None, "what a rollback makes live is there"
    write(f"generation {live.number} of {one_line(name)} is live, of version {live.version}; {record.before} is kept")
    own = next((one for one in BUILT_IN if one.name == name), None)
    if own is not None and own.version != live.version:
        note(f"this release has version {own.version} of {name!r}, and reads and keeps that, whatever is live")


@projections_app.command(epilog=exit_codes({0: "no difference", 1: "a difference was found; or an error"}))
def verify(
    names: Names = None,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
    module: Modules = None,
    sample: Annotated[
        float, typer.Option(min=0.0, max=1.0, metavar="PART", help="Compare a part of the conversations, as 0.1.")
    ] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Compute the views anew from the logs and compare. Reads only.

    Projectors and writers may go on. Names the first difference of each conversation; with --sample
    indexes and totals are not compared.
    """
    if sample == 0:
        raise typer.BadParameter("--sample 0 compares nothing: give a part from above 0 to 1")
    projections = _chosen(names, module)

    async def check(live: Live) -> int:
        views = [(projection, await live.find(projection)) for projection in projections]
        if names or not any(view for _, view in views):
            for projection, _ in views:
                await live.view(projection)  # raises what is to be said of one that is not kept
        return sum([await _verify(live, *one, sample, as_json=as_json) for one in views])

    if _with_live(url, data, namespace, durability, check):
        raise typer.Exit(FAILED)


@projections_app.command(epilog=exit_codes())
def drop(
    name: Name,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
    generation: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only this generation, which is not live. None: all.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Drop a view, or one generation of it. The logs stay: it can be rebuilt."""
    what = f"generation {generation}" if generation else "every generation"
    if not yes:
        typer.confirm(f"Drop {what} of view {one_line(name)}?", abort=True, err=True)

    async def work(live: Live) -> list[int]:
        return await status.drop(live, name, generation)

    dropped = _with_live(url, data, namespace, durability, work)
    write(f"dropped of {one_line(name)}: {', '.join(map(str, dropped)) or 'nothing, it was dropped before'}")
    if generation is None:
        note("projectors that run build it anew")


@projections_app.command(epilog=exit_codes())
def retry(
    name: Name,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
) -> None:
    """Have what could not be applied tried again."""

    async def work(live: Live) -> int:
        return await status.retry(live, name)

    count = _with_live(url, data, namespace, durability, work)
    write(f"{many(count, 'event')} to be tried again: by the holder at its next heartbeat, or when one starts")


def _chosen(names: Sequence[str] | None, modules: Sequence[str] | None) -> list[Projection[Any]]:
    """The projections that are meant; a name that is none ends the command."""
    try:
        return chosen(names, known_projections(modules))
    except InvalidInput as error:
        raise typer.BadParameter(str(error)) from None


async def _verify(live: Live, projection: Projection[Any], view: ViewId | None, sample: float, *, as_json: bool) -> int:
    """Write the differences of one view; how many there are."""
    if view is None:
        note(f"{projection.name}: no view of version {projection.version} is kept: there is nothing to verify")
        return 0
    ticker, name, count = Ticker(), f"{view.projection}.{view.generation}", 0

    def tell(verifying: Verifying) -> None:
        ticker.show(f"{name}: {compared(verifying)}")

    verifying = Verifying(live, projection, view, sample=sample, told=tell)
    async for found in verifying.differences():
        count += 1
        ticker.end()
        if as_json:
            write_json(difference_json(view, found))
        else:
            write(f"{name}: {found}")
    ticker.end()
    note(f"{name}: {'no difference' if not count else many(count, 'difference')} in {compared(verifying)}")
    return count


def _note_failures(found: Sequence[ProjectionStatus]) -> None:
    for each in found:
        for one in each.generations:
            for failure in one.failures:
                note(failure_line(each.name, one, failure))
