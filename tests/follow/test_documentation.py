"""What the page about following shows is run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "following.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def run(code: str, url: str) -> str:
    """What the example prints, on conversations of its own."""
    code = code.replace("anyio.run(main)", f"anyio.run(main, {url!r})").replace('"blue"', repr(uuid4().hex))
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("example", "printed"),
    [
        (0, "1 message-added\n2 message-added\n"),
        (1, "[((2,), 'rewound')] ['one']\n"),
    ],
)
def test_an_example_prints_what_it_says(server: str, example: int, printed: str) -> None:
    assert run(EXAMPLES[example], server) == printed


def test_every_example_is_run() -> None:
    assert len(EXAMPLES) == 2
