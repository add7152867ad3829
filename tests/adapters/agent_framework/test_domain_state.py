"""The example that keeps conversation state and application state apart shows what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

SHOWN = """\
Your order is packed (version 1).
Your order is shipped (version 2).
history of the fresh session: 0 messages
Your order is shipped (version 2).
messages received by the model: 1, 3, 5, 7, 1, 3
versions read by the tool: 1, 2, 2
an order of another tenant: tenant 'blue' has no order 'R-9'
the record itself: (2, 'shipped')
"""


def test_the_example_prints_what_it_shows_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "domain_state.py")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == SHOWN
    assert list(tmp_path.iterdir()) == []
