"""The server lives as long as somebody uses it, and no longer."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from eventlog.errors import ServerUnavailable
from eventlog.server import EmbeddedServer, embedded
from eventlog.server.lock import Lock, is_free
from tests.server.conftest import User, alive, connected, ended, keeper_of, until

pytestmark = pytest.mark.anyio


async def test_what_was_written_is_there_after_close_and_open(data: Path, executable: str) -> None:
    async with await EmbeddedServer.open(data, executable=executable) as server:
        async with connected(server.url) as client:
            await client.set("kept", "yes")
        first = server.pid
    assert not alive(first)
    async with (
        await EmbeddedServer.open(data, executable=executable) as server,
        connected(server.url) as client,
    ):
        assert server.pid != first
        assert server.notes == ()
        assert await client.get("kept") == "yes"


async def test_close_may_be_called_twice(data: Path, executable: str) -> None:
    server = await EmbeddedServer.open(data, executable=executable)
    await server.close()
    await server.close()


async def test_two_processes_share_the_server_of_one_directory(
    data: Path, executable: str, user: Callable[[], User]
) -> None:
    first, second = await user().ready(), await user().ready()
    assert (first.pid, first.url) == (second.pid, second.url)
    first.stop()
    assert alive(second.pid)
    second.stop()
    await until(lambda: not alive(second.pid), "the server ends with its last user")


async def test_two_holds_in_one_process_end_one_by_one(data: Path, executable: str) -> None:
    first = await EmbeddedServer.open(data, executable=executable)
    second = await EmbeddedServer.open(data, executable=executable)
    assert first.pid == second.pid
    await first.close()
    async with connected(second.url) as client:
        assert await client.ping()
    await second.close()
    assert not alive(second.pid)


async def test_killing_the_last_user_ends_the_server(data: Path, executable: str, user: Callable[[], User]) -> None:
    only = await user().ready()
    only.kill()
    await until(lambda: not alive(only.pid), "the server ends")


async def test_killing_one_of_two_users_leaves_the_other_its_server(
    data: Path, executable: str, user: Callable[[], User]
) -> None:
    starter = await user().ready()
    server = await EmbeddedServer.open(data, executable=executable)
    starter.kill()
    async with connected(server.url) as client:
        await client.set("kept", "yes")
        # Should the keeper have taken the death of one for the end of all, it holds this lock by and by.
        users = Lock(data / "users")
        assert users.share()
        users.close()
        assert await client.get("kept") == "yes"
    assert alive(server.pid)
    await server.close()


async def test_interrupting_the_starter_from_its_terminal_does_not_reach_the_server(
    data: Path, executable: str, user: Callable[[], User]
) -> None:
    starter = await user().ready()
    server = await EmbeddedServer.open(data, executable=executable)
    starter.interrupt()
    async with connected(server.url) as client:
        assert (await client.info("server"))["process_id"] == server.pid
    await server.close()


async def test_four_starters_at_once_make_one_server(data: Path, executable: str, user: Callable[[], User]) -> None:
    starters = [user() for _ in range(4)]
    for each in starters:
        await each.ready()
    assert len({each.pid for each in starters}) == 1
    assert len({each.url for each in starters}) == 1
    for each in starters:
        each.kill()
    await until(lambda: not alive(starters[0].pid), "the server ends")


async def test_users_who_come_while_the_server_leaves_get_a_server_that_stays(data: Path, executable: str) -> None:
    async def come_and_go(name: str) -> None:
        for turn in range(8):
            server = await EmbeddedServer.open(data, executable=executable)
            async with connected(server.url) as client:
                assert await client.incr(name) == turn + 1
            await server.close()

    async with anyio.create_task_group() as group:
        for name in ("a", "b", "c"):
            group.start_soon(come_and_go, name)


async def test_after_a_crash_the_next_server_has_the_data_and_the_url(data: Path, executable: str) -> None:
    before = await EmbeddedServer.open(data, executable=executable, fsync="always")
    async with connected(before.url) as client:
        await client.set("kept", "yes")
    os.kill(before.pid, signal.SIGKILL)
    after = await EmbeddedServer.open(data, executable=executable)
    assert after.pid != before.pid
    assert after.url == before.url
    async with connected(before.url) as client:
        assert await client.get("kept") == "yes"
    await before.close()
    await after.close()


async def test_a_server_whose_keeper_is_killed_ends_too_and_the_next_one_has_its_data(
    data: Path, executable: str
) -> None:
    if sys.platform != "linux":
        pytest.skip("this system does not tell a process that its parent died")
    before = await EmbeddedServer.open(data, executable=executable)
    async with connected(before.url) as client:
        await client.set("kept", "yes")
    os.kill(keeper_of(before.pid), signal.SIGKILL)
    await ended(data)
    assert not alive(before.pid)
    after = await EmbeddedServer.open(data, executable=executable)
    async with connected(after.url) as client:
        assert await client.get("kept") == "yes"
    await before.close()
    await after.close()


async def test_who_opens_just_after_the_keeper_was_killed_gets_a_server_that_stays(data: Path, executable: str) -> None:
    before = await EmbeddedServer.open(data, executable=executable)
    os.kill(keeper_of(before.pid), signal.SIGKILL)
    await until(lambda: is_free(data / "keeper"), "the keeper ends")  # until then it is there, for all who look
    after = await EmbeddedServer.open(data, executable=executable)
    await until(lambda: not alive(before.pid), "the server ends with its keeper")
    async with connected(after.url) as client:
        assert await client.ping()
    await before.close()
    await after.close()


async def test_where_a_server_outlives_its_keeper_the_next_user_starts_it_anew(
    data: Path, executable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_TIED", False)
    before = await EmbeddedServer.open(data, executable=executable)
    keeper = keeper_of(before.pid)
    os.kill(keeper, signal.SIGKILL)
    await until(lambda: not alive(keeper), "the keeper dies")
    async with connected(before.url) as client:
        await client.set("kept", "yes")
        after = await EmbeddedServer.open(data, executable=executable)
        assert after.pid != before.pid
        assert after.url == before.url
        assert await client.get("kept") == "yes"
    await before.close()
    assert alive(after.pid)
    await after.close()
    assert not alive(after.pid)


async def test_nothing_is_left_of_a_server_that_ended_but_its_data(data: Path, executable: str) -> None:
    async with await EmbeddedServer.open(data, executable=executable) as server:
        socket = Path(server.url.removeprefix("unix://"))
        assert socket.is_socket()
        assert socket.parent.stat().st_mode & 0o777 == 0o700
        assert data.stat().st_mode & 0o777 == 0o700
    assert not socket.parent.exists()
    assert not (data / "server.json").exists()


async def test_a_copied_directory_does_not_take_over_the_socket_of_the_original(
    data: Path, tmp_path: Path, executable: str
) -> None:
    async with await EmbeddedServer.open(data, executable=executable) as original:
        copy = tmp_path / "copy"
        copy.mkdir()
        (copy / "server.json").write_text((data / "server.json").read_text())
        async with await EmbeddedServer.open(copy, executable=executable) as other:
            assert other.pid != original.pid
            assert other.url != original.url
        async with connected(original.url) as client:
            assert await client.ping()


async def test_close_is_well_where_the_directory_was_deleted(data: Path, executable: str) -> None:
    server = await EmbeddedServer.open(data, executable=executable)
    shutil.rmtree(data)
    await server.close()
    await until(lambda: not alive(server.pid), "the server ends")


async def test_a_record_that_cannot_be_read_is_written_anew(data: Path, executable: str) -> None:
    data.mkdir()
    (data / "server.json").write_text('{"socket": "/nowh')
    async with (
        await EmbeddedServer.open(data, executable=executable) as server,
        connected(server.url) as client,
    ):
        assert await client.ping()


async def test_waiting_for_another_starter_has_an_end(data: Path, executable: str) -> None:
    data.mkdir()
    other = Lock(data / "start")
    assert other.take()
    with pytest.raises(ServerUnavailable, match=r"another process is starting.*, for 0.1 s.*patience="):
        await EmbeddedServer.open(data, executable=executable, patience=0.1)
    other.close()
    async with await EmbeddedServer.open(data, executable=executable) as server:
        assert server.pid


async def test_who_gives_up_waiting_leaves_no_hold_behind(data: Path, executable: str) -> None:
    with anyio.move_on_after(0.02):
        await (await EmbeddedServer.open(data, executable=executable)).close()
    await ended(data)
    alone = Lock(data / "users")
    await until(alone.take, "nobody holds the directory")
    alone.close()
