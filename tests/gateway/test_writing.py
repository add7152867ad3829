"""Append, rewind and compact from a shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eventlog import Conversation, assistant, user
from tests.gateway.cli import Cli

EVENT = {"type": "message-added", "data": {"message_id": "m", "role": "user", "parts": []}, "actor": "ann"}


def texts(cli: Cli) -> list[str]:
    messages = cli.json("history", "-c", "c")["messages"]
    return [part["content"] for message in messages for part in message["parts"]]


def test_append_a_message_and_again_with_the_same_operation_id(cli: Cli) -> None:
    arguments = ("append", "-c", "c", "--message", "hello", "--role", "system", "--operation-id", "o")
    first = cli.json(*arguments)
    assert (first["versions"], first["operation_id"], first["duplicate"]) == ([1], "o", False)
    assert cli.json(*arguments) == {**first, "duplicate": True}
    assert cli.out(*arguments).splitlines() == [
        f"cursor {first['cursor']}",
        "versions 1",
        "operation o",
        "duplicate yes",
    ]
    assert texts(cli) == ["hello"]
    assert cli.json("history", "-c", "c")["messages"][0]["role"] == "system"


@pytest.mark.parametrize("events", [EVENT, [EVENT, {"type": "x.y", "data": {}}]])
def test_append_events_of_stdin_or_a_file(cli: Cli, tmp_path: Path, events: object) -> None:
    file = tmp_path / "events.json"
    file.write_text(json.dumps(events))
    count = len(events) if isinstance(events, list) else 1
    assert cli.json("append", "-c", "c", stdin=json.dumps(events))["versions"] == list(range(1, count + 1))
    assert cli.json("append", "-c", "c", "-", stdin=json.dumps(events))["versions"][0] == count + 1
    assert cli.json("append", "-c", "c", file)["versions"][0] == 2 * count + 1
    assert json.loads(cli.out("log", "-c", "c", "--json").splitlines()[0])["actor"] == "ann"


def test_append_where_the_log_is_expected_to_be(cli: Cli) -> None:
    assert cli.run("append", "-c", "c", "--message", "a", "--expected", "exists").exit_code == 1
    first = cli.json("append", "-c", "c", "--message", "a", "--expected", "none")
    cli.json("append", "-c", "c", "--message", "b", "--expected", first["cursor"])
    late = cli.run("append", "-c", "c", "--message", "c", "--expected", first["cursor"])
    assert late.exit_code == 1
    assert "is at version 2, not at the expected version 1" in late.stderr
    assert texts(cli) == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("{", "stdin: not JSON at column 2"),
        ("7", "events[0]: must be an object"),
        ("[]", "events: an operation needs at least one event"),
        ('{"type": "x"}', "events[0].data: is missing"),
        ('{"type": "x", "data": {}, "stamp": 1}', "events[0].stamp: is not known"),
        ('{"type": "x", "data": {"n": NaN}}', "NaN is not a JSON number"),
        ('{"type": "x", "data": {"n": "\\ud800"}}', "events[0].data.n: '\\ud800' has a lone surrogate"),
        ('{"type": "x", "data": {"n": 18446744073709551616}}', "does not fit in 64 bits"),
        ('{"type": "x", "data": {}, "run": "r"}', "events[0] belongs to run 'r'"),
        ('[{"type": "x", "data": {}}, {"type": "message-added", "data": {}}]', "events[1].data.message_id"),
        ('{"type": 7, "data": {}}', "events[0].type: 7 is not an event type"),
    ],
)
def test_what_is_no_event_is_refused_with_its_path(cli: Cli, given: str, problem: str) -> None:
    result = cli.run("append", "-c", "c", stdin=given)
    assert (result.exit_code, result.stdout) == (1, "")
    assert problem in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_rewind_to_a_version_and_undo_it(cli: Cli) -> None:
    for words in "abc":
        cli.out("append", "-c", "c", "--message", words)
    outcome = cli.json("rewind", "-c", "c", "--to", "1")
    assert outcome["versions"] == [4]
    assert texts(cli) == ["a"]
    assert cli.out("rewind", "-c", "c", "--to", "3").startswith("cursor 5-")
    assert texts(cli) == ["a", "b", "c"]
    late = cli.run("rewind", "-c", "c", "--to", "1", "--expected", outcome["cursor"])
    assert (late.exit_code, late.stdout) == (1, "")
    assert cli.run("rewind", "-c", "c", "--to", "9").exit_code == 1


def test_a_rewind_beside_an_open_run_needs_force(cli: Cli) -> None:
    async def work(conversation: Conversation) -> None:
        await conversation.run(operation_id="r").__aenter__()

    cli.record("c", work)
    refused = cli.run("rewind", "-c", "c", "--to", "0")
    assert refused.exit_code == 1
    assert "run 'r'" in refused.stderr
    assert cli.json("rewind", "-c", "c", "--to", "0", "--force")["versions"] == [2, 3]
    assert cli.json("runs", "-c", "c")[0]["reason"] == "superseded"


def test_compact_with_texts_or_the_messages_of_a_file(cli: Cli, tmp_path: Path) -> None:
    for words in "abcd":
        cli.out("append", "-c", "c", "--message", words)
    cli.out("compact", "-c", "c", "--through", "2", "--message", "first", "--message", "second", "--role", "assistant")
    assert texts(cli) == ["first", "second", "c", "d"]
    file = tmp_path / "messages.json"
    parts = [{"type": "text", "content": "in parts"}]
    file.write_text(json.dumps([{"role": "user", "content": "in short"}, {"role": "system", "parts": parts}]))
    cli.out("compact", "-c", "c", "--through", "3", "--file", file)
    assert texts(cli) == ["in short", "in parts", "d"]
    assert [message["role"] for message in cli.json("history", "-c", "c")["messages"]] == ["user", "system", "user"]


def test_a_compaction_that_would_part_a_call_from_its_result_is_refused(cli: Cli) -> None:
    async def work(conversation: Conversation) -> None:
        async with conversation.run() as run:
            await run.add(user("?"))
            async with run.service_call() as call:
                await call.complete(assistant({"type": "tool_call", "id": "t", "name": "f", "arguments": {}}))

    cli.record("c", work)
    result = cli.run("compact", "-c", "c", "--through", "5", "--message", "s")
    assert result.exit_code == 1
    assert "the call 't' at version 4 has no result" in result.stderr


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ("{}", "messages: must be a list"),
        ("[7]", "messages[0]: must be an object"),
        ('[{"role": "user"}]', "messages[0].parts: must be a list of objects"),
        ('[{"parts": []}]', "messages[0].role: must be a text"),
        ('[{"role": "user", "content": 7}]', "messages[0].content: must be a text"),
        ('[{"role": "user", "parts": [], "text": "a"}]', "messages[0].text: is not known"),
    ],
)
def test_what_is_no_message_is_refused_with_its_path(cli: Cli, messages: str, problem: str) -> None:
    cli.out("append", "-c", "c", "--message", "a")
    result = cli.run("compact", "-c", "c", "--through", "1", "--file", "-", stdin=messages)
    assert result.exit_code == 1
    assert problem in result.stderr
    assert texts(cli) == ["a"]
