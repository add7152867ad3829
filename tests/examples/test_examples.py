"""Each example runs as it is, on the embedded server, and prints what it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples import test_applications

ROOT = Path(__file__).parents[2]

FIRST_MINUTE = """\
The log:
  1 run-started
  2 message-added
  3 service-call-started
  4 message-added
  5 service-call-completed
  6 run-committed
The history at version 6:
  user: Good morning
  assistant: You said: Good morning
"""
AGENT_LOOP = """\
per-service-call
  before the answer
    in history:     message 2, call 4, call 5
    not in history: result 7 (trailing-result), result 8 (trailing-result)
  after the run
    in history:     message 2, call 4, call 5, result 7, result 8, message 10
    not in history: nothing
  results in the order they came: calm 4 C
  answer: In Oslo it is 4 C and calm.
per-run
  before the answer
    in history:     nothing
    not in history: message 2 (uncommitted-run), call 4 (uncommitted-run), call 5 (uncommitted-run), \
result 7 (uncommitted-run), result 8 (uncommitted-run)
  after the run
    in history:     message 2, call 4, call 5, result 7, result 8, message 10
    not in history: nothing
  results in the order they came: calm 4 C
  answer: In Oslo it is 4 C and calm.
"""
PARALLEL_WRITERS = """\
4 tried to open the conversation, 1 did
5 counted at once: number 1, number 2, number 3, number 4, number 5
first: duplicate=False; again: duplicate=True, same=True
equal messages: 3
the same operation id with other content is refused
a second run has to wait until the first has ended
"""
EDITS = """\
Two turns: the log has 12 events, the history 4 messages
  user: A name for a boat?
  assistant: Petrel.
  user: Another?
  assistant: Boaty.

Rewound to after the first turn: the log has 13 events, the history 2 messages
  user: A name for a boat?
  assistant: Petrel.
  (rewound: Another?)
  (rewound: Boaty.)

Compacted to a summary: the log has 20 events, the history 1 messages
  user: We looked for a boat's name: Storm Petrel.
  (compacted: A name for a boat?)
  (compacted: Petrel.)
  (rewound: Another?)
  (rewound: Boaty.)
  (compacted: A longer one?)
  (compacted: Storm Petrel.)

Rewound to before the compaction: the log has 21 events, the history 4 messages
  user: A name for a boat?
  assistant: Petrel.
  user: A longer one?
  assistant: Storm Petrel.
  (rewound: Another?)
  (rewound: Boaty.)
  (rewound: We looked for a boat's name: Storm Petrel.)

Any version can be read as it was:
  at version 6: 2 messages
  at version 19: 4 messages
"""
SHOWN = {
    "first_minute.py": FIRST_MINUTE,
    "agent_loop.py": AGENT_LOOP,
    "parallel_writers.py": PARALLEL_WRITERS,
    "edits.py": EDITS,
}


def test_every_example_is_tested() -> None:
    elsewhere = {*test_applications.SHOWN, "domain_state.py"}
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == {*SHOWN, *elsewhere}


@pytest.mark.parametrize("name", SHOWN)
def test_the_example_prints_what_it_shows_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / name)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    # How often writers met is chance.
    assert "".join(line for line in done.stdout.splitlines(True) if not line.startswith("conflicts ")) == SHOWN[name]
    assert list(tmp_path.iterdir()) == []
