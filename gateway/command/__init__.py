"""The command ``eventlog``: conversations from a shell, for people and for scripts."""

from __future__ import annotations

from contextlib import suppress
from importlib import metadata
from typing import Annotated

import typer
from rich.console import Console

from gateway.command import (
    delete,
    directory,
    exchange,
    follow,
    groups,
    health,
    open_calls,
    projections,
    reading,
    recover,
    usage,
    writing,
)
from gateway.command.options import Data, Durability, Url, exit_codes
from gateway.command.output import write
from gateway.command.place import FAILED, note, run
from gateway.command.streams import standard_streams

__all__ = ["app", "main"]

app = typer.Typer(
    name="eventlog",
    help="The message log of AI agents: read it, write to it, bring it in and out.",
    epilog=exit_codes(),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    """Say which version this is, and end."""
    if wanted:
        try:
            version = metadata.version("agent-eventlog")
        except metadata.PackageNotFoundError:
            version = "(not installed: run from its source)"
        write(f"eventlog {version}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """What stands before a command."""


@app.command(epilog=exit_codes(), short_help="Play an agent conversation in both modes.")
def demo(url: Url = None, data: Data = None, durability: Durability = "everysec") -> None:
    """Play an agent conversation in both modes; show what is kept.

    With all that goes wrong: a service call fails, a process is killed, a loop is ended early.
    """
    from gateway.demo import demo as play  # noqa: PLC0415  the other commands start faster without it

    run(lambda: play(url or None, data, Console(), durability))


app.command("import", epilog=exit_codes({3: "some lines were refused, the others imported"}))(exchange.import_)
app.command(epilog=exit_codes({1: "an error, or a conversation was left out, told on stderr"}))(exchange.export)
app.command(epilog=exit_codes())(writing.append)
app.command(epilog=exit_codes(), short_help="Show the raw events of a conversation.")(reading.log)
app.command(epilog=exit_codes())(follow.follow)
app.add_typer(groups.groups_app, name="groups")
app.add_typer(groups.parked_app, name="parked")
app.add_typer(projections.projections_app, name="projections")
app.command(epilog=exit_codes())(directory.conversations)
app.command("open-calls", epilog=exit_codes())(open_calls.open_calls)
app.command(epilog=exit_codes())(usage.usage)
app.command(epilog=exit_codes())(reading.history)
app.command(epilog=exit_codes(), short_help="Show what of a conversation a view keeps, and why.")(reading.explain)
app.command(epilog=exit_codes(), short_help="Show the runs of a conversation, and who holds them.")(reading.runs)
app.command(
    epilog=exit_codes({0: "nothing is open, or something was done", 3: "open runs were found, nothing was done"})
)(recover.recover)
app.command(epilog=exit_codes({0: "no fault", 1: "a fault was found; or an error, told on stderr"}))(health.verify)
app.command(
    epilog=exit_codes(
        {
            1: "the server is unreachable or unfit; or an error, told on stderr",
            2: "wrong usage; with --strict: there are warnings",
        }
    )
)(health.doctor)
app.command(epilog=exit_codes())(writing.rewind)
app.command(epilog=exit_codes())(writing.compact)
app.command(epilog=exit_codes())(delete.delete)


def main() -> None:
    """The entry point."""
    with standard_streams():
        try:
            app()
        except OSError as error:
            # What a command works on tells its own errors: this is what it could not write.
            with suppress(OSError):
                note(str(error))
            raise SystemExit(FAILED) from None
