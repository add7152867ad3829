"""The commands that look after what is stored and who stores it: verify, doctor."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import typer

from eventlog.errors import InvalidInput
from eventlog.identity import LogId, check_id
from eventlog.server.embedded import EmbeddedServer
from eventlog.store.redis.audit import Audit
from eventlog.store.redis.verification import Verification
from gateway.command.options import AsJson, Data, Namespace, Tenant, Url
from gateway.command.output import write, write_json
from gateway.command.place import FAILED, note, run
from gateway.command.summary import clean
from gateway.doctor import FAULT, WARNING, Examination, examine, tell_embedded

WARNED = 2


def verify(
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    tenant: Tenant = "default",
    conversation: Annotated[
        str | None, typer.Option("--conversation", "-c", help="Only this conversation; else the whole namespace.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Name every fault, not only the first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check that what is stored is whole and agrees with itself. Reads only; writers may go on.

    Each fault is named with its conversation or key, what is wrong and what should be. The exit
    code is 1 when there is one.
    """

    async def check() -> int:
        log, faults = None, 0
        if conversation is not None:
            log = LogId(check_id(tenant, "tenant"), check_id(conversation, "conversation"))
        async with _server(url, data) as (where, _), Audit.open(where, namespace) as audit:
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
            read = f"{verification.conversations} conversations, {verification.events} events"
            if log is not None and not verification.events and not faults:
                note(f"conversation {log.conversation!r} of {log.tenant!r} has no events")
            note(f"{'no fault' if not faults else 'faulty'} in {read}{'' if everything or not faults else ' so far'}")
        return faults

    if run(check):
        raise typer.Exit(FAILED)


def doctor(
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    strict: Annotated[bool, typer.Option("--strict", help="End with 2 when there are warnings.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tell everything that matters about the server and the namespace, and what to change.

    The exit code is 1 when the server cannot be reached or must not be used, 2 with --strict when
    there are warnings.
    """

    async def look() -> Examination:
        async with _server(url, data) as (where, embedded):
            found = await examine(where, namespace)
            if embedded is not None:
                tell_embedded(found, embedded)
            return found

    found = run(look)
    if as_json:
        write_json(found.as_json())
    else:
        _write(found)
    if found.has(FAULT):
        raise typer.Exit(FAILED)
    if strict and found.has(WARNING):
        raise typer.Exit(WARNED)


@asynccontextmanager
async def _server(url: str | None, data: object) -> AsyncIterator[tuple[str, EmbeddedServer | None]]:
    if url and url.startswith("memory:"):
        raise InvalidInput(f"{url} names no server: nothing is stored there that could be looked at")
    if url:
        yield url, None
        return
    async with await EmbeddedServer.open(data) as server:  # type: ignore[arg-type]
        yield server.url, server


class _Progress:
    """How far a verification is, on stderr where that is a terminal."""

    def __init__(self) -> None:
        self._shown = 0

    def __call__(self, verification: Verification) -> None:
        if sys.stderr.isatty() and verification.events >= self._shown + 10_000:
            self._shown = verification.events
            typer.echo(f"\r{verification.conversations} conversations, {self._shown} events", nl=False, err=True)

    def end(self) -> None:
        if self._shown:
            typer.echo("\r\033[K", nl=False, err=True)


def _write(found: Examination) -> None:
    for topic, facts in found.facts.items():
        for name, value in facts.items() if isinstance(facts, dict) else [("", facts)]:
            shown = "unknown" if value is None else value
            write(clean(f"{topic}{' ' + name if name else ''}: {shown}").replace("\n", "\\n"))
    for finding in found.findings:
        write(f"{finding.level}: {finding.text}")
        if finding.change:
            write(f"  change: {finding.change}")
    if not found.findings:
        write("all is well")
