"""What the page about projections shows is run, and so is the projector of compose.yaml."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from gateway.command.projections import projections_app
from projections.views.built_in import BUILT_IN
from tests.gateway.cli import Cli

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "projections.md").read_text()
COMPOSE = (ROOT / "compose.yaml").read_text()
PROJECTION, PROGRAM = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def cli(server: str) -> Cli:
    return Cli(server, f"t{uuid4().hex[:12]}")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory that holds the page's projection as it says."""
    (tmp_path / "tools.py").write_text(PROJECTION)
    return tmp_path


def run(home: Path, cli: Cli, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **cli.env, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=home, env=environment, capture_output=True, text=True, check=False
    )


def test_the_projection_of_the_page_is_kept_and_read_as_it_shows(cli: Cli, home: Path) -> None:
    code = PROGRAM.replace("anyio.run(main)", f"anyio.run(main, {cli.url!r})")
    code = code.replace("EventLog.open(url)", f"EventLog.open(url, namespace={cli.namespace!r})")
    done = run(home, cli, "-c", code)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in (
        "{'weather': 1, 'trains': 1}\n(b'{\"tool\":\"trains\"}',) 0\n",
        "{'trains': 1, 'weather': 1}\n(b'{\"tool\":\"trains\"}',) 0\n",
    )
    for verb in (("run", "--once"), ("verify", "tools"), ("rebuild", "tools")):
        done = run(home, cli, "-m", "gateway.command", "projections", *verb, "--module", "tools:TOOLS")
        assert done.returncode == 0, done.stderr
    assert "tools\t2\t1\tlive\tall\t0\t0\t0" in cli.out("projections", "list")


def test_the_code_of_the_page_is_typed(home: Path) -> None:
    (home / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--config-file=",
            "--cache-dir",
            str(ROOT / ".mypy_cache" / "docs"),
            "--follow-imports=silent",
            "tools.py",
            "program.py",
        ],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_projection_of_the_page_is_short() -> None:
    assert len(PROJECTION.strip().splitlines()) <= 35


def test_every_built_in_projection_is_on_the_page() -> None:
    assert re.findall(r"^\| `([a-z_]+)` \|", PAGE, re.MULTILINE) == [one.name for one in BUILT_IN]


def test_every_command_is_on_the_page_and_every_command_on_the_page_is_there() -> None:
    there = {one.name or one.callback.__name__ for one in projections_app.registered_commands if one.callback}
    assert set(re.findall(r"^eventlog projections (\w+)", PAGE, re.MULTILINE)) == there


def test_every_option_on_the_page_is_one_of_a_command(cli: Cli) -> None:
    helps = "".join(cli.out("projections", one, "--help") for one in ("run", "verify", "drop"))
    options = set(re.findall(r"--[a-z][a-z-]+", PAGE))
    assert options
    assert options <= set(re.findall(r"--[a-z][a-z-]+", helps))


def test_the_commands_of_the_page_work_one_after_the_other(cli: Cli, home: Path) -> None:
    cli.out("append", "-c", "c", "--message", "one")
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    for line in "".join(blocks).splitlines():
        _, *words = line.split("#")[0].split()
        if words[:2] == ["projections", "run"]:
            words.append("--once")
        if words[:2] == ["projections", "drop"]:
            # The rollback before it made generation 1 the live one.
            cli.out("projections", "rollback", "history")
            words.append("--yes")
        done = run(home, cli, "-m", "gateway.command", *words)
        assert done.returncode == 0, f"{line}: {done.stderr}"


def test_the_projector_of_compose_keeps_views(cli: Cli, home: Path) -> None:
    [listed] = re.findall(r"^    command: \[(eventlog.*)\]$", COMPOSE, re.MULTILINE)
    _, *words = [word.strip().strip('"') for word in listed.split(",")]
    cli.out("append", "-c", "c", "--message", "one")
    done = run(home, cli, "-m", "gateway.command", *words, "--once")
    assert done.returncode == 0, done.stderr
    assert cli.out("conversations", "default").startswith("c\t")
