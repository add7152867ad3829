"""What the reading commands show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eventlog import Conversation, Draft, Mode, assistant, text, tool_call, user
from projections.repair import NO_RESULT
from tests.gateway.cli import Cli


async def busy(conversation: Conversation) -> None:
    """A message outside any run, a committed run, an aborted one, and an open one."""
    await conversation.add(user("Outside."))
    async with conversation.run(agent="weather", operation_id="first") as run:
        await run.add(user("Weather in Oslo?"))
        async with run.service_call() as call:
            await call.complete(assistant(text("Let me look."), tool_call("t1", "weather", '{"at": "Oslo"}')))
        await run.add_result(call.function_calls[0], {"sky": "rain"})
        async with run.service_call() as call:
            await call.fail("it broke", partial=[text("Ra")])
    lost = conversation.run(Mode.PER_RUN, operation_id="second", carry="none")
    await lost.__aenter__()
    await lost.add(user("And Rome?"))
    async with lost.service_call() as call:
        await call.complete(assistant("Sun."))
    await lost.abort("failed", "no more money")
    held = conversation.run(operation_id="third", carry="none")
    await held.__aenter__()
    async with held.service_call() as call:
        await call.complete(assistant(tool_call("t2", "buy", {})))
    await held.add(user("Go on!"))
    await held.service_call().__aenter__()
    await conversation.append(Draft("approval-requested", {"function_call": call.function_calls[0].version}))


@pytest.fixture
def filled(cli: Cli) -> Cli:
    cli.record("c", busy)
    return cli


def test_log_shows_each_event_with_its_version_cursor_time_type_run_and_words(filled: Cli) -> None:
    rows = [line.split("\t") for line in filled.out("log", "-c", "c").splitlines()]
    assert [row[0] for row in rows] == [str(number) for number in range(1, len(rows) + 1)]
    assert rows[1][3:] == ["run-started", "first", "mode per-service-call, agent weather"]
    assert rows[5][3:] == ["function-call", "first#1", 't1: weather({"at": "Oslo"})']
    assert rows[7][3:] == ["function-result", "first", 't1 (version 6): {"sky":"rain"}']
    assert rows[0][4] == "-"
    cursor = rows[5][1]
    assert filled.out("log", "-c", "c", "--after", cursor).splitlines()[0].startswith("7\t")


def test_log_filters_turns_round_and_limits(filled: Cli) -> None:
    def versions(*arguments: str) -> list[int]:
        return [json.loads(line)["version"] for line in filled.out("log", "-c", "c", "--json", *arguments).splitlines()]

    everything = versions()
    assert versions("--reverse") == everything[::-1]
    assert versions("--limit", "3") == everything[:3]
    assert versions("--reverse", "--limit", "1") == everything[-1:]
    assert versions("--type", "run-started") == [2, 12, 18]
    assert versions("--type", "run-started", "--type", "run-aborted", "--run", "second") == [12, 17]
    assert versions("--run", "nobody") == []


def test_log_as_json_holds_the_whole_event(filled: Cli) -> None:
    event = json.loads(filled.out("log", "-c", "c", "--json", "--type", "run-aborted"))
    assert event["data"] == {"reason": "failed", "error": "no more money"}
    assert event.keys() == {
        *("version", "cursor", "id", "type", "run", "call", "at", "actor", "causation", "schema", "data", "meta"),
    }


def test_history_shows_messages_and_what_is_known_of_them(filled: Cli) -> None:
    shown = filled.out("history", "-c", "c")
    assert shown.startswith("user [1]\n  Outside.\nuser [3]\n  Weather in Oslo?\nassistant [5, 6]\n  Let me look.\n")
    assert "\n  call t1: weather(" in shown
    assert "Ra" not in shown
    assert "And Rome?" not in shown
    assert "open call at version 6: t1 weather, result 8 is recorded, not yet sent" in shown
    assert "open call at version 20: t2 buy, waits for approval" in shown
    assert "in doubt: service call 2 of run third" in shown


def test_history_names_the_recorded_result_of_an_open_call(cli: Cli) -> None:
    async def work(conversation: Conversation) -> None:
        async with conversation.run() as run:
            await run.add(user("?"))
            async with run.service_call() as call:
                await call.complete(assistant(tool_call("a", "look"), tool_call("b", "look")))
            await run.add_result(call.function_calls[1], "seen")

    cli.record("c", work)
    shown = cli.out("history", "-c", "c")
    assert "open call at version 4: a look, unanswered" in shown
    assert "open call at version 5: b look, result 7 is recorded, not yet sent" in shown
    calls = cli.json("history", "-c", "c")["open_calls"]
    assert [(call["version"], call["recorded_result"]) for call in calls] == [(4, None), (5, 7)]
    [before, _] = cli.json("history", "-c", "c", "--at", "6")["open_calls"]
    assert before["recorded_result"] is None


def test_history_as_json_is_the_view_and_the_same_each_time(filled: Cli) -> None:
    view = filled.json("history", "-c", "c")
    assert [call["call_id"] for call in view["open_calls"]] == ["t1", "t2"]
    assert [call["awaits_approval"] for call in view["open_calls"]] == [False, True]
    assert filled.out("history", "-c", "c", "--json") == filled.out("history", "-c", "c", "--json")


def test_history_at_a_version_and_of_the_last_messages(filled: Cli) -> None:
    assert [message["versions"] for message in filled.json("history", "-c", "c", "--at", "4")["messages"]] == [[1]]
    assert filled.json("history", "-c", "c", "--at", "0")["messages"] == []
    view = filled.json("history", "-c", "c", "--last", "1")
    assert (len(view["messages"]), view["window"]["how"]) == (1, "exact")
    assert "window: asked for 1, given 1 (exact)" in filled.out("history", "-c", "c", "--last", "1")


def test_history_of_everything_shows_failures_approvals_and_partial_text(filled: Cli) -> None:
    shown = filled.out("history", "-c", "c", "--view", "everything")
    for words in ("Ra", "it broke", "no more money", "approval-requested", "And Rome?"):
        assert words in shown


def test_the_untrimmed_view_keeps_what_a_committed_per_run_run_never_sent(cli: Cli) -> None:
    async def work(conversation: Conversation) -> None:
        async with conversation.run(Mode.PER_RUN) as run:
            await run.add(user("Unsent."))

    cli.record("c", work)
    assert cli.json("history", "-c", "c")["messages"] == []
    assert len(cli.json("history", "-c", "c", "--view", "untrimmed")["messages"]) == 1
    [run] = cli.json("explain", "-c", "c", "--view", "untrimmed")["runs"]
    assert run["fates"][0]["kept"]


def test_repair_answers_the_calls_of_finished_runs_alone(filled: Cli) -> None:
    view = filled.json("history", "-c", "c", "--repair")
    results = [
        part for message in view["messages"] for part in message["parts"] if part["type"] == "tool_call_response"
    ]
    assert [(part["id"], part["response"]) for part in results] == [("t1", NO_RESULT)]
    assert [call["call_id"] for call in view["open_calls"]] == ["t2"]
    assert "result t1 [synthetic] [is_error]" in filled.out("history", "-c", "c", "--repair")


def test_explain_tells_run_by_run_what_is_kept_and_why_the_rest_is_not(filled: Cli) -> None:
    def told(group: dict[str, Any]) -> list[tuple[int, str, str, str | None]]:
        return [(fate["version"], fate["kind"], fate["what"], fate["reason"]) for fate in group["fates"]]

    groups = filled.json("explain", "-c", "c")["runs"]
    assert [group["run"] and group["run"]["run"] for group in groups] == [None, "first", "second", "third"]
    assert told(groups[0]) == [(1, "message", "Outside.", None)]
    assert told(groups[1]) == [
        (3, "message", "Weather in Oslo?", None),
        (5, "message", "Let me look.", None),
        (6, "call", "t1", None),
        (8, "result", "t1", "trailing-result"),
        (10, "message", "Ra", "failed-call"),
    ]
    assert [reason for *_, reason in told(groups[2])] == ["aborted-run", "aborted-run"]
    assert told(groups[3])[-1][1:] == ("message", "Go on!", "unsent-message")
    lines = filled.out("explain", "-c", "c").splitlines()
    assert lines[0] == "outside any run"
    assert lines[2] == "run first from version 2: per-service-call, committed: completed, agent weather"
    assert lines[6] == "      8  result t1  not kept: trailing-result"
    assert lines[7] == "     10  service call 2, message Ra  not kept: failed-call"


def test_runs_tell_how_they_ended_and_who_holds_the_open_one(filled: Cli) -> None:
    first, second, third = filled.json("runs", "-c", "c")
    assert first == {
        "run": "first",
        "mode": "per-service-call",
        "state": "committed",
        "reason": "completed",
        "agent": "weather",
        "calls": {"completed": 1, "failed": 1, "in_doubt": 0},
        "first": 2,
    }
    assert (second["mode"], second["state"], second["reason"]) == ("per-run", "aborted", "failed")
    assert (third["state"], third["calls"]) == ("open", {"completed": 1, "failed": 0, "in_doubt": 1})
    assert third["holder"]
    assert third["lease_until"].endswith("Z")
    rows = [line.split("\t") for line in filled.out("runs", "-c", "c").splitlines()]
    assert [row[1:4] for row in rows] == [
        ["first", "per-service-call", "committed: completed"],
        ["second", "per-run", "aborted: failed"],
        ["third", "per-service-call", "open"],
    ]
    assert rows[2][8] == third["holder"]


def test_runs_can_be_narrowed_to_those_that_are_open(filled: Cli) -> None:
    assert [run["run"] for run in filled.json("runs", "-c", "c", "--open")] == ["third"]


@pytest.mark.parametrize("command", ["log", "history", "explain", "runs"])
def test_a_conversation_without_events_is_named_on_stderr(cli: Cli, command: str) -> None:
    result = cli.run(command, "-c", "nobody")
    assert result.exit_code == 0
    assert "conversation 'nobody' of 'default' has no events" in result.stderr


def test_what_a_terminal_would_obey_is_shown_and_not_sent(cli: Cli) -> None:
    async def work(conversation: Conversation) -> None:
        await conversation.add(user("\x1b[2J\tfirst\nsecond \u202e"))

    cli.record("c", work)
    assert cli.out("history", "-c", "c").splitlines()[1:3] == ["  \\x1b[2J\tfirst", "  second \\u202e"]
    for command in ("log", "explain", "history"):
        assert "\x1b" not in cli.out(command, "-c", "c")
