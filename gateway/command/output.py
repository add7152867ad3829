"""What a command writes on stdout: JSON for programs; tables on a terminal, plain lines on a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from eventlog.messages import Json
from gateway.command.summary import clean
from gateway.formats import json_text

_NOTHING = "-"
_GAP = 2


def write_json(value: Json) -> None:
    """One line of JSON."""
    write_line(json_text.write(value))


def write_line(line: str | bytes) -> None:
    """One line as it is. Raises ``OSError`` that names stdout where it cannot be written."""
    try:
        typer.echo(line)
    except OSError as error:
        error.filename = "stdout"
        raise


def write(text: str = "") -> None:
    """A line, or several, for people."""
    write_line(clean(text))


def write_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """On a pipe one line a row, its fields parted by tabs, without a heading; on a terminal a table.

    A table that is wider than the terminal is written row by row, so that no cursor or id is cut.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    if not sys.stdout.isatty():
        for row in cells:
            write_line("\t".join(row))
        return
    console = Console(highlight=False)
    widths = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    if sum(widths) + _GAP * (len(widths) - 1) <= console.width:
        table = Table(*columns, box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
        for row in cells:
            table.add_row(*map(Text, row))
        console.print(table)
        return
    for row in cells:
        named = [(name, value) for name, value in zip(columns, row, strict=True) if value != _NOTHING]
        pairs = [Text.assemble((name, "dim"), " ", value) for name, value in named]
        console.print(Text("  ").join(pairs), soft_wrap=True)


def _cell(value: object) -> str:
    return _NOTHING if value is None or value == "" else clean(str(value)).replace("\n", "\\n").replace("\t", "\\t")
