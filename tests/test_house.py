"""How the house is built: who may import whom, what is pure, and what never stands in a file."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("eventlog", "projections", "gateway")
MAY_IMPORT = {"eventlog": {"eventlog"}, "projections": {"projections", "eventlog"}, "gateway": set(PACKAGES)}
IMPURE = {"redis", "anyio", "asyncio", "socket", "hiredis", "subprocess", "threading"}
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
IDS = [str(path.relative_to(ROOT)) for path in FILES]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_pure(path: Path) -> bool:
    """Whether the first paragraph of its docstring ends with the word."""
    paragraph = (ast.get_docstring(tree(path)) or "").split("\n\n")[0]
    lines = paragraph.splitlines() or [""]
    return bool(re.search(r"\bPure( and deterministic)?\.$", paragraph) or re.search(r"\bPure\.$", lines[0]))


def imports(path: Path) -> set[str]:
    """The modules that a file imports when it runs; names imported from a package count when they are modules."""
    found: set[str] = set()
    for node in _running(tree(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides where it leads"
            assert node.module is not None
            submodules = {f"{node.module}.{alias.name}" for alias in node.names} & set(MODULES)
            found.update(submodules or {node.module})
            if len(submodules) < len(node.names):
                found.add(node.module)
    return found


def _running(node: ast.AST) -> list[ast.AST]:
    """All nodes but those that only a type checker reads."""
    nodes = [node]
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            nodes += [inner for other in child.orelse for inner in _running(other)]
        else:
            nodes += _running(child)
    return nodes


MODULES = {module_name(path): path for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_arrows_run_one_way(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    ours = {name for node in ast.walk(tree(path)) for name in _named(node) if name.partition(".")[0] in PACKAGES}
    assert {name.partition(".")[0] for name in ours} <= MAY_IMPORT[package]


def _named(node: ast.AST) -> list[str]:
    """The modules an import statement names, those for a type checker included."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []


@pytest.mark.parametrize("path", [path for path in FILES if is_pure(path)], ids=module_name)
def test_a_pure_file_imports_nothing_that_does_io_and_only_pure_files_of_ours(path: Path) -> None:
    for name in imports(path):
        assert name.partition(".")[0] not in IMPURE, f"{name} does I/O"
        if name in MODULES and name != "eventlog.errors":
            assert is_pure(MODULES[name]), f"{name} is not marked pure"
        if name == "eventlog.errors":
            assert not {inner.partition(".")[0] for inner in imports(MODULES[name])} & {*IMPURE, *PACKAGES}


@pytest.mark.parametrize(
    "name", ["eventlog.events", "eventlog.messages", "eventlog.codec", "eventlog.identity", "eventlog.fold"]
)
def test_the_files_that_hold_the_rules_are_marked_pure(name: str) -> None:
    assert is_pure(MODULES[name])


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert (ast.get_docstring(tree(path)) or "").strip()


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_no_file_is_asking_to_be_two(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


def test_every_package_is_checked() -> None:
    assert {name.partition(".")[0] for name in MODULES} >= {"eventlog", "projections"}
    for name in MODULES:
        assert importlib.util.find_spec(name.partition(".")[0]) is not None


def texts() -> list[Path]:
    """The text files of the house: all but what is ignored."""
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text().splitlines() if line.strip()]
    found = []
    for folder, folders, names in os.walk(ROOT):
        here = Path(folder)
        folders[:] = [name for name in folders if name != ".git" and not _is_ignored(here / name, ignored)]
        found += [here / name for name in names if not _is_ignored(here / name, ignored)]
    return sorted(path for path in found if path.is_file() and b"\0" not in path.read_bytes()[:8000])


def _is_ignored(path: Path, patterns: list[str]) -> bool:
    whole = path.relative_to(ROOT).as_posix()
    return any(fnmatch(path.name, pattern) or fnmatch(whole, pattern) for pattern in patterns)


HOMES = ["/" + name + "/" for name in ("home", "root", "Users", "work", "mnt", "opt/venv")]
TEMPORARY = "/" + "tmp" + "/"
REGISTRIES = [
    ".".join(labels)
    for labels in (
        ("pypi", "org"),
        ("python" + "hosted", "org"),
        ("registry", "npmjs", "org"),
        ("npmjs", "com"),
        ("docker", "io"),
        ("ghcr", "io"),
        ("quay", "io"),
        ("gcr", "io"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
    )
]
FORBIDDEN = re.compile("|".join(f"(?<![A-Za-z0-9._~-]){re.escape(word)}" for word in (*HOMES, TEMPORARY)))
HOSTS = re.compile("|".join(re.escape(host) for host in REGISTRIES), re.IGNORECASE)


def test_no_file_names_a_place_on_one_machine_or_a_registry() -> None:
    found = []
    for path in texts():
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if FORBIDDEN.search(line) or HOSTS.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not found, "\n".join(found)
