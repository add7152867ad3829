"""What docs/adapters.md shows is run, or at least builds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from mcp.server.lowlevel.server import Server
from starlette.applications import Starlette

from eventlog import EventLog

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adapters.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_first_minute_prints_what_it_says(server: str) -> None:
    code = EXAMPLES[0].replace("asyncio.run(main())", f"asyncio.run(main({server!r}))")
    code = code.replace('"blue"', repr(uuid4().hex))
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "You said: Good morning\n4\n"), done.stderr


@pytest.mark.anyio
async def test_the_mcp_application_is_built(log: EventLog) -> None:
    scope: dict[str, object] = {}
    exec(EXAMPLES[2], scope)
    application = scope["application"]
    assert callable(application)
    assert isinstance(application(Server("x"), log), Starlette)


def test_no_framework_is_imported_unless_it_is_asked_for() -> None:
    code = (
        "import sys, eventlog, projections, gateway.adapters, gateway.command\n"
        "there = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(there & {'agents', 'openai', 'mcp', 'agent_framework'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
