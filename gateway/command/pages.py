"""What the commands share that read an index of a tenant page by page."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gateway.command.place import note
from gateway.command.runs import moment
from gateway.command.summary import many
from projections.page import LARGEST, AsOf, Page

Owner = Annotated[str, typer.Argument(metavar="TENANT", help="Whose conversations.")]
Limit = Annotated[int, typer.Option(min=1, max=LARGEST, help="Lines of a page.")]
After = Annotated[str | None, typer.Option(metavar="CURSOR", help="The page behind this cursor.")]
Before = Annotated[str | None, typer.Option(metavar="CURSOR", help="The page ahead of this cursor.")]


def shown_time(milliseconds: int | None) -> str | None:
    """Milliseconds since 1970 as a time; None where there is none, or none was told."""
    return moment(milliseconds) if milliseconds else None


def note_page(page: Page[Any]) -> None:
    """Say as of when the page is, and how to turn it."""
    note_as_of(page.as_of)
    if page.previous is not None:
        note(f"the page before: --before {page.previous}")
    if page.next is not None:
        note(f"more: --after {page.next}")


def note_as_of(as_of: AsOf) -> None:
    """Say as of when it is."""
    since = "an unknown time" if as_of.at_ms is None else moment(as_of.at_ms)
    behind = "" if not as_of.lag else f": {many(as_of.lag, 'append')} of all tenants not yet in the view"
    note(f"as of {since}{behind}")
