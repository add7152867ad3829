"""The examples that start processes or show a whole application run as they are, and print what they show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

DURABLE_JOBS = """\
The agent, and three fresh processes that do it all again:
  admitted 100, duplicates   0, found shipped 100   100 admissions N ms   100 reads N ms
  admitted   0, duplicates 100, found shipped 100   100 admissions N ms   100 reads N ms
  admitted   0, duplicates 100, found shipped 100   100 admissions N ms   100 reads N ms
  admitted   0, duplicates 100, found shipped 100   100 admissions N ms   100 reads N ms
The transcript says 4 times: I have shipped 100 orders.
The orders' own logs hold 100 shipments of 100 orders.
"""
CRASH_AND_RESUME = """\
Killed after the result was recorded
  the tool ran: charged
  the agent died of signal 9
  taken over: 0 call without a result
  answer: Your card was charged.
  charges of this run: 1
Killed before the result was recorded
  the tool ran: charged
  the agent died of signal 9
  taken over: 1 call without a result
  the tool ran: was charged before
  answer: Your card was charged.
  charges of this run: 1
"""
THREE_LAYERS = """\
chat-2 of ada, helpdesk, small-1
  user: question 2
  assistant: You asked: question 2
  user: and then?
  assistant: You asked: and then?
  page: chat-2, chat-5
  page: chat-4, chat-3
  page: chat-1
chat-3 deleted: True
nothing of it can be loaded
  page: chat-2, chat-5
  page: chat-4, chat-1
bob's chats: []
"""
SHOWN = {
    "durable_jobs.py": DURABLE_JOBS,
    "crash_and_resume.py": CRASH_AND_RESUME,
    "three_layers.py": THREE_LAYERS,
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_example_prints_what_it_shows_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / name)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.sub(r" +\d+\.\d ms", " N ms", done.stdout) == SHOWN[name]
    assert list(tmp_path.iterdir()) == []
