"""The command that deletes a conversation for good: delete."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.command.options import AsJson, Data, Durability, Namespace, Url
from gateway.command.output import write, write_json
from gateway.command.pages import Owner
from gateway.command.place import FAILED, Place, note, run
from gateway.command.summary import many, one_line
from projections.live import Live
from projections.status import forget


def delete(
    tenant: Owner,
    conversation: Annotated[str, typer.Argument(metavar="CONVERSATION", help="The conversation's id.")],
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
    force: Annotated[bool, typer.Option("--force", help="Also while a run is open, which is gone with it.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete a conversation for good, and what views keep of it.

    Its id cannot be used again. Doing it again does no harm, and ends what was interrupted.
    """
    if not yes:
        typer.confirm(
            f"Delete conversation {one_line(conversation)} of {one_line(tenant)} for good?", abort=True, err=True
        )

    async def work() -> int | None:
        async with Place(url, data, namespace, tenant, durability).open() as handle:
            chat = handle.conversation(conversation)
            # The tombstone first: from then on no projector writes anything of it anew.
            if not await chat.delete(force=force):
                return None
            return len(await forget(Live.of(chat.store), chat.log))

    views = run(work)
    if views is None:
        note(f"conversation {conversation!r} of {tenant!r} has no events: there is nothing to delete")
        raise typer.Exit(FAILED)
    if as_json:
        write_json({"tenant": tenant, "conversation": conversation, "deleted": True, "views": views})
        return
    write(
        f"conversation {one_line(conversation)} of {one_line(tenant)} is deleted, and gone from {many(views, 'view')}"
    )
