"""Two processes write one conversation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from eventlog.store.conformance.suite import LOG
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.store import RedisStore

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]


def write(server: str, namespace: str, operations: int, expected: str) -> list[dict[str, Any]]:
    """Let two writers loose at the same moment, and return what each tells."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.store.redis.writer", server, namespace, name, str(operations), expected],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("left", "right")
    ]
    told = []
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        for writer in writers:
            out, _ = writer.communicate(timeout=60)
            assert writer.returncode == 0
            told.append(json.loads(out))
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    return told


async def test_with_any_each_operation_is_whole_and_no_version_is_missing(
    server: str, store: RedisStore, keys: Keys
) -> None:
    told = write(server, keys.namespace, 500, "any")
    entries = await store.read(LOG, 1, None, 10_000)
    count = 2 * sum(number % 4 + 1 for number in range(500))
    assert [entry.version for entry in entries] == list(range(1, count + 1))
    head = await store.head(LOG)
    assert head.last == LOG.cursor(count, entries[-1].stamp)
    for name, writer in zip(("left", "right"), told, strict=True):
        for number, versions in enumerate(writer["won"]):
            own = [entries[version - 1] for version in versions]
            assert [orjson.loads(entry.document)["id"] for entry in own] == [
                f"{name}-{number}.{index}" for index in range(number % 4 + 1)
            ]
            assert len({entry.stamp for entry in own}) == 1


async def test_with_exact_each_version_has_one_winner(server: str, store: RedisStore, keys: Keys) -> None:
    left, right = write(server, keys.namespace, 250, "exact")
    assert left["conflicts"] + right["conflicts"] > 0, "the writers never met"
    won = [version for writer in (left, right) for versions in writer["won"] for version in versions]
    assert sorted(won) == list(range(1, 501))
    entries = await store.read(LOG, 1, None, 10_000)
    assert [entry.version for entry in entries] == list(range(1, 501))
    for name, writer in (("left", left), ("right", right)):
        for number, (version,) in enumerate(writer["won"]):
            assert orjson.loads(entries[version - 1].document)["id"] == f"{name}-{number}.0"
