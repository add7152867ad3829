"""The command that lists what is unanswered: open-calls."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.command.options import AsJson, Data, Durability, Namespace, Url
from gateway.command.output import write_json, write_table
from gateway.command.pages import After, Before, Limit, Owner, note_page, shown_time
from gateway.command.place import Place, run
from projections import listing
from projections.page import Page
from projections.views.open_calls import OpenCall


def open_calls(
    tenant: Owner,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
    approval: Annotated[bool, typer.Option("--approval", help="Only those that wait for approval.")] = False,
    limit: Limit = 50,
    after: After = None,
    before: Before = None,
    as_json: AsJson = False,
) -> None:
    """List a tenant's open function calls, the oldest first.

    Open are those that nobody answered, and those that wait for approval. On a pipe the fields of a
    line are parted by tabs: conversation, version, call, name, agent, run, since when it is open,
    since when it waits for approval.
    """

    async def read() -> Page[OpenCall]:
        async with Place(url, data, namespace, tenant, durability).open() as handle:
            return await listing.open_calls(handle, limit=limit, after=after, before=before, approval_only=approval)

    page = run(read)
    if as_json:
        write_json(page.as_json(OpenCall.as_json))
        return
    columns = ("conversation", "version", "call", "name", "agent", "run", "since", "approval since")
    write_table(columns, map(_row, page.items))
    note_page(page)


def _row(one: OpenCall) -> tuple[object, ...]:
    run_of = f"{one.run}{' (open)' if one.in_open_run else ''}" if one.run else None
    times = (shown_time(one.since_ms), shown_time(one.awaits_since_ms))
    return (one.conversation, one.version, one.call_id, one.name, one.agent, run_of, *times)
