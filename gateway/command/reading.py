"""The commands that read a conversation: log, history, explain, runs."""

from __future__ import annotations

from typing import Annotated

import typer

from eventlog.conversation import Conversation
from eventlog.events import Event
from eventlog.ledger import Ledger
from eventlog.messages import Json
from gateway.command.options import (
    AsJson,
    ConversationId,
    Data,
    Durability,
    FateView,
    Namespace,
    Tenant,
    Url,
    ViewChoice,
)
from gateway.command.output import write, write_json, write_table
from gateway.command.place import Place, note_if_empty
from gateway.command.runs import RunFates, RunSummary, by_run, moment, summaries
from gateway.command.summary import clean, one_line, part_text, summary
from projections import history as histories
from projections.explain import IN_VIEW, fates
from projections.repair import repair as repaired
from projections.view import OpenCall, View


def log(
    conversation: ConversationId,
    url: Url = None,
    data: Data = None,
    durability: Durability = "everysec",
    namespace: Namespace = "eventlog",
    tenant: Tenant = "default",
    after: Annotated[str | None, typer.Option(metavar="CURSOR", help="Only what follows this cursor.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many events.")] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="The newest first.")] = False,
    types: Annotated[list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")] = None,
    run: Annotated[str | None, typer.Option(help="Only events of this run.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the raw events of a conversation, as they were recorded.

    On a pipe one line each, parted by tabs: version, cursor, time, type, run, what it says.
    What is missing is a -. With --json whole, one a line.
    """

    async def read(handle: Conversation) -> None:
        rows: list[tuple[object, ...]] = []
        found = False
        async for event in handle.read(after, limit=limit, reverse=reverse, types=types or None, run=run):
            found = True
            cursor = str(handle.log.cursor(event.version, event.stamp))
            if as_json:
                write_json(_event(event, cursor))
            else:
                call = "" if event.call is None else f"#{event.call}"
                name = None if event.run is None else f"{event.run}{call}"
                rows.append((event.version, cursor, event.at, event.type, name, summary(event)))
                if len(rows) == _ROWS:
                    write_table(_LOG, rows)
                    rows = []
        if rows:
            write_table(_LOG, rows)
        await note_if_empty(handle, found=found)

    Place(url, data, namespace, tenant, durability).on(conversation, read)


def history(
    conversation: ConversationId,
    url: Url = None,
    data: Data = None,
    durability: Durability = "everysec",
    namespace: Namespace = "eventlog",
    tenant: Tenant = "default",
    view: Annotated[ViewChoice, typer.Option(help="What is shown.")] = ViewChoice.SERVICE,
    at: Annotated[int | None, typer.Option(min=0, metavar="VERSION", help="As it was after this version.")] = None,
    last: Annotated[int | None, typer.Option(min=1, help="About this many of the newest messages.")] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Answer open calls of finished runs with a marked result.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the messages of a conversation as a view holds them.

    service: what the model service itself would remember. untrimmed: also the inputs of committed
    per-run runs that were never sent. everything: all that was recorded.
    """
    if repair and view is ViewChoice.EVERYTHING:
        raise typer.BadParameter("repair needs --view service or untrimmed: there is nothing to send in everything")

    async def read(handle: Conversation) -> View:
        loaded = await histories.load(handle, view=view.value, at=at, last=last)
        await note_if_empty(handle, found=loaded.version > 0)
        return repaired(loaded) if repair else loaded

    found = Place(url, data, namespace, tenant, durability).on(conversation, read)
    if as_json:
        write_json(found.as_json())
    else:
        _write_view(found)


def explain(
    conversation: ConversationId,
    url: Url = None,
    data: Data = None,
    durability: Durability = "everysec",
    namespace: Namespace = "eventlog",
    tenant: Tenant = "default",
    view: Annotated[FateView, typer.Option(help="The view that things are kept in.")] = FateView.SERVICE,
    as_json: AsJson = False,
) -> None:
    """Show what of a conversation a view keeps, and why not the rest.

    Run by run. The reasons: failed-call, rewound, compacted, uncommitted-run, aborted-run,
    trailing-result (a tool's result that no completed service call carried), unsent-message (any
    other such input).
    """

    async def read(handle: Conversation) -> list[RunFates]:
        events = await _events(handle)
        found = fates(events, Ledger.of(events, untrimmed=view is FateView.UNTRIMMED))
        return by_run(found, summaries(events, (await handle.head()).runs))

    groups = Place(url, data, namespace, tenant, durability).on(conversation, read)
    if as_json:
        write_json({"view": view.value, "runs": [group.as_json() for group in groups]})
        return
    for group in groups:
        write("outside any run" if group.run is None else _heading(group.run))
        for fate in group.fates:
            kept = "kept" if fate.fate == IN_VIEW else f"not kept: {fate.fate}"
            call = "" if fate.call is None else f"service call {fate.call}, "
            write(f"  {fate.version:>5}  {call}{fate.kind} {one_line(fate.what, 60)}  {kept}")


def runs(
    conversation: ConversationId,
    url: Url = None,
    data: Data = None,
    durability: Durability = "everysec",
    namespace: Namespace = "eventlog",
    tenant: Tenant = "default",
    open_only: Annotated[bool, typer.Option("--open", help="Only those that are open.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the runs of a conversation, and who holds the open ones.

    On a pipe one line each, parted by tabs: first version, run, mode, state, agent, completed,
    failed and in-doubt service calls, holder, lease until.
    """

    async def read(handle: Conversation) -> list[RunSummary]:
        events = await _events(handle)
        found = summaries(events, (await handle.head()).runs)
        return [run for run in found if run.state == "open" or not open_only]

    found = Place(url, data, namespace, tenant, durability).on(conversation, read)
    if as_json:
        write_json([run.as_json() for run in found])
    else:
        write_table(_RUNS, [_run_row(run) for run in found])


_ROWS = 500
"""Rows of the log that are held back for one table."""
_LOG = ("version", "cursor", "time", "type", "run", "what")
_RUNS = (
    *("first", "run", "mode", "state", "agent", "completed", "failed", "in doubt"),
    *("holder", "lease until"),
)


async def _events(handle: Conversation) -> list[Event]:
    events = [event async for page in handle.pages() for event in page]
    await note_if_empty(handle, found=bool(events))
    return events


def _event(event: Event, cursor: str) -> dict[str, Json]:
    return {
        "version": event.version,
        "cursor": cursor,
        "id": event.id,
        "type": event.type,
        "run": event.run,
        "call": event.call,
        "at": event.at,
        "actor": event.actor,
        "causation": event.causation,
        "schema": event.schema,
        "data": event.data,
        "meta": event.meta,
    }


def _run_row(run: RunSummary) -> tuple[object, ...]:
    held = run.holder
    return (
        *(run.first, run.run, run.mode, _state(run), run.agent, run.completed, run.failed, run.in_doubt),
        *((held.holder, moment(held.lease_ms)) if held else (None, None)),
    )


def _state(run: RunSummary) -> str:
    return run.state if run.reason is None else f"{run.state}: {run.reason}"


def _heading(run: RunSummary) -> str:
    agent = "" if run.agent is None else f", agent {one_line(run.agent, 60)}"
    return f"run {one_line(run.run, 60)} from version {run.first}: {run.mode}, {_state(run)}{agent}"


def _why(call: OpenCall) -> str:
    """Why no result in the view answers it."""
    why = [
        *(["waits for approval"] if call.awaits_approval else ()),
        *(["its run is open"] if call.run_open else ()),
        *([f"result {call.recorded_result} is recorded, not yet sent"] if call.recorded_result else ()),
    ]
    return ", ".join(why) or "unanswered"


def _write_view(view: View) -> None:
    """The messages, then what is known about them."""
    for message in view.messages:
        author = "" if message.author is None else f" ({message.author})"
        versions = f" [{', '.join(map(str, message.versions))}]" if message.versions else ""
        write(f"{message.role}{author}{versions}")
        for part in message.parts:
            write("  " + clean(part_text(part)).replace("\n", "\n  "))
    write(f"-- version {view.version}, cursor {view.cursor}, messages {len(view.messages)}")
    if view.window is not None:
        write(f"-- window: asked for {view.window.asked}, given {view.window.given} ({view.window.how})")
    for call in view.open_calls:
        write(f"-- open call at version {call.version}: {call.call_id} {call.name}, {_why(call)}")
    for version in view.stray_results:
        write(f"-- the result at version {version} answers no call in the view")
    for doubtful in view.in_doubt:
        write(f"-- in doubt: service call {doubtful.call} of run {doubtful.run}, started at version {doubtful.started}")
    if not view.continuation.in_step:
        write("-- the service may hold something else: send the whole history")
