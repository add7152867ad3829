"""The commands that list and check: list, lag, verify; and rollback, drop, retry."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from eventlog import EventLog
from eventlog.store.views import ViewId
from projections.live import Live
from projections.views.built_in import named
from tests.gateway.cli import Cli
from tests.projections_command.acting import say
from tests.projections_command.own import SPEC, Lengths

NAMES = ["directory", "history", "open_calls", "runs", "usage"]


@pytest.fixture
def kept(cli: Cli) -> Cli:
    """Two conversations and all views of them."""
    say(cli, "a", "one", "two")
    say(cli, "b", "three")
    cli.out("projections", "run", "--once")
    return cli


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_what_is_not_built_is_listed_as_such(cli: Cli) -> None:
    assert [row[0] for row in rows(cli.out("projections", "list"))] == [
        "history",
        "directory",
        "runs",
        "open_calls",
        "usage",
    ]
    assert {row[3] for row in rows(cli.out("projections", "list"))} == {"not built"}
    assert all(one["generations"] == [] for one in cli.json("projections", "list"))


def test_views_are_listed_generation_by_generation(kept: Cli) -> None:
    kept.out("projections", "rebuild", "history")
    say(kept, "a", "four")
    found = rows(kept.out("projections", "list"))
    assert [row[:8] for row in found if row[0] == "history"] == [
        ["history", "1", "1", "before", "all", "1", "0", "0"],
        ["history", "2", "1", "live", "all", "1", "0", "0"],
    ]
    assert [row[0] for row in found] == ["directory", "history", "history", "open_calls", "runs", "usage"]
    [history] = [one for one in kept.json("projections", "list") if one["projection"] == "history"]
    assert (history["live"], history["before"]) == (2, 1)
    live = history["generations"][1]
    assert (live["state"], live["scanned"], live["lag"], live["waiting"]) == ("live", True, 1, 0)
    assert (live["conversations_scanned"], live["processes"], live["failures"]) == (2, [], [])


def test_the_lag_is_shown_partition_by_partition(kept: Cli) -> None:
    say(kept, "a", "four")
    found = rows(kept.out("projections", "lag", "usage"))
    assert [row[:3] for row in found] == [["usage", "1", str(partition)] for partition in range(16)]
    assert sorted(int(row[5]) for row in found)[-2:] == [0, 1]
    assert {row[6] for row in found} == {"done"}
    assert len(rows(kept.out("projections", "lag"))) == 16 * 5
    assert [one["projection"] for one in kept.json("projections", "lag", "usage", "runs")] == ["usage", "runs"]
    refused = kept.run("projections", "lag", "usages")
    assert refused.exit_code == 1
    assert refused.stderr == (
        "eventlog: no view 'usages' is kept; kept are: 'directory', 'history', 'open_calls', 'runs', 'usage'. "
        "`eventlog projections run` builds views\n"
    )


def test_views_that_agree_with_their_logs_are_verified(kept: Cli) -> None:
    found = kept.run("projections", "verify")
    assert (found.exit_code, found.stdout) == (0, "")
    assert "history.1: no difference in 2 conversations, 3 events\n" in found.stderr
    assert found.stderr.count("no difference") == 5
    assert kept.run("projections", "verify", "usage", "--sample", "0.5").exit_code == 0


def test_what_a_view_has_yet_to_apply_is_no_difference(kept: Cli) -> None:
    say(kept, "a", "four")
    found = kept.run("projections", "verify", "directory")
    assert found.exit_code == 0
    assert found.stderr == "eventlog: directory.1: no difference in 2 conversations, 3 events; 1 behind\n"


def test_a_difference_is_named_with_its_conversation(kept: Cli) -> None:
    async def harm() -> None:
        async with EventLog.open(kept.url, namespace=kept.namespace) as log:
            live, chat = Live.of(log.store), log.tenant("default").conversation("a")
            await live.views.forget(ViewId("directory", 1), chat.log)

    anyio.run(harm)
    found = kept.run("projections", "verify")
    assert found.exit_code == 1
    assert found.stdout == (
        "directory.1: conversation 'a' of 'default', version 1: how far it is is nothing, the log gives version 2\n"
    )
    assert "directory.1: 1 difference in 2 conversations, 1 event\n" in found.stderr
    found = kept.run("projections", "verify", "directory", "--json")
    assert found.exit_code == 1
    told = json.loads(found.stdout)
    assert (told["projection"], told["generation"], told["tenant"], told["conversation"], told["version"]) == (
        "directory",
        1,
        "default",
        "a",
        1,
    )


def test_nothing_is_verified_where_nothing_is_kept(cli: Cli) -> None:
    for arguments in ((), ("usage",)):
        found = cli.run("projections", "verify", *arguments)
        assert found.exit_code == 1
        assert "of version 1 is kept, or not yet whole: `eventlog projections run` builds it" in found.stderr
    cli.out("projections", "run", "usage", "--once")
    found = cli.run("projections", "verify")
    assert found.exit_code == 0
    assert "history: no view of version 1 is kept: there is nothing to verify" in found.stderr


def test_a_sample_of_nothing_and_unknown_names_are_wrong_usage(cli: Cli) -> None:
    assert cli.run("projections", "verify", "--sample", "0").exit_code == 2
    assert cli.run("projections", "verify", "--sample", "1.5").exit_code == 2
    for verb in ("run", "verify", "rebuild"):
        refused = cli.run("projections", verb, "usages")
        assert refused.exit_code == 2
        assert "there is no projection 'usages'; there are 'history'" in " ".join(refused.stderr.split())


def test_a_rollback_makes_the_generation_before_live(kept: Cli) -> None:
    refused = kept.run("projections", "rollback", "history")
    assert refused.exit_code == 1
    assert "generation before the live one is not kept: there are 1; rebuild" in refused.stderr
    kept.out("projections", "rebuild", "history")
    said = kept.out("projections", "rollback", "history")
    assert said == "generation 1 of history is live, of version 1; 2 is kept\n"


def test_a_rollback_to_another_version_says_that_this_release_keeps_its_own(
    kept: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(named("history")), "version", 2)
    kept.out("projections", "run", "history", "--once")
    listed = [row[:4] for row in rows(kept.out("projections", "list")) if row[0] == "history"]
    assert listed == [["history", "1", "1", "before"], ["history", "2", "2", "live"]]
    done = kept.run("projections", "rollback", "history")
    assert done.stdout == "generation 1 of history is live, of version 1; 2 is kept\n"
    assert done.stderr == (
        "eventlog: this release has version 2 of 'history', and reads and keeps that, whatever is live\n"
    )


def test_a_generation_is_dropped_after_it_was_confirmed(kept: Cli) -> None:
    kept.out("projections", "rebuild", "history")
    refused = kept.run("projections", "drop", "history", "--generation", "1", stdin="n\n")
    assert refused.exit_code == 1
    assert "Drop generation 1 of view history? [y/N]:" in refused.stderr
    dropped = kept.out("projections", "drop", "history", "--generation", "1", stdin="y\n")
    assert dropped.endswith("dropped of history: 1\n")
    refused = kept.run("projections", "drop", "history", "--generation", "2", "--yes")
    assert refused.exit_code == 1
    assert "generation 2 is live: roll back first, or drop the whole projection" in refused.stderr
    done = kept.run("projections", "drop", "history", "--yes")
    assert (done.exit_code, done.stdout) == (0, "dropped of history: 2\n")
    assert "projectors that run build it anew" in done.stderr
    assert "not built" in kept.out("projections", "list")
    assert kept.run("projections", "drop", "histories", "--yes").exit_code == 1


def test_what_could_not_be_applied_is_listed_and_tried_again(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    own = ("--module", f"{SPEC}LENGTHS")
    say(cli, "a", "one", "poison")
    cli.out("projections", "run", "lengths", "--once", "--on-error", "wait", *own)
    for verb in ("list", "lag"):
        listed = cli.run("projections", verb)
        assert listed.stderr.count("\n") == 1
        assert "lengths.1: version 2 of 'a' of 'default': its conversation waits: version 2" in listed.stderr
        assert "ValueError: it cannot be read" in listed.stderr
    [told] = [one for one in cli.json("projections", "list") if one["projection"] == "lengths"]
    [generation] = told["generations"]
    [failure] = generation["failures"]
    assert (generation["waiting"], failure["conversation"], failure["version"]) == (1, "a", 2)
    assert "Traceback" in failure["trace"]
    assert cli.out("projections", "retry", "lengths").startswith("1 event to be tried again")
    monkeypatch.setattr(Lengths, "mended", True)
    cli.out("projections", "run", "lengths", "--once", *own)
    assert cli.run("projections", "list").stderr == ""


def test_every_command_says_what_it_does_in_a_line(cli: Cli) -> None:
    listed: dict[str, Any] = {}
    for line in cli.run("projections", "--help").stdout.splitlines():
        words = line.split()
        if line.startswith("  ") and words:
            listed[words[0]] = line
    for name in ("run", "list", "lag", "rebuild", "rollback", "verify", "drop", "retry"):
        assert listed[name].endswith(".")
        assert not listed[name].endswith("...")
        assert len(listed[name]) <= 80
