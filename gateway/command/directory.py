"""The command that finds conversations again: conversations."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.command.options import AsJson, Data, Durability, Namespace, Url
from gateway.command.output import write_json, write_table
from gateway.command.pages import After, Before, Limit, Owner, note_page, shown_time
from gateway.command.place import Place, run
from gateway.command.summary import one_line
from projections import listing
from projections.page import Page
from projections.views.directory import DirectoryEntry


def conversations(
    tenant: Owner,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
    label: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Only those with this label; may be repeated.")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only those in which this agent ran.")] = None,
    limit: Limit = 50,
    after: After = None,
    before: Before = None,
    as_json: AsJson = False,
) -> None:
    """List a tenant's conversations, the last active first.

    On a pipe the fields of a line are parted by tabs: conversation, title, messages, runs, agents,
    last activity, last text of the user.
    """
    labels = dict(map(_label, label or ()))

    async def read() -> Page[DirectoryEntry]:
        async with Place(url, data, namespace, tenant, durability).open() as handle:
            return await listing.conversations(
                handle, limit=limit, after=after, before=before, labels=labels, agent=agent
            )

    page = run(read)
    if as_json:
        write_json(page.as_json(DirectoryEntry.as_json))
        return
    columns = ("conversation", "title", "messages", "runs", "agents", "active", "last text")
    write_table(columns, map(_row, page.items))
    note_page(page)


def _label(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise typer.BadParameter(f"--label {text!r:.80}: give the label's name and its value, as topic=billing")
    return name, value


def _row(one: DirectoryEntry) -> tuple[object, ...]:
    title, last = (None if text is None else one_line(text, 60) for text in (one.title, one.last_text))
    agents = ", ".join(one.agents)
    return (one.conversation, title, one.messages, one.runs, agents, shown_time(one.active_ms), last)
