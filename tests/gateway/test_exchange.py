"""Conversations in and out: import and export."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from eventlog import Conversation, Message, text, user
from tests.gateway.cli import AIRLINE, Cli

MODES = ("per-service-call", "per-run")
HELLO: dict[str, Any] = {
    "id": "c1",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "weather", "arguments": '{"at":  1}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "t1", "name": "weather", "content": "rain"},
        {"role": "assistant", "content": "Rain."},
    ],
}


def airline() -> list[dict[str, Any]]:
    if not AIRLINE.exists():
        pytest.skip(f"{AIRLINE.name} is not beside the project: its figures cannot be checked")
    with gzip.open(AIRLINE) as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("mode", MODES)
def test_the_airline_conversations_give_their_figures_and_come_back_less_what_was_dropped(cli: Cli, mode: str) -> None:
    given = airline()
    first = cli.out("import", AIRLINE, "--format", "openai-chat", "--mode", mode)
    figures = [
        "2,658 messages read, 2,558 in the service view",
        "24 trailing results and 76 unsent messages dropped",
    ]
    assert first.splitlines() == ["100 conversations: 100 added, 0 already there", *figures]
    again = cli.out("import", AIRLINE, "--format", "openai-chat", "--mode", mode)
    assert again.splitlines() == ["100 conversations: 0 added, 100 already there", *figures]
    wanted = []
    for conversation in given:
        messages = conversation["messages"]
        assert messages[-1]["role"] in ("tool", "user")
        wanted.append({"id": conversation["id"], "messages": messages[:-1]})
    assert cli.exported() == wanted


@pytest.mark.parametrize("mode", MODES)
def test_what_was_imported_is_exported_equal(cli: Cli, mode: str) -> None:
    assert cli.import_lines(HELLO, mode=mode).exit_code == 0
    assert cli.exported() == [HELLO]


def test_the_modes_go_side_by_side_into_two_tenants(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text(json.dumps(HELLO))
    for mode in MODES:
        cli.out("import", file, "--format", "openai-chat", "--mode", mode, "--tenant", mode)
        assert {run["mode"] for run in cli.json("runs", "-c", "c1", "--tenant", mode)} == {mode}
    assert cli.exported() == []


def test_a_packed_file_is_known_by_its_first_bytes(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "no-gz-in-the-name"
    file.write_bytes(gzip.compress(json.dumps(HELLO).encode()))
    assert "1 conversation: 1 added" in cli.out("import", file, "--format", "openai-chat", "--mode", "per-run")


def test_a_packed_file_that_ends_early_is_refused_where_it_ends(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "cut.gz"
    packed = gzip.compress(b"".join(json.dumps({**HELLO, "id": f"c{n}"}).encode() + b"\n" for n in range(3)))
    file.write_bytes(packed[:-9])
    result = cli.run("import", file, "--format", "openai-chat", "--mode", "per-run")
    assert result.exit_code == 3
    assert "the packed file is damaged or ends early" in result.stderr


def test_exports_stand_in_the_order_of_first_append(cli: Cli) -> None:
    names = [f"c{number}" for number in (5, 3, 9, 1, 7, 2)]
    cli.import_lines(*({**HELLO, "id": name} for name in names))
    assert [line["id"] for line in cli.exported()] == names
    assert [line["id"] for line in cli.exported("-c", "c9", "-c", "c5")] == ["c9", "c5"]


def test_an_export_goes_to_a_file(cli: Cli, tmp_path: Path) -> None:
    cli.import_lines(HELLO)
    file = tmp_path / "out.jsonl"
    assert cli.out("export", "--output", file) == ""
    assert json.loads(file.read_text()) == HELLO


def test_exporting_a_conversation_that_is_not_there_is_an_error(cli: Cli) -> None:
    result = cli.run("export", "-c", "nobody")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "conversation 'nobody' of 'default' has no events" in result.stderr


def test_results_and_messages_that_no_call_carried_are_dropped_and_counted(cli: Cli) -> None:
    ends = [
        {"id": "result", "messages": HELLO["messages"][:4]},
        {"id": "message", "messages": HELLO["messages"][:2]},
        {"id": "both", "messages": [*HELLO["messages"][:4], {"role": "user", "content": "Well?"}]},
    ]
    result = cli.import_lines(*ends, mode="per-run")
    assert "2 trailing results and 3 unsent messages dropped" in result.stdout
    assert [len(line["messages"]) for line in cli.exported()] == [3, 0, 3]


def test_a_conversation_that_is_there_with_other_content_is_refused_with_its_line(cli: Cli) -> None:
    cli.record("c2", lambda conversation: conversation.add(user("I was here first")))
    result = cli.import_lines(HELLO, {**HELLO, "id": "c2"}, {**HELLO, "id": "c3"})
    assert result.exit_code == 3
    assert result.stderr.startswith(
        "stdin:2: conversation 'c2' of 'default' is there already, imported in another mode, or with other content"
    )
    assert "2 conversations: 2 added" in result.stdout
    assert "1 line refused" in result.stdout
    changed = {**HELLO, "messages": [*HELLO["messages"][:4], {"role": "assistant", "content": "Sun."}]}
    assert cli.import_lines(changed).exit_code == 3
    assert cli.exported("-c", "c1") == [HELLO]


def test_the_other_mode_of_a_conversation_that_is_there_is_refused(cli: Cli) -> None:
    assert cli.import_lines(HELLO).exit_code == 0
    result = cli.import_lines(HELLO, mode="per-run")
    assert result.exit_code == 3
    assert "is there already, imported in another mode, or with other content: give it another id" in result.stderr


def test_of_many_refused_lines_twenty_are_named_and_the_others_counted(cli: Cli) -> None:
    result = cli.import_lines(*["{"] * 33, HELLO)
    assert result.exit_code == 3
    said = result.stderr.splitlines()
    assert [line.split(":")[:2] for line in said[:-1]] == [["stdin", str(number)] for number in range(1, 21)]
    assert said[-1] == "eventlog: 13 more lines refused"
    assert "33 lines refused" in result.stdout
    assert len(cli.import_lines(*["{"] * 20).stderr.splitlines()) == 20


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (Message("boss", [text("Do it.")]), "role: 'boss' is not one of"),
        (Message("tool", [text("rain")]), "tool_call_id: is missing"),
    ],
)
def test_a_message_that_the_form_cannot_express_is_named_and_the_other_conversations_exported(
    cli: Cli, message: Message, why: str
) -> None:
    async def work(conversation: Conversation) -> None:
        await conversation.add(user("Hm?"))
        await conversation.add(message)

    cli.record("c0", work)
    assert cli.import_lines(HELLO).exit_code == 0
    result = cli.run("export")
    assert result.exit_code == 1
    assert [json.loads(line) for line in result.stdout.splitlines()] == [HELLO]
    said = "eventlog: conversation 'c0' of 'default' is not exported: the message at version 2 cannot be written as"
    assert result.stderr.startswith(said)
    assert why in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_one_id_twice_in_a_file_is_one_conversation(cli: Cli) -> None:
    result = cli.import_lines(HELLO, HELLO)
    assert result.exit_code == 0
    assert result.stdout.startswith("1 conversation: 1 added, 0 already there\n5 messages read, 5 in the service view")


def test_a_longer_transcript_of_the_same_conversation_adds_what_is_new(cli: Cli) -> None:
    longer = {**HELLO, "messages": HELLO["messages"] + HELLO["messages"][1:]}
    result = cli.import_lines(HELLO, longer)
    assert result.stdout.splitlines()[:2] == [
        "1 conversation: 1 added, 0 already there",
        "9 messages read, 9 in the service view",
    ]
    assert cli.exported() == [longer]


def test_what_follows_an_import_does_not_make_the_same_file_strange(cli: Cli) -> None:
    cli.import_lines(HELLO)

    async def go_on(conversation: Conversation) -> None:
        await conversation.add(user("And tomorrow?"))

    cli.record("c1", go_on)
    result = cli.import_lines(HELLO)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "1 conversation: 0 added, 1 already there")


HOSTILE = [
    "a/b",
    "a:b",
    "{a}",
    "%2F",
    "a b",
    "a\nb",
    "\x1b[31m",
    "🌍",
    "x" * 1000,
    "\u2028",
    "-c",
    "0",
    "'\"\\",
    "a\x00b",
]


def test_hostile_conversation_ids_come_back_and_stay_apart(cli: Cli) -> None:
    given = [{"id": name, "messages": [{"role": "assistant", "content": name}]} for name in HOSTILE]
    assert cli.import_lines(*given).exit_code == 0
    assert cli.exported() == given
    for conversation in given:
        assert cli.exported(f"--conversation={conversation['id']}") == [conversation]


def test_an_id_that_is_too_long_is_refused(cli: Cli) -> None:
    result = cli.import_lines({"id": "x" * 1001, "messages": []})
    assert result.exit_code == 3
    assert "1,001 bytes" in result.stderr


def test_a_conversation_without_messages_comes_back(cli: Cli) -> None:
    empty = {"id": "empty", "messages": []}
    assert cli.import_lines(empty).exit_code == 0
    assert cli.exported() == [empty]
    assert cli.import_lines(empty).stdout.startswith("1 conversation: 0 added, 1 already there")


def test_the_figures_come_as_json(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text(json.dumps({"id": "c1", "messages": HELLO["messages"][:4]}))
    assert cli.json("import", file, "--format", "openai-chat", "--mode", "per-run") == {
        "conversations": {"added": 1, "already_there": 0},
        "messages": {"read": 4, "in_view": 3, "dropped": {"trailing-result": 1}},
        "refused": 0,
    }
