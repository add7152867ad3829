"""What stands behind a damage in an append-only file."""

from __future__ import annotations

import pytest

from eventlog.server.aof import last_incremental, readable_up_to, whole_command_behind


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


SET = command(b"SET", b"key", b"value")
MULTI, EXEC = command(b"MULTI"), command(b"EXEC")


def test_the_last_incremental_file_is_the_one_with_the_highest_number() -> None:
    manifest = (
        "file appendonly.aof.9.base.rdb seq 9 type b\n"
        "file appendonly.aof.10.incr.aof seq 10 type i\n"
        "file appendonly.aof.9.incr.aof seq 9 type i startoffset 5\n"
        "file appendonly.aof.11.incr.aof seq 11 type h\n"
    )
    assert last_incremental(manifest) == "appendonly.aof.10.incr.aof"


@pytest.mark.parametrize("manifest", ["", "\0\0\0", "file a.base.rdb seq 1 type b\n", "file\n"])
def test_a_manifest_may_name_no_incremental_file(manifest: str) -> None:
    assert last_incremental(manifest) is None


def test_the_tool_says_how_far_it_could_read() -> None:
    assert readable_up_to(b"AOF analyzed: filename=f, size=9, ok_up_to=5, ok_up_to_line=2, diff=4") == 5
    assert readable_up_to(b"AOF f is empty") is None


@pytest.mark.parametrize("end", range(1, len(SET)))
def test_every_beginning_of_a_command_is_a_torn_tail(end: int) -> None:
    for nul in (0, 1, 512):
        assert whole_command_behind(SET + SET[:end] + bytes(nul), len(SET)) is None


@pytest.mark.parametrize("end", range(1, len(MULTI + SET + SET + EXEC)))
def test_every_beginning_of_a_transaction_is_a_torn_tail(end: int) -> None:
    for nul in (0, 1, 512):
        assert whole_command_behind(SET + (MULTI + SET + SET + EXEC)[:end] + bytes(nul), len(SET)) is None


@pytest.mark.parametrize("at", range(len(SET)))
def test_a_damaged_byte_before_a_whole_command_is_no_torn_tail(at: int) -> None:
    damaged = SET[:at] + b"\xff" + SET[at + 1 :]
    found = whole_command_behind(damaged + SET, 0)
    assert found is not None


def test_a_length_that_swallows_the_rest_is_no_torn_tail() -> None:
    assert whole_command_behind(SET.replace(b"$5", b"$99999") + SET, 0) == len(SET) + 4


def test_a_finished_transaction_behind_an_unfinished_one_is_no_torn_tail() -> None:
    assert whole_command_behind(MULTI + SET + MULTI + SET + EXEC, 0) == 0
