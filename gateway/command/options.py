"""The options that several commands share, each read the same everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from eventlog import durability
from eventlog.errors import InvalidInput

_EXIT_CODES = {0: "done", 1: "an error, told on stderr", 2: "wrong usage", 130: "interrupted"}


def exit_codes(own: Mapping[int, str] | None = None) -> str:
    """The exit codes of a command as its help shows them: those of all, and its ``own``."""
    lines = [f"  {code:<3}  {what}" for code, what in sorted((_EXIT_CODES | dict(own or {})).items())]
    return "\n".join(["\b", "Exit codes:", *lines])


EXIT_CODES = exit_codes()
"""Those of a command that has none of its own."""


def _known_durability(text: str) -> str:
    """Refuse what is no durability before anything is opened."""
    try:
        return str(durability.Durability.parse(text))
    except InvalidInput as error:
        raise typer.BadParameter(str(error)) from None


class ViewChoice(StrEnum):
    """The views of a log."""

    SERVICE = "service"
    UNTRIMMED = "untrimmed"
    EVERYTHING = "everything"


class FateView(StrEnum):
    """The views that something can be dropped from."""

    SERVICE = "service"
    UNTRIMMED = "untrimmed"


class Form(StrEnum):
    """The forms of conversations that are read and written."""

    OPENAI_CHAT = "openai-chat"


class ModeChoice(StrEnum):
    """When what a run did enters the history."""

    PER_SERVICE_CALL = "per-service-call"
    PER_RUN = "per-run"


def _readable(file: Path | None) -> Path | None:
    """Refuse a file that is not there before anything is opened. ``-`` is stdin."""
    if file is not None and str(file) != "-":
        if not file.exists():
            raise typer.BadParameter(f"{str(file)!r} does not exist")
        if file.is_dir():
            raise typer.BadParameter(f"{str(file)!r} is a directory")
    return file


JsonFile = Annotated[
    Path | None,
    typer.Argument(callback=_readable, metavar="FILE", help="JSON: one event or a list. None or -: stdin."),
]
MessagesFile = Annotated[
    Path | None, typer.Option("--file", callback=_readable, help="A JSON list of messages to put in; - is stdin.")
]
LinesFile = Annotated[
    Path, typer.Argument(callback=_readable, metavar="FILE", help="JSON Lines, gzip or not; - is stdin.")
]
Url = Annotated[
    str | None,
    typer.Option(
        "--url", envvar="EVENTLOG_URL", help="The server: redis://, rediss://, unix://. None: the embedded one."
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        envvar="EVENTLOG_DATA",
        file_okay=False,
        help="The embedded server's data directory; without effect beside a URL.",
    ),
]
Durability = Annotated[
    str,
    typer.Option(
        "--durability",
        envvar="EVENTLOG_DURABILITY",
        callback=_known_durability,
        metavar="memory|everysec|always|replicated(N)",
        help="What the server must keep; one that is known not to is refused.",
    ),
]
Namespace = Annotated[
    str, typer.Option("--namespace", envvar="EVENTLOG_NAMESPACE", help="What the server's keys begin with.")
]
Tenant = Annotated[str, typer.Option("--tenant", help="Whose conversations.")]
ConversationId = Annotated[str, typer.Option("--conversation", "-c", help="The conversation's id.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")]
Expecting = Annotated[
    str | None,
    typer.Option("--expected", metavar="CURSOR", help="The cursor the decision was made at. None: as it is now."),
]
