"""What docs/groups.md shows is run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from gateway.command.groups import groups_app, parked_app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "groups.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("number", "shown"), [(0, "hello 1 message-added\n"), (1, "0\n")])
def test_the_examples_print_what_they_say(server: str, number: int, shown: str) -> None:
    code = EXAMPLES[number].replace("anyio.run(main)", f"anyio.run(main, {server!r})")
    code = code.replace("EventLog.open(url)", f'EventLog.open(url, namespace="t{uuid4().hex[:12]}")')
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == shown


def test_every_command_is_on_the_page_and_every_command_on_the_page_is_there() -> None:
    there = {f"groups {one.name or one.callback.__name__}" for one in groups_app.registered_commands if one.callback}
    there |= {f"parked {one.name or one.callback.__name__}" for one in parked_app.registered_commands if one.callback}
    shown = set(re.findall(r"^eventlog ((?:groups|parked) \w+)", PAGE, re.MULTILINE))
    assert shown == there
