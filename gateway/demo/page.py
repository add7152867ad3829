"""How the demo looks: rich tables and plain lines."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.demo import account, wording
from gateway.demo.story import Story
from gateway.demo.wording import IN_HISTORY

_INTRODUCTION = (
    "One scripted conversation with an agent, played once in each persistence mode. Tools run in parallel, "
    "a service call fails, a process is killed by SIGKILL, and a filter ends the last loop early. "
    "Everything is in the log; what the model service would remember is decided when the log is read."
)


def introduction(console: Console) -> None:
    """What is about to be seen."""
    _say(console, _INTRODUCTION)


def story(console: Console, told: Story) -> None:
    """One mode: what happened, the log beside the history, and the history itself."""
    console.print()
    console.rule(Text(f"Mode {told.mode}", style="bold"), align="left")
    _say(console, f"conversation {told.conversation}")
    for number, turn in enumerate(account.turns(told), 1):
        console.print()
        _say(console, f'Turn {number}: "{turn.question}"', "bold")
        for fact in turn.facts:
            _say(console, fact, indent=2)
    console.print()
    _say(console, "The log, and what of it the model service would remember", "bold")
    console.print(_log(told))
    console.print()
    _say(console, f"The service-equivalent history: {len(told.view.messages)} messages", "bold")
    console.print(_history(told))
    for call in told.view.open_calls:
        _say(console, account.open_call(call), "yellow")
    if not told.view.open_calls:
        _say(console, "No call is open.")


def comparison(console: Console, stories: Sequence[Story]) -> None:
    """Both modes side by side, in numbers."""
    console.print()
    console.rule(Text("Both modes", style="bold"), align="left")
    _say(console, "Message parts, calls and results, when the process was killed and at the end")
    table = _table()
    table.add_column("")
    for told in stories:
        table.add_column(f"{told.mode}\nat the kill", justify="right", overflow="fold")
        table.add_column(f"{told.mode}\nat the end", justify="right", overflow="fold")
    for tally in account.tallies(stories):
        table.add_row(Text(tally.fate, style=_style(tally.fate)), *map(str, tally.counts))
    console.print(table)
    console.print()


def commands(console: Console, title: str, lines: Sequence[str]) -> None:
    """What to try next. Commands are never wrapped, so that they can be copied."""
    _say(console, title, "bold")
    for line in lines:
        console.print(Text(f"  {line}"), soft_wrap=True)


def _log(told: Story) -> Table:
    table = _table()
    table.add_column("version", justify="right", no_wrap=True)
    table.add_column("event", no_wrap=True)
    table.add_column("content", overflow="fold", ratio=1)
    table.add_column("history", no_wrap=True)
    for line in wording.lines(told.events, told.fates):
        style = "" if line.fate else "dim"
        table.add_row(
            Text(str(line.version), style=style),
            Text(line.event, style=style),
            Text(line.content, style=style),
            Text(line.fate, style=_style(line.fate)),
        )
    return table


def _history(told: Story) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for message in told.view.messages:
        table.add_row(Text(message.role, style="cyan"), Text(wording.message(message)))
    return table


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)


def _style(fate: str) -> str:
    if fate == IN_HISTORY:
        return "green"
    return "" if fate in ("", "recorded") else "yellow"


def _say(console: Console, words: str, style: str = "", *, indent: int = 0) -> None:
    """Plain words, wrapped here: rich would fill up wrapped lines with spaces."""
    margin = " " * indent
    wrapper = textwrap.TextWrapper(
        console.width, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False
    )
    for line in wrapper.wrap(words):
        console.print(Text(line, style=style), soft_wrap=True)
