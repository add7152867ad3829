"""The demo runs to its end on a real server, and what it prints is what the log says."""

from __future__ import annotations

import io
import re
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from eventlog import Conversation, EventLog, Message
from eventlog.server.lock import is_free
from gateway.demo import demo
from projections import history
from tests.demo import expected
from tests.demo.conftest import MODES, ROOT, Ran, processes, run_demo

pytestmark = pytest.mark.anyio


def _plain(messages: tuple[Message, ...]) -> expected.Messages:
    return [(message.role, message.parts) for message in messages]


def _numbers(out: str) -> dict[str, list[int]]:
    rows = re.findall(r"^([a-z]+[ -]?[a-z]*) {2,}(\d+) +(\d+) +(\d+) +(\d+) *$", out, re.MULTILINE)
    return {name.strip(): [int(number) for number in numbers] for name, *numbers in rows}


def test_it_ends_well_and_says_nothing_on_standard_error(ran: Ran) -> None:
    assert (ran.code, ran.err) == (0, "")


async def test_the_log_holds_what_happened(chat: Conversation) -> None:
    assert [event.type async for event in chat.read()] == expected.EVENTS


async def test_the_history_is_what_the_rules_say(chat: Conversation, mode: str) -> None:
    view = await history.load(chat)
    assert _plain(view.messages) == expected.HISTORY[mode]
    assert [(call.version, call.call_id, call.run_open) for call in view.open_calls] == [(26, "call_4", False)]


async def test_the_history_when_the_process_was_killed_is_what_the_rules_say(chat: Conversation, mode: str) -> None:
    view = await history.load(chat, at=20)
    assert _plain(view.messages) == expected.HISTORY_WHEN_KILLED[mode]
    fates = await history.explain(chat, at=20)
    dropped = {fate.version: fate.fate for fate in fates if fate.fate != "in-view"}
    assert dropped == expected.NOT_IN_HISTORY_WHEN_KILLED[mode]


async def test_the_printed_fates_are_those_that_explain_gives(ran: Ran, chat: Conversation, mode: str) -> None:
    rows = ran.rows(mode)
    assert [event for event, _ in rows.values()] == expected.EVENTS
    printed = {version: fate for version, (_, fate) in rows.items() if fate}
    explained = {fate.version: fate.fate for fate in await history.explain(chat)}
    assert printed == {version: fate.replace("in-view", "in history") for version, fate in explained.items()}
    dropped = {version: fate for version, fate in printed.items() if fate != "in history"}
    assert dropped == expected.NOT_IN_HISTORY[mode]


async def test_the_printed_history_holds_each_message_in_order(ran: Ran, mode: str) -> None:
    shown = ran.part(mode).split("The service-equivalent history")[1]
    assert shown.startswith(f": {len(expected.HISTORY[mode])} messages\n")
    roles = re.findall(r"^ (user|assistant|tool) ", shown, re.MULTILINE)
    assert roles == [role for role, _ in expected.HISTORY[mode]]
    texts = [part["content"] for _, parts in expected.HISTORY[mode] for part in parts if part["type"] == "text"]
    places = [shown.index(text) for text in texts]
    assert places == sorted(places)


async def test_the_first_call_after_the_kill_carried_the_result_of_the_call_still_open(
    ran: Ran, chat: Conversation, mode: str
) -> None:
    started = [event async for event in chat.read(types=["service-call-started"])]
    carried = {"per-service-call": [20, 23], "per-run": [23]}[mode]
    assert started[-1].data["sends"] == carried
    said = {"per-service-call": "20 (call_3 <- ", "per-run": "nothing"}[mode]
    told = " ".join(ran.part(mode).split())
    assert f"From earlier turns its first service call carried: {said}" in told
    assert f"The history it sent has {len(expected.HISTORY[mode]) - 1} messages; every call" in told


def test_it_says_what_the_killed_process_had_appended(ran: Ran, mode: str) -> None:
    told = ran.part(mode)
    assert "It saw version 20 appended, and was killed by signal 9." in told
    fates = {
        "per-service-call": "message 16 in history, call 18 in history, result 20 trailing-result.",
        "per-run": "message 16 uncommitted-run, call 18 uncommitted-run, result 20 uncommitted-run.",
    }
    assert f"At that moment: {fates[mode]}" in told


def test_it_names_the_open_call_and_its_recorded_result(ran: Ran, mode: str) -> None:
    said = " ".join(ran.part(mode).split())
    assert "call_4 (book_beds, version 26) is open: its result, version 28, is recorded" in said
    assert "The next run's first call will carry it." in said


def test_the_tool_that_was_faster_is_recorded_first(ran: Ran, mode: str) -> None:
    assert "free_beds (version 7), then forecast (version 8)." in " ".join(ran.part(mode).split())


def test_the_comparison_counts_both_modes_by_reason(ran: Ran) -> None:
    assert _numbers(ran.out.split("Both modes")[1]) == expected.COMPARISON


def test_it_ends_with_commands_that_name_its_conversations(ran: Ran) -> None:
    commands = ran.out.split("Try next\n")[1].splitlines()
    assert all(" history --tenant demo --conversation demo-" in command for command in commands)
    assert all(f"--data {ran.data}" in command for command in commands)
    for mode in MODES:
        assert any(f"--conversation {ran.conversation(mode)} " in command for command in commands)


def test_the_commands_it_ends_with_run_as_they_are_printed(ran: Ran) -> None:
    for command in ran.out.split("Try next\n")[1].splitlines():
        done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    assert "result 28 is recorded, not yet sent" in done.stdout


def test_nothing_is_left_running(ran: Ran) -> None:
    assert len(ran.killed()) == len(set(ran.killed())) == len(MODES)
    assert processes(ran.mark) == ""
    assert is_free(ran.data / "server")
    assert is_free(ran.data / "keeper")


def test_it_says_the_same_again_apart_from_ids_and_widths(ran: Ran, tmp_path: Path) -> None:
    def without_ids(each: Ran) -> str:
        out = re.sub(r"demo-[0-9a-f]{6}", "demo-ID", each.out)
        return re.sub(r"Process \d+ ", "Process PID ", out).replace(str(each.data), "DATA")

    again = run_demo(tmp_path / "data")
    assert without_ids(again) == without_ids(ran)


def test_without_a_directory_it_runs_in_a_temporary_one_also_where_output_is_ascii(tmp_path: Path) -> None:
    ran = run_demo(None, PYTHONIOENCODING="ascii", TMPDIR=str(tmp_path), COLUMNS="80")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.isascii()
    assert max(map(len, ran.out.splitlines())) <= 80
    assert list(tmp_path.glob("eventlog-demo-*")) == []
    assert processes(ran.mark) == ""


async def test_it_runs_on_a_server_that_is_given_and_can_be_run_there_again(server: str) -> None:
    ids = []
    for _ in range(2):
        console = Console(file=io.StringIO(), width=100)
        await demo(server, None, console)
        assert isinstance(console.file, io.StringIO)
        out = console.file.getvalue()
        assert _numbers(out.split("Both modes")[1]) == expected.COMPARISON
        assert f"--url {server}" in out
        ids += re.findall(r"^conversation (\S+)$", out, re.MULTILINE)
    assert len(set(ids)) == 4
    async with EventLog.open(server) as log:
        assert set(ids) <= {conversation async for conversation in log.tenant("demo").conversations()}
