"""The command ``eventlog``: conversations from a shell, for people and for scripts."""

from __future__ import annotations

from contextlib import suppress

import typer
from rich.console import Console

from gateway.command import exchange, health, reading, recover, writing
from gateway.command.options import EXIT_CODES, Data, Url
from gateway.command.place import FAILED, note, run
from gateway.command.streams import standard_streams

__all__ = ["app", "main"]

app = typer.Typer(
    name="eventlog",
    help="The message log of AI agents: read it, write to it, bring it in and out.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.command(epilog=EXIT_CODES)
def demo(url: Url = None, data: Data = None) -> None:
    """Play one agent conversation in both modes, with all that goes wrong, and show what is kept."""
    from gateway.demo import demo as play  # noqa: PLC0415  the other commands start faster without it

    run(lambda: play(url or None, data, Console()))


app.command("import", epilog=EXIT_CODES)(exchange.import_)
app.command(epilog=EXIT_CODES)(exchange.export)
app.command(epilog=EXIT_CODES)(writing.append)
app.command(epilog=EXIT_CODES)(reading.log)
app.command(epilog=EXIT_CODES)(reading.history)
app.command(epilog=EXIT_CODES)(reading.explain)
app.command(epilog=EXIT_CODES)(reading.runs)
app.command(epilog=EXIT_CODES)(recover.recover)
app.command(epilog=EXIT_CODES)(health.verify)
app.command(epilog=EXIT_CODES)(health.doctor)
app.command(epilog=EXIT_CODES)(writing.rewind)
app.command(epilog=EXIT_CODES)(writing.compact)


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
