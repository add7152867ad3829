"""The checker shares no code with the product, and the product knows nothing of it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHAOS = sorted((ROOT / "chaos").rglob("*.py"))
CHECKER = [path for path in CHAOS if path.parent.name == "checker"]
PRODUCT = [path for package in ("eventlog", "projections", "gateway") for path in (ROOT / package).rglob("*.py")]


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("path", CHECKER, ids=lambda path: path.name)
def test_the_checker_imports_itself_and_the_standard_library_alone(path: Path) -> None:
    for name in imported(path):
        assert name.startswith("chaos.checker") or name.partition(".")[0] in sys.stdlib_module_names, name


def test_what_reads_the_keys_imports_redis_and_the_standard_library_alone() -> None:
    for name in imported(ROOT / "chaos" / "raw.py"):
        assert name == "redis" or name.partition(".")[0] in sys.stdlib_module_names, name


def test_the_product_does_not_know_it() -> None:
    for path in PRODUCT:
        assert not [name for name in imported(path) if name.partition(".")[0] == "chaos"], path


@pytest.mark.parametrize("path", CHAOS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_are_small_and_say_what_they_are_for(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400
    assert (ast.get_docstring(ast.parse(path.read_text())) or "").strip()
