"""How the embedded server is set up, and where it may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.server import EmbeddedServer, check
from tests.server.conftest import connected

pytestmark = pytest.mark.anyio


async def test_it_is_durable_private_and_evicts_nothing(data: Path, executable: str) -> None:
    wanted = {
        "port": "0",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
        "stream-node-max-bytes": "16384",
    }
    async with (
        await EmbeddedServer.open(data, executable=executable) as server,
        connected(server.url) as client,
    ):
        assert await client.config_get(*wanted) == wanted
        assert (await check(client)).warnings == ()


async def test_one_user_who_wants_every_write_on_disk_gets_it_for_all(data: Path, executable: str) -> None:
    async with (
        await EmbeddedServer.open(data, executable=executable) as server,
        connected(server.url) as client,
        await EmbeddedServer.open(data, fsync="always"),
    ):
        assert (await check(client)).appendfsync == "always"


async def test_it_can_be_started_to_put_every_write_on_disk(data: Path, executable: str) -> None:
    async with (
        await EmbeddedServer.open(data, executable=executable, fsync="always") as server,
        connected(server.url) as client,
    ):
        assert (await check(client)).appendfsync == "always"


@pytest.mark.parametrize("name", ["x" * 120, "with space", "%41 # ?", "quote\" '", "é\n🙂", "--port"])
async def test_any_path_will_do(tmp_path: Path, executable: str, name: str) -> None:
    data = tmp_path / name / name
    async with (
        await EmbeddedServer.open(data, executable=executable) as server,
        connected(server.url) as client,
    ):
        assert server.data == data
        assert await client.set("kept", "yes")
    assert any((data / "appendonlydir").iterdir())


async def test_the_directory_of_sockets_may_have_an_odd_name(
    data: Path, tmp_path: Path, executable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "%41 ?#é"
    odd.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(odd))
    async with (
        await EmbeddedServer.open(data, executable=executable) as server,
        connected(server.url) as client,
    ):
        assert any(odd.iterdir())
        assert await client.ping()


async def test_a_directory_too_long_for_sockets_is_passed_over(
    data: Path, tmp_path: Path, executable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    async with (
        await EmbeddedServer.open(data, executable=executable) as server,
        connected(server.url) as client,
    ):
        assert not any(long.iterdir())
        assert await client.ping()


async def test_without_a_directory_the_users_state_directory_is_taken(
    tmp_path: Path, executable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with await EmbeddedServer.open(executable=executable) as server:
        assert server.data == tmp_path / "agent-eventlog"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    async with await EmbeddedServer.open(executable=executable) as server:
        assert server.data == tmp_path / ".local" / "state" / "agent-eventlog"
