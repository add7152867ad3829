"""The command that shows what crashed runs left behind, and ends them: recover."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import typer

from eventlog.conversation import Conversation
from eventlog.errors import ConversationBusy, RunClosed
from gateway.command.options import AsJson, Data, Durability, Namespace, Tenant, Url
from gateway.command.output import write, write_json
from gateway.command.place import FAILED, Place, note, note_if_empty, run
from gateway.command.runs import moment
from gateway.command.summary import one_line, words
from projections import recovery
from projections.leftovers import Closed, LeftRun, StillOpen, Swept, Unanswered, Why
from projections.recovery import Action

LEFT_OPEN = 3
"""The exit code when open runs were found and nothing was done."""


def recover(
    url: Url = None,
    data: Data = None,
    durability: Durability = "everysec",
    namespace: Namespace = "eventlog",
    tenant: Tenant = "default",
    conversation: Annotated[
        str | None, typer.Option("--conversation", "-c", help="Only this one. None: all of the tenant's.")
    ] = None,
    run_id: Annotated[str | None, typer.Option("--run", help="Only this run of the conversation.")] = None,
    abort: Annotated[bool, typer.Option("--abort", help="Abort the runs whose lease has expired.")] = False,
    seal: Annotated[
        bool, typer.Option("--seal", help="Abort them, and answer the calls they leave open with a marked result.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="End the run though it is still held.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what open runs left behind, and end the expired ones.

    Expired is a run whose lease has run out; --abort or --seal ends it. One that is still held is
    left alone, unless --force names it.
    """
    if abort and seal:
        raise typer.BadParameter("give --abort or --seal, not both")
    if run_id is not None and conversation is None:
        raise typer.BadParameter("--run needs --conversation")
    if force and (run_id is None or not (abort or seal)):
        raise typer.BadParameter("--force needs --conversation, --run, and --abort or --seal")
    action: Action = "abort" if abort else "seal" if seal else "inspect"

    async def read() -> list[Swept]:
        async with Place(url, data, namespace, tenant, durability).open() as handle:
            if conversation is None:
                return [one async for one in recovery.survey(handle, action=action)]
            return [await _of_one(handle.conversation(conversation), run_id, action, force=force)]

    found = [one for one in run(read) if one.problem is not None or (one.found is not None and one.found.runs)]
    if as_json:
        write_json([one.as_json() for one in found])
    else:
        for one in found:
            for line in _lines(one):
                write(line)
        if not found:
            write("no run is open")
    failed = [one for one in found if one.problem is not None]
    for one in failed:
        note(f"conversation {one.conversation!r}: {one.problem}")
    if failed:
        raise typer.Exit(FAILED)
    if found and not any(one.done for one in found):
        raise typer.Exit(LEFT_OPEN)


async def _of_one(handle: Conversation, run_id: str | None, action: Action, *, force: bool) -> Swept:
    """One conversation; a run that is named must be there to be ended."""
    found = await recovery.inspect(handle)
    await note_if_empty(handle, found=bool(found.runs))
    wanted = [left.run for left in found.expired]
    if run_id is not None:
        found = replace(found, runs=tuple(left for left in found.runs if left.run == run_id))
        wanted = [run_id]
    done = []
    for name in wanted if action != "inspect" else ():
        try:
            done.append(await (recovery.seal if action == "seal" else recovery.abort)(handle, name, force=force))
        except (RunClosed, ConversationBusy):
            if run_id is not None:
                raise
    return Swept(handle.id, found, tuple(done))


def _lines(one: Swept) -> Iterator[str]:
    """What was found and done in a conversation, for people."""
    if one.found is None:
        return
    yield f"conversation {one_line(one.conversation)}, version {one.found.cursor.version}"
    done = {closed.run: closed for closed in one.done}
    for left in one.found.runs:
        yield from _run_lines(left)
        if left.run in done:
            yield from _done_lines(done[left.run])


def _run_lines(left: LeftRun) -> Iterator[str]:
    agent = "" if left.agent is None else f", agent {one_line(left.agent, 60)}"
    state = "expired" if left.expired else "held"
    yield f"  run {one_line(left.run, 60)} from version {left.first}: {left.mode}{agent}, {state}"
    holder = one_line(left.holder, 60) or "an unknown process"
    yield f"    held by {holder} since {moment(left.since_ms)}, lease until {moment(left.lease_ms)}"
    yield f"    last completed service call: {left.last_completed or 'none'}"
    for doubt in left.in_doubt:
        yield f"    in doubt: service call {doubt.number}, started at version {doubt.started}"
    for unanswered in left.unanswered:
        yield f"    {_call_line(unanswered)}"
    for result in left.unsent_results:
        whose = "a call of another run" if result.answers is None else f"the call at version {result.answers}"
        yield f"    not sent yet: the result at version {result.version}, which answers {whose}"


def _call_line(unanswered: Unanswered) -> str:
    call = unanswered.call
    why = "waits for approval" if unanswered.awaits_approval else "no result"
    return f"{why}: call {one_line(f'{call.call_id} {call.name}({words(call.arguments)})')} at version {call.version}"


def _done_lines(closed: Closed) -> Iterator[str]:
    what = "sealed" if closed.reason == "sealed" else f"aborted: {closed.reason},"
    yield f"    {what} at version {closed.version}"
    for call in closed.open_calls:
        yield f"    still open: call {one_line(call.call_id, 60)} at version {call.version}, {_why(call)}"


def _why(call: StillOpen) -> str:
    match call.why:
        case Why.SEALED:
            return "a marked result is recorded: the next run sends it"
        case Why.RECORDED:
            return "its result is recorded: the next run sends it"
        case Why.APPROVAL:
            return "waits for approval"
        case Why.OTHER_RUN:
            return f"belongs to run {one_line(call.run or '', 60)}, which is open"
