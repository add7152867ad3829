"""``python -m gateway.demo [DIRECTORY]``: the demo on the embedded server.

Without a directory, its data goes into a temporary one and is gone afterwards.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import anyio
from rich.console import Console

from gateway.demo import demo, page, program, show


async def main(data: str | None) -> None:
    """Run the demo and print it."""
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(width=100)
    if data is not None:
        await demo(None, Path(data), console)
        return
    with tempfile.TemporaryDirectory(prefix="eventlog-demo-") as temporary:
        await show(None, Path(temporary), console)
    page.commands(
        console,
        "Its data was temporary. Keep it next time, and look at it with the command that is printed then",
        [f"{program.called()} demo", f"{program.called()} demo --data ./demo-data"],
    )


anyio.run(main, sys.argv[1] if len(sys.argv) > 1 else None)
