"""The command that follows: one conversation, or all of a tenant's."""

from __future__ import annotations

import errno
import os
import select
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

import typer

from eventlog.events import Event
from eventlog.log import Tenant
from eventlog.messages import Json
from eventlog.subscription import Followed, Kind
from gateway.command import options
from gateway.command.options import AsJson, Data, Durability, Namespace, Url
from gateway.command.output import write, write_json
from gateway.command.place import Place, note, run
from gateway.command.summary import clean, part_text, summary
from projections import history as histories
from projections.change import HistoryChange
from projections.view import View

_LOOK = 1.0
"""Seconds without an event after which it is looked whether anybody still reads."""


def follow(
    conversation: Annotated[
        str | None, typer.Option("--conversation", "-c", help="The conversation's id. None: all of the tenant's.")
    ] = None,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
    tenant: options.Tenant = "default",
    after: Annotated[
        str, typer.Option(metavar="CURSOR|start|now", help="Where to begin: behind a cursor, at the start, or now.")
    ] = "start",
    history: Annotated[
        bool, typer.Option("--history", help="The messages of the service view, then what enters and what leaves.")
    ] = False,
    types: Annotated[list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")] = None,
    in_run: Annotated[str | None, typer.Option("--run", help="Only events of this run.")] = None,
    until_run: Annotated[str | None, typer.Option("--until-run", help="End when this run ends.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show events as they are recorded, until interrupted.

    First what is there, then what comes.

    Without --conversation all conversations of the tenant are followed, new ones included. At the
    end the cursor to go on from with --after is written on stderr.
    """
    if conversation is None and (history or in_run or until_run):
        raise typer.BadParameter("--history, --run and --until-run need --conversation: they are about one of them")
    if history and (types or in_run or until_run or after == "now"):
        raise typer.BadParameter(
            "--history follows all of a conversation: leave out --type, --run, --until-run and now"
        )
    place, last = Place(url, data, namespace, tenant, durability), _Last()

    async def work() -> None:
        async with place.open() as opened:
            if conversation is None:
                await _show_tenant(opened, after, types, last, as_json=as_json)
            elif history:
                await _show_history(opened, conversation, after, last, as_json=as_json)
            else:
                await _show_log(opened, conversation, after, types, in_run, until_run, last, as_json=as_json)

    try:
        run(work)
    finally:
        last.tell()


class _Last:
    """The cursor to go on from."""

    def __init__(self) -> None:
        self.cursor: str | None = None

    def tell(self) -> None:
        if self.cursor is not None:
            note(f"go on with --after {self.cursor}")


async def _show_log(
    tenant: Tenant,
    conversation: str,
    after: str,
    types: list[str] | None,
    in_run: str | None,
    until_run: str | None,
    last: _Last,
    *,
    as_json: bool,
) -> None:
    handle = tenant.conversation(conversation)
    follower = handle.follow(
        after, types=types or None, run=in_run, ends_with_run=until_run, heartbeat=_LOOK, max_behind=None
    )
    async with follower:
        await _show(follower, last, as_json=as_json, names=False)


async def _show_tenant(tenant: Tenant, after: str, types: list[str] | None, last: _Last, *, as_json: bool) -> None:
    async with tenant.follow(after, types=types or None, heartbeat=_LOOK) as follower:
        await _show(follower, last, as_json=as_json, names=True)


async def _show(follower: AsyncIterator[Followed[Any]], last: _Last, *, as_json: bool, names: bool) -> None:
    async for item in follower:
        if item.event is not None and as_json:
            write_json(_json(item.event, item.conversation, str(item.cursor)))
        elif item.event is not None:
            write(_line(item.event, item.conversation if names else None))
        elif item.kind is Kind.HEARTBEAT:
            _check_reader()
        last.cursor = str(item.cursor)


async def _show_history(tenant: Tenant, conversation: str, after: str, last: _Last, *, as_json: bool) -> None:
    items = histories.follow(tenant.conversation(conversation), None if after == "start" else after, heartbeat=_LOOK)
    async with aclosing(items):
        async for item in items:
            if str(item.cursor) == last.cursor:
                _check_reader()
            elif as_json:
                write_json(item.as_json())
            else:
                _write_change(item)
            last.cursor = str(item.cursor)


def _write_change(item: View | HistoryChange) -> None:
    if isinstance(item, HistoryChange):
        for left in item.left:
            write(f"-- version {item.version}: {', '.join(map(str, left.versions)) or 'nothing'} left: {left.why}")
    for message in item.messages if isinstance(item, View) else item.added:
        write(f"{message.role} [{', '.join(map(str, message.versions))}]")
        for part in message.parts:
            write("  " + clean(part_text(part)).replace("\n", "\n  "))


def _line(event: Event, conversation: str | None) -> str:
    where = "" if conversation is None else f"{conversation}  "
    call = "" if event.call is None else f"#{event.call}"
    by = "" if event.run is None else f"  {event.run}{call}"
    return f"{where}{event.version:>5}  {event.at}  {event.type}{by}  {summary(event)}"


def _json(event: Event, conversation: str | None, cursor: str) -> dict[str, Json]:
    document: dict[str, Json] = {"conversation": conversation, "cursor": cursor}
    document.update((name, value) for name, value in event._asdict().items() if name != "stamp")
    return document


def _check_reader() -> None:
    """Raise ``BrokenPipeError`` when the other end of stdout is closed: a pipe tells that only to who writes."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        is_closed = any(found & (select.POLLERR | select.POLLHUP) for _, found in poll.poll(0))
    except (OSError, ValueError, AttributeError):
        return
    if is_closed:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
