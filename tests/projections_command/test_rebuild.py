"""The command that builds a view anew, and what it shows meanwhile."""

from __future__ import annotations

import os
import pty
import subprocess

import anyio
import pytest

from eventlog import EventLog, user
from eventlog.store.views import ViewId
from gateway.command.rebuilding import Rebuilding
from projections.live import Live
from projections.partition import Told
from projections.projector import Projector
from projections.views.history import HISTORY
from tests.gateway.cli import Cli
from tests.projections_command.acting import ROOT, command, environment, say
from tests.projections_command.own import SPEC


def test_a_view_is_built_anew_and_made_live(cli: Cli) -> None:
    say(cli, "a", "one", "two")
    assert cli.out("projections", "rebuild", "history").startswith("generation 1 of history is live: 2 events in ")
    say(cli, "b", "three")
    told = cli.json("projections", "rebuild", "history")
    assert (told["projection"], told["generation"], told["version"], told["events"]) == ("history", 2, 1, 3)
    assert told["seconds"] > 0
    [history] = [one for one in cli.json("projections", "list") if one["projection"] == "history"]
    assert (history["live"], history["before"]) == (2, 1)


def test_a_rebuild_that_was_left_is_gone_on_with(cli: Cli) -> None:
    say(cli, "a", "one")
    cli.out("projections", "rebuild", "usage")

    async def begin() -> None:
        async with EventLog.open(cli.url, namespace=cli.namespace) as log:
            await Live.of(log.store).change("usage", lambda record: record.begin(1, 5))

    anyio.run(begin)
    [usage] = [one for one in cli.json("projections", "list") if one["projection"] == "usage"]
    assert [one["state"] for one in usage["generations"]] == ["live", "building"]
    assert (usage["generations"][1]["scanned"], usage["generations"][1]["conversations"]) == (False, 1)
    assert cli.out("projections", "rebuild", "usage").startswith("generation 2 of usage is live")


def test_a_rebuild_that_stops_says_so_and_leaves_the_live_one(cli: Cli) -> None:
    say(cli, "a", "one", "poison")
    done = cli.run("projections", "rebuild", "lengths", "--module", f"{SPEC}LENGTHS")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "projection 'lengths' cannot apply conversation 'a' of 'default', version 2" in done.stderr


def test_a_rebuild_that_is_interrupted_says_how_to_go_on(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Projector, "rebuild", interrupted)
    done = cli.run("projections", "rebuild", "history")
    assert (done.exit_code, done.stdout) == (130, "")
    assert done.stderr == (
        "eventlog: what is built so far stays: `eventlog projections rebuild history` goes on with it\n"
    )


def test_a_server_that_cannot_be_reached_is_told_once_and_without_a_trace(cli: Cli) -> None:
    for verb in (("rebuild", "history"), ("run", "--once"), ("list",), ("verify",)):
        done = cli.run("projections", *verb, "--url", "unix:///nowhere/s.sock")
        assert done.exit_code == 1
        assert [line for line in done.stderr.splitlines() if "/nowhere/s.sock" in line]
        assert "Traceback" not in done.stderr


def test_a_pipe_gets_plain_lines(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    say(cli, "a", "one")
    monkeypatch.setattr("gateway.command.rebuilding._LINE", 0.01)
    done = cli.run("projections", "rebuild", "history")
    assert "\neventlog: history: 1 of 1 conversations, 1 event, " in f"\n{done.stderr}"
    assert "\x1b" not in done.stderr


def test_a_terminal_gets_a_bar(cli: Cli) -> None:
    say(cli, "a", "one")
    ours, theirs = pty.openpty()
    done = subprocess.run(
        command("projections", "rebuild", "history"),
        cwd=ROOT,
        env=environment(cli, TERM="xterm", COLUMNS="120"),
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=True,
    )
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert b"generation 1 of history is live" in done.stdout
    assert "history" in shown
    assert "conversations" in shown
    assert "events/s" in shown


@pytest.mark.anyio
async def test_rate_and_remaining_time_are_of_what_was_done_here(log: EventLog) -> None:
    for number in range(4):
        await log.tenant("blue").conversation(f"c{number}").add(user("one"))
    clock, live, view = [100.0], Live.of(log.store), ViewId("history", 1)
    rebuilding = Rebuilding(live, lambda: clock[0])
    assert str(rebuilding).startswith("0 conversations, 0 events, 0 events/s")
    rebuilding.take(Told("acquired", view, 0))
    await rebuilding.look()
    assert rebuilding.remaining is None
    await Projector(log, [HISTORY], told=rebuilding.take).rebuild("history")
    clock[0] += 2
    await rebuilding.look()
    assert str(rebuilding) == "4 of 4 conversations, 4 events, 2 events/s, about 0:00 left"
    rebuilding.total = 3_604
    assert str(rebuilding) == "4 of 3,604 conversations, 4 events, 2 events/s, about 30:00 left"
    rebuilding.total = 8_004
    assert str(rebuilding).endswith("about 1:06:40 left")
