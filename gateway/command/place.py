"""Where a command works, and how it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

import anyio
import typer

from eventlog.conversation import Conversation
from eventlog.errors import EventLogError
from eventlog.log import EventLog, Tenant
from gateway.command.summary import clean, plain

T = TypeVar("T")

FAILED, REFUSED_LINES, INTERRUPTED = 1, 3, 130


@asynccontextmanager
async def opened(url: str | None, data: Path | None, namespace: str, durability: str) -> AsyncIterator[EventLog]:
    """The log, with what a person should know of its server said on stderr."""
    async with EventLog.open(url or None, data=data, namespace=namespace, durability=durability) as log:
        for line in log.notes:
            note(f"warning: {line}")
        yield log


@dataclass(frozen=True)
class Place:
    """A tenant of a log on some server."""

    url: str | None
    data: Path | None
    namespace: str
    tenant: str
    durability: str = "everysec"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Tenant]:
        """The tenant, while the log is open."""
        async with opened(self.url, self.data, self.namespace, self.durability) as log:
            yield log.tenant(self.tenant)

    def on(self, conversation: str, work: Callable[[Conversation], Awaitable[T]]) -> T:
        """What ``work`` makes of the conversation."""

        async def with_conversation() -> T:
            async with self.open() as tenant:
                return await work(tenant.conversation(conversation))

        return run(with_conversation)


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Run ``work``; an error of ours ends the command with its message, an interruption with 130."""
    try:
        return anyio.run(work)
    except EventLogError as error:
        fail(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        fail(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def fail(problem: str) -> NoReturn:
    """End the command with an error."""
    note(problem)
    raise typer.Exit(FAILED) from None


def note(text: str) -> None:
    """Say something on stderr."""
    typer.echo(f"eventlog: {clean(plain(text))}", err=True)


async def note_if_empty(conversation: Conversation, *, found: bool) -> None:
    """Say so where nothing was found because there never was anything, as for a misspelt id."""
    if not found and (await conversation.head()).last.version == 0:
        note(f"conversation {conversation.id!r} of {conversation.tenant!r} has no events")
