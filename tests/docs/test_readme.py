"""What the README shows is run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_the_agent_prints_its_history(server: str) -> None:
    [code] = blocks("python")
    code = code.replace("anyio.run(main)", f"anyio.run(main, {server!r})").replace("support-42", uuid4().hex)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "['user', 'assistant', 'tool', 'assistant']\n"


def test_the_first_commands_work_one_after_the_other(server: str) -> None:
    commands = [line.split("#")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    environment = {**os.environ, "EVENTLOG_URL": server, "EVENTLOG_NAMESPACE": uuid4().hex[:12]}
    shown = {}
    for command in commands:
        if command.startswith("eventlog") and "hello" in command and "follow" not in command:
            done = subprocess.run(
                command.replace("eventlog", f"{sys.executable} -m gateway.command", 1),
                shell=True,
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            shown[command.split()[1]] = done.stdout
    assert list(shown) == ["append", "log", "history", "explain"]
    assert "message-added" in shown["log"]
    assert "Good morning" in shown["history"]


def test_every_file_the_readme_names_is_there() -> None:
    for name in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / name).exists(), name
