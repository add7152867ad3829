"""A torn append-only file is mended at start, and the user is told; a damaged one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.errors import ServerUnfit
from eventlog.server import EmbeddedServer
from tests.server.conftest import connected

pytestmark = pytest.mark.anyio

VALUE = "v" * 100


async def write(data: Path, executable: str) -> tuple[Path, bytes]:
    """A file of 20 single commands and one transaction of 10; and its bytes."""
    async with (
        await EmbeddedServer.open(data, executable=executable) as server,
        connected(server.url) as client,
    ):
        for number in range(20):
            await client.set(f"single:{number}", VALUE)
        async with client.pipeline(transaction=True) as pipe:
            for number in range(10):
                pipe.set(f"together:{number}", VALUE)
            await pipe.execute()
    (file,) = (data / "appendonlydir").glob("*.incr.aof")
    return file, file.read_bytes()


async def keys(data: Path, executable: str) -> tuple[int, tuple[str, ...]]:
    """How many keys there are after a start, and its notes. Writes one more, and looks whether that stays."""
    async with (
        await EmbeddedServer.open(data, executable=executable) as server,
        connected(server.url) as client,
    ):
        count, notes = await client.dbsize(), server.notes
        await client.set("written after", "yes")
    async with (
        await EmbeddedServer.open(data, executable=executable) as server,
        connected(server.url) as client,
    ):
        assert await client.get("written after") == "yes"
        assert server.notes == ()
    return count, notes


async def test_nul_bytes_at_the_end_are_cut_and_told(data: Path, executable: str) -> None:
    file, whole = await write(data, executable)
    file.write_bytes(whole + bytes(512))
    count, notes = await keys(data, executable)
    assert count == 30
    assert len(notes) == 1
    assert notes[0].startswith(f"cut 512 bytes of an unfinished write off the end of {file}")
    (copy,) = (data / "torn").iterdir()
    assert str(copy) in notes[0]
    assert copy.read_bytes() == whole + bytes(512)


async def test_every_user_of_the_mended_server_is_told(data: Path, executable: str) -> None:
    file, whole = await write(data, executable)
    file.write_bytes(whole + bytes(512))
    async with (
        await EmbeddedServer.open(data, executable=executable) as first,
        await EmbeddedServer.open(data, executable=executable) as second,
    ):
        assert first.notes
        assert second.notes == first.notes


@pytest.mark.parametrize("lost", [1, 20, 60, 300, 1000])
@pytest.mark.parametrize("nul", [0, 60, 4096])
async def test_a_half_written_transaction_is_cut_as_a_whole(data: Path, executable: str, lost: int, nul: int) -> None:
    file, whole = await write(data, executable)
    file.write_bytes(whole[:-lost] + bytes(nul))
    begin = whole.rindex(b"*1\r\n$5\r\nMULTI")
    count, notes = await keys(data, executable)
    assert count == 20
    assert notes[0].startswith(f"cut {len(whole) - lost + nul - begin} bytes")


async def test_a_transaction_without_its_end_is_cut_as_a_whole(data: Path, executable: str) -> None:
    file, whole = await write(data, executable)
    file.write_bytes(whole[: whole.rindex(b"*1\r\n$4\r\nEXEC")])
    count, notes = await keys(data, executable)
    assert count == 20
    assert len(notes) == 1


async def test_a_half_written_command_is_cut(data: Path, executable: str) -> None:
    file, whole = await write(data, executable)
    file.write_bytes(whole[: whole.rindex(b"*1\r\n$5\r\nMULTI") - 7])
    count, notes = await keys(data, executable)
    assert count == 19
    assert len(notes) == 1


async def test_garbage_in_the_last_write_is_cut(data: Path, executable: str) -> None:
    file, whole = await write(data, executable)
    file.write_bytes(whole + b"\xff\x00*3\r\nSET garbage")
    count, notes = await keys(data, executable)
    assert count == 30
    assert len(notes) == 1


@pytest.mark.parametrize("damage", [bytes(40), b"\xff" * 40, b"*3\r\n$3\r\nSET\r\n$9\r\nsingle:10\r\n$99999\r\n"])
async def test_damage_with_whole_commands_behind_it_is_refused_and_left_as_it_is(
    data: Path, executable: str, damage: bytes
) -> None:
    file, whole = await write(data, executable)
    at = whole.rindex(b"*3", 0, whole.index(b"single:10\r\n"))
    damaged = whole[:at] + damage + whole[at + len(damage) :]
    file.write_bytes(damaged)
    with pytest.raises(ServerUnfit) as refused:
        await EmbeddedServer.open(data, executable=executable)
    assert str(file) in str(refused.value)
    assert f"at byte {at} of {len(whole)}" in str(refused.value)
    assert f"truncate -s {at} " in str(refused.value)
    assert file.read_bytes() == damaged


async def test_a_transaction_inside_an_unfinished_one_is_not_thrown_away(data: Path, executable: str) -> None:
    file, whole = await write(data, executable)
    begin = whole.rindex(b"*1\r\n$5\r\nMULTI")
    file.write_bytes(whole[:begin] + whole[begin : whole.rindex(b"*1\r\n$4\r\nEXEC")] + whole[begin:])
    with pytest.raises(ServerUnfit, match=f"at byte {begin} of"):
        await EmbeddedServer.open(data, executable=executable)


async def test_what_only_the_server_finds_unreadable_is_told_from_its_log(data: Path, executable: str) -> None:
    file, whole = await write(data, executable)
    file.write_bytes(whole.replace(b"$3\r\nSET\r\n$9\r\nsingle:10", b"$3\r\n\0\0\0\r\n$9\r\nsingle:10"))
    with pytest.raises(ServerUnfit, match=r"(?s)restore them from a backup.*server\.log"):
        await EmbeddedServer.open(data, executable=executable)


@pytest.mark.parametrize("pattern", ["*.base.rdb", "*.manifest"])
async def test_a_damaged_file_other_than_the_last_is_told_from_its_log(
    data: Path, executable: str, pattern: str
) -> None:
    await write(data, executable)
    (file,) = (data / "appendonlydir").glob(pattern)
    file.write_bytes(file.read_bytes()[:-9] + bytes(9))
    with pytest.raises(ServerUnfit, match=r"(?s)restore them from a backup.*server\.log"):
        await EmbeddedServer.open(data, executable=executable)


async def test_an_empty_file_is_well(data: Path, executable: str) -> None:
    file, _ = await write(data, executable)
    file.write_bytes(b"")
    assert await keys(data, executable) == (0, ())
