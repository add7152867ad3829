"""The commands that look after what is stored and who stores it: verify, doctor."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer

from eventlog.errors import InvalidInput
from eventlog.identity import LogId, check_id
from eventlog.server.embedded import EmbeddedServer
from eventlog.store.redis.audit import Audit
from eventlog.store.redis.verification import Verification
from gateway.command.diagnosis import told
from gateway.command.options import AsJson, Data, Durability, Namespace, Tenant, Url
from gateway.command.output import write, write_json
from gateway.command.place import FAILED, note, run
from gateway.command.summary import many
from gateway.doctor import FAULT, WARNING, Examination, examine, tell_embedded

WARNED = 2


def verify(
    url: Url = None,
    data: Data = None,
    durability: Durability = "everysec",
    namespace: Namespace = "eventlog",
    tenant: Tenant = "default",
    conversation: Annotated[
        str | None, typer.Option("--conversation", "-c", help="Only this conversation; else the whole namespace.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Name every fault, not only the first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check that what is stored is whole and agrees with itself. Reads only; writers may go on.

    Each fault is named with its conversation or key, what is wrong and what should be. What the
    server must keep (--durability) is asked of the embedded one alone, for nothing is written.
    """

    async def check() -> int:
        log, faults = None, 0
        if conversation is not None:
            log = LogId(check_id(tenant, "tenant"), check_id(conversation, "conversation"))
        async with _server(url, data, durability) as (where, _), Audit.open(where, namespace) as audit:
            progress = _Progress()
            verification = Verification(audit, progress)
            async for fault in verification.faults(log):
                faults += 1
                if as_json:
                    write_json(fault._asdict())
                else:
                    write(str(fault))
                if not everything:
                    break
            progress.end()
            if log is not None and not verification.events and not faults:
                note(f"conversation {log.conversation!r} of {log.tenant!r} has no events: there is nothing to verify")
                return faults
            read = f"{many(verification.conversations, 'conversation')}, {many(verification.events, 'event')}"
            note(f"{'no fault' if not faults else 'faulty'} in {read}{'' if everything or not faults else ' so far'}")
        return faults

    if run(check):
        raise typer.Exit(FAILED)


def doctor(
    url: Url = None,
    data: Data = None,
    durability: Durability = "everysec",
    namespace: Namespace = "eventlog",
    strict: Annotated[bool, typer.Option("--strict", help="End with 2 when there are warnings.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tell what matters about the server, and what to change.

    And about the namespace on it. The server is examined for the wanted --durability.
    """

    async def look() -> Examination:
        async with _server(url, data, durability) as (where, embedded):
            found = await examine(where, namespace, durability)
            if embedded is not None:
                tell_embedded(found, embedded)
            return found

    found = run(look)
    if as_json:
        write_json(found.as_json())
    else:
        for line in told(found):
            write(line)
    if found.has(FAULT):
        raise typer.Exit(FAILED)
    if strict and found.has(WARNING):
        raise typer.Exit(WARNED)


@asynccontextmanager
async def _server(
    url: str | None, data: Path | None, durability: str
) -> AsyncIterator[tuple[str, EmbeddedServer | None]]:
    if url and url.startswith("memory:"):
        raise InvalidInput(f"{url} names no server: nothing is stored there that could be looked at")
    if url:
        yield url, None
        return
    async with await EmbeddedServer.open(data, fsync="always" if durability == "always" else "everysec") as server:
        yield server.url, server


class _Progress:
    """How far a verification is, on stderr where that is a terminal."""

    def __init__(self) -> None:
        self._shown = 0

    def __call__(self, verification: Verification) -> None:
        if sys.stderr.isatty() and verification.events >= self._shown + 10_000:
            self._shown = verification.events
            read = f"{many(verification.conversations, 'conversation')}, {many(self._shown, 'event')}"
            typer.echo(f"\r{read}", nl=False, err=True)

    def end(self) -> None:
        if self._shown:
            typer.echo("\r\033[K", nl=False, err=True)
