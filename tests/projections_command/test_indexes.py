"""The commands that read the indexes: conversations, open-calls, usage; and delete."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from eventlog import Conversation, Draft
from tests.gateway.cli import Cli
from tests.projections_command.acting import ask_weather, say

AS_OF = r"eventlog: as of 2\d\d\d-\d\d-\d\dT[0-9:.]+Z"


@pytest.fixture
def kept(cli: Cli) -> Cli:
    """A conversation that was labelled, one with a run and an open call, one in which a call waits for approval."""

    async def label(chat: Conversation) -> None:
        await chat.append(Draft("conversation-annotated", {"title": "A\tbill", "labels": {"topic": "a=b"}}))

    say(cli, "bill", "What do I owe?")
    cli.record("bill", label)
    ask_weather(cli, "oslo")
    ask_weather(cli, "bergen", approval=True)
    cli.out("projections", "run", "--once")
    return cli


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_conversations_are_listed_the_last_active_first(kept: Cli) -> None:
    listed = kept.run("conversations", "default")
    assert [[*row[:5], row[6]] for row in rows(listed.stdout)] == [
        ["bergen", "-", "2", "1", "weather", "Weather in Oslo?"],
        ["oslo", "-", "2", "1", "weather", "Weather in Oslo?"],
        ["bill", "A bill", "1", "0", "-", "What do I owe?"],
    ]
    assert re.fullmatch(f"{AS_OF}\n", listed.stderr)
    assert kept.out("conversations", "nobody") == ""


def test_conversations_are_found_by_label_and_agent(kept: Cli) -> None:
    assert [row[0] for row in rows(kept.out("conversations", "default", "--label", "topic=a=b"))] == ["bill"]
    assert [row[0] for row in rows(kept.out("conversations", "default", "--agent", "weather"))] == ["bergen", "oslo"]
    assert kept.out("conversations", "default", "--agent", "weather", "--label", "topic=a=b") == ""
    refused = kept.run("conversations", "default", "--label", "topic")
    assert refused.exit_code == 2
    assert "give the label's name and its value" in refused.stderr


def test_pages_are_turned_with_their_cursors(kept: Cli) -> None:
    first = kept.run("conversations", "default", "--limit", "2")
    assert [row[0] for row in rows(first.stdout)] == ["bergen", "oslo"]
    after = re.findall(r"more: --after (\S+)", first.stderr)
    assert len(after) == 1
    second = kept.run("conversations", "default", "--limit", "2", "--after", after[0])
    assert [row[0] for row in rows(second.stdout)] == ["bill"]
    [before] = re.findall(r"the page before: --before (\S+)", second.stderr)
    back = kept.run("conversations", "default", "--limit", "2", "--before", before)
    assert [row[0] for row in rows(back.stdout)] == ["bergen", "oslo"]
    refused = kept.run("open-calls", "default", "--after", after[0])
    assert refused.exit_code == 1
    assert "is of another list" in refused.stderr
    assert kept.run("conversations", "default", "--limit", "0").exit_code == 2


def test_what_a_page_has_not_come_to_is_said(kept: Cli) -> None:
    say(kept, "bill", "And now?")
    listed = kept.run("conversations", "default")
    assert re.fullmatch(f"{AS_OF}: 1 append of all tenants not yet in the view\n", listed.stderr)
    assert kept.json("conversations", "default")["as_of"]["lag"] == 1


def test_pages_are_given_to_programs(kept: Cli) -> None:
    page = kept.json("conversations", "default", "--limit", "1")
    assert page["items"][0]["conversation"] == "bergen"
    assert page["previous"] is None
    assert page["next"]
    calls = kept.json("open-calls", "default")
    assert [one["conversation"] for one in calls["items"]] == ["oslo", "bergen"]


def test_open_calls_are_listed_the_oldest_first(kept: Cli) -> None:
    listed = kept.run("open-calls", "default")
    found = rows(listed.stdout)
    assert [row[:5] for row in found] == [
        ["oslo", "4", "call_1", "look", "weather"],
        ["bergen", "4", "call_1", "look", "weather"],
    ]
    assert [row[7] == "-" for row in found] == [True, False]
    assert re.fullmatch(f"{AS_OF}\n", listed.stderr)
    assert [row[0] for row in rows(kept.out("open-calls", "default", "--approval"))] == ["bergen"]


def test_usage_is_summed_up(kept: Cli) -> None:
    today = datetime.now(UTC).date().isoformat()
    listed = kept.run("usage", "default")
    assert rows(listed.stdout) == [["large", "weather", today, "2", "20", "8", "-"]]
    assert re.fullmatch(f"{AS_OF}\n", listed.stderr)
    assert rows(kept.out("usage", "default", "--by", "")) == [["2", "20", "8", "-"]]
    assert rows(kept.out("usage", "default", "--by", "agent, model")) == [["weather", "large", "2", "20", "8", "-"]]
    assert kept.out("usage", "default", "--until", "2020-01-01") == ""
    assert kept.json("usage", "default", "--since", today)["rows"][0]["input_tokens"] == 20
    for by in ("colour", "day,day"):
        refused = kept.run("usage", "default", "--by", by)
        assert refused.exit_code == 2
        assert "give some of day, model, agent, each once" in " ".join(refused.stderr.split())
    refused = kept.run("usage", "default", "--since", "today")
    assert refused.exit_code == 1
    assert "since='today': give a day" in refused.stderr


def test_an_index_that_nobody_built_says_how_to_build_it(cli: Cli) -> None:
    for name in ("conversations", "open-calls", "usage"):
        refused = cli.run(name, "default")
        assert refused.exit_code == 1
        assert "is kept, or not yet whole: `eventlog projections run` builds it" in refused.stderr


def test_a_conversation_is_deleted_with_what_views_keep_of_it(kept: Cli) -> None:
    kept.out("projections", "rebuild", "history")
    refused = kept.run("delete", "default", "oslo", stdin="\n")
    assert refused.exit_code == 1
    assert "Delete conversation oslo of default for good? [y/N]:" in refused.stderr
    said = kept.out("delete", "default", "oslo", stdin="y\n")
    assert said.endswith("conversation oslo of default is deleted, and gone from 6 views\n")
    assert [row[0] for row in rows(kept.out("conversations", "default"))] == ["bergen", "bill"]
    assert [row[0] for row in rows(kept.out("open-calls", "default"))] == ["bergen"]
    assert rows(kept.out("usage", "default", "--by", "")) == [["1", "10", "4", "-"]]
    assert "was deleted" in kept.run("history", "-c", "oslo").stderr
    assert kept.json("delete", "default", "oslo", "--yes") == {
        "tenant": "default",
        "conversation": "oslo",
        "deleted": True,
        "views": 6,
    }
    kept.out("projections", "run", "--once")
    assert kept.run("projections", "verify").exit_code == 0


def test_a_conversation_that_never_was_is_not_deleted(cli: Cli) -> None:
    refused = cli.run("delete", "default", "nothing", "--yes")
    assert refused.exit_code == 1
    assert refused.stderr == (
        "eventlog: conversation 'nothing' of 'default' has no events: there is nothing to delete\n"
    )


def test_a_conversation_with_an_open_run_is_deleted_only_by_force(cli: Cli) -> None:
    async def leave_open(chat: Conversation) -> None:
        await chat.run().__aenter__()

    cli.record("busy", leave_open)
    refused = cli.run("delete", "default", "busy", "--yes")
    assert refused.exit_code == 1
    assert "busy" in refused.stderr
    assert cli.out("delete", "default", "busy", "--yes", "--force").endswith("gone from 0 views\n")


@pytest.mark.parametrize("name", ["conversations", "open-calls", "usage", "delete"])
def test_each_is_listed_with_a_whole_sentence(cli: Cli, name: str) -> None:
    lines = [line for line in cli.run("--help").stdout.splitlines() if line.split()[:1] == [name]]
    assert len(lines) == 1
    assert lines[0].endswith(".")
    assert not lines[0].endswith("...")
    assert len(lines[0]) <= 80
    shown = cli.run(name, "--help").stdout
    assert all(option in shown for option in ("--url", "--data", "--namespace", "--durability", "--json", "TENANT"))
    assert "130  interrupted" in shown
