from __future__ import annotations

from pathlib import Path

import pytest

import benchmarks.__main__ as command
from benchmarks.bench import FULL, QUICK, Size
from tests.benchmarks.test_table import ABOUT, ROWS


def test_the_modules_are_those_of_the_folder_that_measure() -> None:
    folder = Path(command.__file__).parent
    measuring = {
        path.stem for path in folder.glob("*.py") if "async def measure(bench: Bench) -> list[" in path.read_text()
    }
    assert measuring == set(command.MODULES)


def test_only_a_whole_run_of_seven_rounds_is_the_latest() -> None:
    assert command.kept_as(command.MODULES, FULL) == "latest"
    assert command.kept_as(command.MODULES, Size(9)) == "latest"
    assert command.kept_as(command.MODULES, Size(6)) == "partial"
    assert command.kept_as(("append",), FULL) == "partial"
    assert command.kept_as(command.MODULES, QUICK) == "quick"


def test_what_is_kept_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results")
    command.keep("latest", ROWS, ABOUT)
    assert command.kept("latest") == (ROWS, ABOUT)


def test_a_module_that_there_is_not_is_named_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.options(["append", "apend"])
    assert "apend: no such module: choose of append, history, follow" in capsys.readouterr().err


def test_a_run_has_at_least_one_round(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.options(["--rounds", "0"])
    assert "--rounds 0: at least 1" in capsys.readouterr().err


def test_a_size_is_a_share_of_the_whole_within_its_bounds() -> None:
    assert FULL.of(300) == 300
    assert QUICK.of(1_000) == 20
    assert QUICK.of(10, 5) == 5
    assert QUICK.of(4, 20) == 4
