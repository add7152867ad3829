"""A disk that is full, and a directory whose server's program is replaced by another."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog import EventLog, ServerUnfit, user
from eventlog.server.binary import find
from eventlog.server.embedded import EmbeddedServer
from tests.server.conftest import ended

pytestmark = pytest.mark.anyio


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MB."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)], check=False)
    if mounted.returncode != 0:
        pytest.skip("this user may not mount a small file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


async def test_a_full_disk_is_an_error_that_names_it_and_ends_with_it(small: Path, executable: str) -> None:
    ballast = small / "ballast"
    ballast.write_bytes(bytes(2_000_000))
    data = small / "data"
    acknowledged = 0
    async with (
        await EmbeddedServer.open(data, executable=executable) as server,
        EventLog.open(server.url, deadline=5) as log,
    ):
        chat = log.tenant("t").conversation("c")
        refused = ""
        while not refused:
            try:
                await chat.add(user("x" * 100_000))
                acknowledged += 1
            except ServerUnfit as error:
                refused = str(error)
        assert "cannot write to its disk and took nothing" in refused
        assert "make room" in refused
        ballast.unlink()
        while True:  # the server looks again once a second
            try:
                await chat.add(user("there is room again"))
            except ServerUnfit:
                continue
            break
        assert (await chat.head()).last.version == acknowledged + 1
    await ended(data)
    async with (
        await EmbeddedServer.open(data, executable=executable) as server,
        EventLog.open(server.url) as log,
    ):
        texts = [event async for event in log.tenant("t").conversation("c").read()]
        assert len(texts) == acknowledged + 1
    await ended(data)


async def test_another_program_goes_on_with_the_directory(data: Path) -> None:
    """From the oldest server that is supported to the one that is shipped."""
    former = shutil.which("redis-server")
    if former is None:
        pytest.skip("no redis-server on this machine")
    shipped = str(find().path)
    assert os.path.realpath(former) != os.path.realpath(shipped)
    for number, executable in enumerate((former, shipped), start=1):
        async with (
            await EmbeddedServer.open(data, executable=executable) as server,
            EventLog.open(server.url) as log,
        ):
            chat = log.tenant("t").conversation("c")
            await chat.add(user(f"by program {number}"))
            assert (await chat.head()).last.version == number
            assert len([event async for event in chat.read()]) == number
        await ended(data)
