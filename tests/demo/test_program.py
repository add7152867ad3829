"""How the demo names the program in the commands that it prints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gateway.demo import program


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A working directory with an ``eventlog`` of its own, and an empty PATH."""
    script = tmp_path / ".venv" / "bin" / "eventlog"
    script.parent.mkdir(parents=True)
    script.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", [str(script), "demo"])
    for name in ("URL", "DURABILITY", "NAMESPACE"):
        monkeypatch.delenv(f"EVENTLOG_{name}", raising=False)
    return script


def test_a_script_that_is_not_on_the_path_is_named_from_the_working_directory_on() -> None:
    assert program.called() == ".venv/bin/eventlog"


def test_a_script_outside_the_working_directory_is_named_whole(
    alone: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "a b"
    other.mkdir()
    monkeypatch.chdir(other)
    assert program.called() == str(alone)


def test_a_script_in_the_working_directory_or_with_a_space_is_named_as_a_shell_takes_it(
    alone: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(alone.parent)
    assert program.called() == "./eventlog"
    spaced = tmp_path / "a b" / "eventlog"
    spaced.parent.mkdir()
    spaced.touch()
    monkeypatch.setattr(sys, "argv", [str(spaced)])
    monkeypatch.chdir(tmp_path)
    assert program.called() == "'a b/eventlog'"


def test_a_script_on_the_path_is_named_by_its_name_unless_another_comes_first(
    alone: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(alone.parent))
    assert program.called() == "eventlog"
    other = tmp_path / "other" / "eventlog"
    other.parent.mkdir()
    other.touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{other.parent}:{alone.parent}")
    assert program.called() == ".venv/bin/eventlog"


def test_a_module_is_run_by_the_same_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["gateway/demo/__main__.py"])
    assert program.called() == f"{sys.executable} -m gateway.command"


def test_the_options_name_the_same_place_and_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    assert program.options(None, None, "everysec") == []
    assert program.options(None, Path("a b"), "always") == ["--data 'a b'", "--durability always"]
    secret = "redis://me:secret@host"
    assert program.options(secret, Path("a"), "everysec") == ["--url redis://me:PASSWORD@host"]
    monkeypatch.setenv("EVENTLOG_URL", secret)
    assert program.options(secret, None, "everysec") == []
    monkeypatch.setenv("EVENTLOG_NAMESPACE", "mine")
    monkeypatch.setenv("EVENTLOG_DURABILITY", "memory")
    assert program.options(None, None, "everysec") == ["--durability everysec", "--namespace eventlog"]
