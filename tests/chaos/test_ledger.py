"""What was written down is there after a kill, and half a line is not."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from chaos.ledger import Ledger, read

ROOT = Path(__file__).parents[2]
WRITER = """
import os, signal, sys
from pathlib import Path
from chaos.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]), "agent-3", 0)
for number in range(1000):
    ledger.write("acked", n=number)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_every_line_that_was_put_down_survives_a_kill(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", WRITER, str(tmp_path)], cwd=ROOT, check=False)
    assert ended.returncode == -signal.SIGKILL
    (life,) = read(tmp_path)
    assert (life.name, life.kind, life.life) == ("agent-3", "agent", 0)
    assert [line["n"] for line in life.lines] == list(range(1000))


def test_a_line_without_its_end_was_never_put_down(tmp_path: Path) -> None:
    Ledger(tmp_path, "agent-0", 0).write("acked", n=1)
    with (tmp_path / "agent-0.0.jsonl").open("ab") as file:
        file.write(b'{"do": "ack')
    (life,) = read(tmp_path)
    assert life.lines == [{"do": "acked", "n": 1}]


def test_lives_come_in_the_order_in_which_they_were_lived(tmp_path: Path) -> None:
    for life in (10, 2, 0):
        Ledger(tmp_path, "agent-0", life).write("left")
    Ledger(tmp_path, "follower-0", 0).write("left")
    assert [(one.name, one.life) for one in read(tmp_path, "agent-0")] == [("agent-0", n) for n in (0, 2, 10)]
    assert len(read(tmp_path)) == 4
