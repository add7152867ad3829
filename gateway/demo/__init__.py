"""The demo: one agent conversation in both modes, with everything that goes wrong, on a real server."""

from __future__ import annotations

import secrets
import shlex
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console

from eventlog import EventLog, Mode
from gateway.demo import page
from gateway.demo.story import TENANT, Story, play

__all__ = ["demo", "show"]


async def demo(url: str | None, data: Path | None, console: Console) -> None:
    """Play the conversation in both modes, print what is in the log and what of it is history, and what to try next.

    It writes two new conversations of the tenant ``demo``. Without ``url`` it runs on the embedded
    server of the directory ``data``. Raises what ``EventLog.open`` raises, and
    ``ChildProcessError`` when the process to be killed ends otherwise.
    """
    stories = await show(url, data, console)
    where = "" if data is None else f" --data {shlex.quote(str(data))}"
    where = where if url is None else f" --url {shlex.quote(_without_password(url))}"
    ids = [f"--tenant {TENANT} --conversation {story.conversation}{where}" for story in stories]
    page.commands(
        console,
        "Try next",
        [
            f"eventlog history {ids[0]}",
            f"eventlog history {ids[1]}",
            f"eventlog history {ids[1]} --view everything",
        ],
    )


async def show(url: str | None, data: Path | None, console: Console) -> list[Story]:
    """The demo without its last lines; returns what was played."""
    page.introduction(console)
    name = f"demo-{secrets.token_hex(3)}"
    stories = []
    async with EventLog.open(url, data=data) as log:
        for mode in (Mode.PER_SERVICE_CALL, Mode.PER_RUN):
            stories.append(await play(log, url, data, mode, f"{name}-{mode}"))
            page.story(console, stories[-1])
    page.comparison(console, stories)
    return stories


def _without_password(url: str) -> str:
    """The URL as it may stand on a screen."""
    password = urlsplit(url).password
    return url if password is None else url.replace(f":{password}@", ":PASSWORD@", 1)
