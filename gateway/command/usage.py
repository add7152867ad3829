"""The command that tells what was used: usage."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.command.options import AsJson, Data, Durability, Namespace, Url
from gateway.command.output import write_json, write_table
from gateway.command.pages import Owner, note_as_of
from gateway.command.place import Place, run
from projections import listing
from projections.listing import DIMENSIONS, Dimension, UsageReport, UsageRow


def usage(
    tenant: Owner,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
    since: Annotated[str | None, typer.Option(metavar="DAY", help="From this day on (UTC), as 2026-12-01.")] = None,
    until: Annotated[str | None, typer.Option(metavar="DAY", help="Up to this day, with it.")] = None,
    by: Annotated[
        str, typer.Option(metavar="model,agent,day", help="A line for each of these together; '' for one in all.")
    ] = "model,agent,day",
    as_json: AsJson = False,
) -> None:
    """Sum up what a tenant's completed service calls used.

    On a pipe the fields of a line are parted by tabs: those of --by in their order, service calls,
    input tokens, output tokens, other token numbers.
    """
    dimensions = _dimensions(by)

    async def read() -> UsageReport:
        async with Place(url, data, namespace, tenant, durability).open() as handle:
            return await listing.usage(handle, since, until, dimensions)

    report = run(read)
    if as_json:
        write_json(report.as_json())
        return
    columns = (*dimensions, "service calls", "input tokens", "output tokens", "others")
    write_table(columns, [_row(one, dimensions) for one in report.rows])
    note_as_of(report.as_of)


def _dimensions(text: str) -> list[Dimension]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    found = [dimension for name in names for dimension in DIMENSIONS if dimension == name]
    if len(found) < len(names) or len(set(found)) < len(found):
        raise typer.BadParameter(f"--by {text!r:.80}: give some of {', '.join(DIMENSIONS)}, each once")
    return found


def _row(one: UsageRow, by: list[Dimension]) -> tuple[object, ...]:
    others = ", ".join(f"{name} {amount}" for name, amount in one.others.items())
    return (*(getattr(one, name) for name in by), one.service_calls, one.input_tokens, one.output_tokens, others)
