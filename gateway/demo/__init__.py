"""The demo: one agent conversation in both modes, with everything that goes wrong, on a real server."""

from __future__ import annotations

import secrets
from pathlib import Path

from rich.console import Console

from eventlog import EventLog, Mode
from gateway.demo import page, program
from gateway.demo.story import TENANT, Story, Where, play

__all__ = ["demo", "show"]


async def demo(url: str | None, data: Path | None, console: Console, durability: str = "everysec") -> None:
    """Play the conversation in both modes, print what is in the log and what of it is history, and what to try next.

    It writes two new conversations of the tenant ``demo``. Without ``url`` it runs on the embedded
    server of the directory ``data``. Raises what ``EventLog.open`` raises, and
    ``ChildProcessError`` when the process to be killed ends otherwise.
    """
    stories = await show(url, data, console, durability)
    called, options = program.called(), program.options(url, data, durability)
    ids = [" ".join([f"--tenant {TENANT} --conversation {story.conversation}", *options]) for story in stories]
    page.commands(
        console,
        "Try next",
        [
            f"{called} history {ids[0]}",
            f"{called} history {ids[1]}",
            f"{called} history {ids[1]} --view everything",
        ],
    )


async def show(url: str | None, data: Path | None, console: Console, durability: str = "everysec") -> list[Story]:
    """The demo without its last lines; returns what was played."""
    name = f"demo-{secrets.token_hex(3)}"
    where = Where(url, data, durability)
    stories = []
    async with EventLog.open(url, data=data, durability=durability) as log:
        page.introduction(console)
        for mode in (Mode.PER_SERVICE_CALL, Mode.PER_RUN):
            stories.append(await play(log, where, mode, f"{name}-{mode}"))
            page.story(console, stories[-1])
    page.comparison(console, stories)
    return stories
