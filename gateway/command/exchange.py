"""The commands that bring conversations in from other forms, and out again: import, export."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from rich.console import Console
from rich.progress import Progress

from eventlog.codec import decode
from eventlog.conversation import Conversation
from eventlog.errors import AppendRefused, InvalidInput
from eventlog.events import Mode
from eventlog.log import Tenant as TenantHandle
from gateway.command.lines import Lines, open_lines
from gateway.command.options import AsJson, Data, Durability, Form, LinesFile, ModeChoice, Namespace, Tenant, Url
from gateway.command.output import write, write_json, write_line
from gateway.command.place import FAILED, REFUSED_LINES, Place, fail, note, run
from gateway.command.summary import clean, many, plain
from gateway.formats import openai_chat
from gateway.import_plan import plan
from gateway.importing import Figures, Imported, content, record
from projections import history
from projections.view import View

SHOWN = 20
"""Refused lines that are named; of more only the number is told."""


def import_(
    file: LinesFile,
    form: Annotated[Form, typer.Option("--format", help="The form that the messages have.")],
    mode: Annotated[ModeChoice, typer.Option(help="When what a run did enters the history.")],
    url: Url = None,
    data: Data = None,
    durability: Durability = "everysec",
    namespace: Namespace = "eventlog",
    tenant: Tenant = "default",
    as_json: AsJson = False,
) -> None:
    """Import conversations; the same file again adds nothing.

    openai-chat: one {"id", "messages"} a line, the messages in the OpenAI chat-completions form.
    Each assistant message is taken for a completed service call that carried what stood unsent
    before it, each turn for a run. A line that is malformed, or whose conversation is there with
    other content, is refused with its number, and the rest imported.
    """
    place = Place(url, data, namespace, tenant, durability)
    source = "stdin" if str(file) == "-" else str(file)
    try:
        with open_lines(file) as lines:
            figures = run(lambda: _import(lines, place, Mode(mode.value), form.value, source))
    except BrokenPipeError:
        raise
    except OSError as error:
        fail(str(error))
    if as_json:
        write_json(
            {
                "conversations": {"added": figures.added, "already_there": figures.already_there},
                "messages": {"read": figures.read, "in_view": figures.in_view, "dropped": dict(figures.dropped)},
                "refused": figures.refused,
            }
        )
    else:
        _write_figures(figures)
    if figures.refused:
        raise typer.Exit(REFUSED_LINES)


def export(
    url: Url = None,
    data: Data = None,
    durability: Durability = "everysec",
    namespace: Namespace = "eventlog",
    tenant: Tenant = "default",
    conversation: Annotated[
        list[str] | None,
        typer.Option("--conversation", "-c", help="Only this one; may be repeated. None: all of the tenant's."),
    ] = None,
    form: Annotated[Form, typer.Option("--format", help="The form to write.")] = Form.OPENAI_CHAT,
    output: Annotated[Path | None, typer.Option(dir_okay=False, help="The file to write. None: stdout.")] = None,
) -> None:
    """Export the service view of conversations, one a line.

    In the order of their first append. A conversation that holds a message which the form cannot
    express is named and left out, and the others exported.
    """
    del form  # there is one
    place = Place(url, data, namespace, tenant, durability)
    ids = conversation or []
    if output is None:
        left_out = run(lambda: _export(place, ids, write_line, quiet=sys.stdout.isatty()))
    else:
        if not output.parent.is_dir():
            fail(f"the directory {str(output.parent)!r} does not exist: make it, or give another --output")
        try:
            with output.open("wb") as file:
                left_out = run(lambda: _export(place, ids, _writer(file), quiet=False))
        except OSError as error:
            fail(str(error))
    if left_out:
        raise typer.Exit(FAILED)


async def _import(lines: Lines, place: Place, mode: Mode, form: str, source: str) -> Figures:
    found: dict[str, Imported] = {}
    refused = 0

    def refuse(error: Exception) -> None:
        nonlocal refused
        refused += 1
        if refused <= SHOWN:
            typer.echo(clean(plain(f"{source}:{lines.number}: {error}")).replace("\n", "\\n"), err=True)

    async with place.open() as tenant:
        with _progress(quiet=False) as progress:
            task = progress.add_task("importing", total=lines.size)
            try:
                for line in lines:
                    progress.update(task, completed=lines.position)
                    try:
                        transcript = openai_chat.read_line(line)
                        operations = plan(transcript.id, transcript.messages, form=form, mode=mode)
                        handle = tenant.conversation(transcript.id)
                        added = await record(handle, operations)
                    except (InvalidInput, AppendRefused) as error:
                        refuse(error)
                        continue
                    former = found.get(transcript.id)
                    added = added or (former is not None and former.added)
                    found[transcript.id] = Imported(len(transcript.messages), added, await content(handle))
            except InvalidInput as error:
                refuse(error)
    if refused > SHOWN:
        note(f"{many(refused - SHOWN, 'more line')} refused")
    return Figures.of(found.values(), refused)


async def _export(place: Place, ids: list[str], write_line: Callable[[bytes], object], *, quiet: bool) -> int:
    """Write the conversations; return how many cannot be written in this form, and were left out."""
    left_out = 0
    async with place.open() as tenant:
        handles = [await _existing(tenant, name) for name in ids] or [handle async for handle in _all(tenant)]
        with _progress(quiet=quiet) as progress:
            for handle in progress.track(handles, description="exporting"):
                view = await history.load(handle)
                problem = _unwritable(view)
                if problem is None:
                    write_line(openai_chat.write_line(handle.id, list(view.messages)))
                else:
                    left_out += 1
                    note(f"conversation {handle.id!r} of {handle.tenant!r} is not exported: {problem}")
    return left_out


def _unwritable(view: View) -> str | None:
    """Which message the form cannot express, and why: what is exported can be imported again."""
    for message in view.messages:
        try:
            for raw in openai_chat.write_message(message):
                openai_chat.read_message(raw, "message")
        except InvalidInput as error:
            where = f"the message at version {message.versions[0]}" if message.versions else "a message"
            return f"{where} cannot be written as {openai_chat.NAME}: {error}"
    return None


async def _existing(tenant: TenantHandle, name: str) -> Conversation:
    handle = tenant.conversation(name)
    if (await handle.head()).last.version == 0:
        raise InvalidInput(f"conversation {name!r} of {tenant.id!r} has no events")
    return handle


async def _all(tenant: TenantHandle) -> AsyncIterator[Conversation]:
    """The tenant's conversations in the order of their first append, as their writers' clocks tell."""
    found: list[tuple[str, int, Conversation]] = []
    async for name in tenant.conversations():
        handle = tenant.conversation(name)
        first = await handle.store.read(handle.log, 1, 1, 1)
        found.append((decode(*first[0]).at if first else "", len(found), handle))
    for _, _, handle in sorted(found, key=lambda item: item[:2]):
        yield handle


def _progress(*, quiet: bool) -> Progress:
    """A bar on stderr, on a terminal alone."""
    return Progress(console=Console(stderr=True), transient=True, disable=quiet or not sys.stderr.isatty())


def _writer(file: BinaryIO) -> Callable[[bytes], object]:
    return lambda line: file.write(line + b"\n")


def _write_figures(figures: Figures) -> None:
    total = figures.added + figures.already_there
    dropped = dict(figures.dropped)
    trailing, unsent = dropped.pop("trailing-result", 0), dropped.pop("unsent-message", 0)
    write(f"{many(total, 'conversation')}: {figures.added:,} added, {figures.already_there:,} already there")
    write(f"{many(figures.read, 'message')} read, {figures.in_view:,} in the service view")
    write(f"{many(trailing, 'trailing result')} and {many(unsent, 'unsent message')} dropped")
    for reason, number in sorted(dropped.items()):
        write(f"{many(number, 'other message')} dropped: {reason}")
    if figures.refused:
        write(f"{many(figures.refused, 'line')} refused")
