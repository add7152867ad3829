"""The command that keeps views: what it keeps, how it ends, and the house it keeps beside."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from eventlog import EventLog, user
from eventlog.errors import InvalidInput
from eventlog.store.views import ViewId
from gateway.command.duration import parse_duration
from gateway.command.own_projections import chosen, known_projections
from gateway.command.projecting import Keeping, Steps, keep, keep_house
from projections.partition import Told
from projections.views.built_in import BUILT_IN
from tests.gateway.cli import Cli
from tests.projections_command.acting import PATIENCE, ROOT, environment, read_until, say, started
from tests.projections_command.own import LENGTHS, SPEC

OWN = ("--module", f"{SPEC}LENGTHS")


def test_all_views_are_built_and_kept_once(cli: Cli) -> None:
    say(cli, "a", "one")
    done = cli.run("projections", "run", "--once")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "INFO keeping history, directory, runs, open_calls, usage\n" in done.stderr
    assert "INFO view history.1 is whole, and live\n" in done.stderr
    assert "view usage.1: 16 partitions taken over, 1 event applied" in done.stderr
    say(cli, "a", "two")
    assert "1 event applied" in cli.run("projections", "run", "usage", "--once").stderr
    lags = {one["projection"]: one["generations"][0]["lag"] for one in cli.json("projections", "list")}
    assert lags == {"history": 1, "directory": 1, "runs": 1, "open_calls": 1, "usage": 0}


@pytest.mark.parametrize(("ends_by", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_in_order(cli: Cli, ends_by: signal.Signals, code: int) -> None:
    with started(cli, "projections", "run", "usage", "runs") as process:
        said = read_until(process, "is whole, and live")
        if said.count("whole, and live") < 2:
            read_until(process, "is whole, and live")
        process.send_signal(ends_by)
        _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, told
    assert "Traceback" not in told
    for one in cli.json("projections", "list"):
        for generation in one["generations"]:
            assert generation["processes"] == []
            assert not any(part["holder"] for part in generation["partitions"])


def test_one_that_stops_does_not_stop_the_others_and_is_told_at_the_end(cli: Cli) -> None:
    say(cli, "a", "one", "poison")
    with started(cli, "projections", "run", "usage", "lengths", *OWN) as process:
        said = read_until(process, "cannot apply")
        if "view usage.1 is whole" not in said:
            read_until(process, "view usage.1 is whole")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 3
    assert (
        "ERROR projection 'lengths' cannot apply conversation 'a' of 'default', version 2 (message-added): "
        "ValueError: it cannot be read; it stands before that event and nothing was skipped"
    ) in said


@pytest.mark.parametrize("once", [("--once",), ()])
def test_it_ends_when_every_one_has_stopped(cli: Cli, once: tuple[str, ...]) -> None:
    say(cli, "a", "one", "poison")
    done = cli.run("projections", "run", "lengths", *OWN, *once)
    assert done.exit_code == 3
    assert done.stderr.count("cannot apply conversation 'a'") == 1


def test_where_one_stops_the_others_catch_up(cli: Cli) -> None:
    say(cli, "a", "one", "poison")
    assert cli.run("projections", "run", "lengths", "usage", *OWN, "--once").exit_code == 3
    [usage] = [one for one in cli.json("projections", "list") if one["projection"] == "usage"]
    assert (usage["live"], usage["generations"][0]["lag"]) == (1, 0)


def test_what_cannot_be_applied_waits_where_that_is_wanted(cli: Cli) -> None:
    say(cli, "a", "one", "poison")
    say(cli, "b", "one")
    done = cli.run("projections", "run", "lengths", *OWN, "--once", "--on-error", "wait")
    assert done.exit_code == 0
    assert "ERROR view lengths.1" in done.stderr
    assert "waits: version 2 (message-added): ValueError: it cannot be read" in done.stderr


def test_a_projection_of_ones_own_is_found_in_the_working_directory(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from tests.projections_command.own import LENGTHS\n")
    say(cli, "a", "one")
    code = "from gateway.command import main; main()"
    arguments = [
        sys.executable,
        "-P",
        "-c",
        code,
        "projections",
        "run",
        "lengths",
        "--once",
        "--module",
        "mine:LENGTHS",
    ]
    env = environment(cli, PYTHONPATH=str(ROOT))
    done = subprocess.run(arguments, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "view lengths.1 is whole, and live" in done.stderr
    assert cli.run("projections", "verify", "lengths", *OWN).exit_code == 0
    assert cli.out("projections", "rebuild", "lengths", *OWN).startswith("generation 2 of lengths is live: 1 event")


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("lengths", "--module 'lengths': give the module and the projection in it, as pkg.mod:NAME"),
        (":LENGTHS", "give the module and the projection in it"),
        ("no.such:THING", "no.such cannot be imported: ModuleNotFoundError: No module named 'no'"),
        (f"{SPEC}MISSING", "MISSING is not there: name an instance"),
        (f"{SPEC}NUMBER", "NUMBER is no projection: name an instance"),
        (f"{SPEC}Lengths", "Lengths is no projection: name an instance"),
        (f"{SPEC}A_DIRECTORY", "there is a projection 'directory' already: give yours another name"),
        (f"{SPEC}NAMELESS", "the projection has no name: set `name` in its class"),
    ],
)
def test_a_module_that_holds_no_projection_is_refused(spec: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        known_projections([spec])
    assert problem in str(refused.value)


def test_the_projections_of_modules_come_after_the_built_in_ones() -> None:
    known = known_projections([f"{SPEC}LENGTHS"])
    assert known == [*BUILT_IN, LENGTHS]
    assert chosen(["lengths", "usage", "lengths"], known) == [LENGTHS, BUILT_IN[-1]]
    assert chosen([], known) == known


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("45s", timedelta(seconds=45)),
        ("30m", timedelta(minutes=30)),
        ("12h", timedelta(hours=12)),
        (" 90d ", timedelta(days=90)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_a_length_of_time_is_a_number_with_its_unit(text: str, found: timedelta) -> None:
    assert parse_duration(text) == found


@pytest.mark.parametrize("text", ["", "90", "d", "0d", "-1d", "1.5h", "1y", "1d 2h", "٣d", "9999999999d", "999999999d"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no length of time: give a number and s, m, h, d or w, as 90d"):
        parse_duration(text)


def test_wrong_usage_is_told_before_anything_is_opened(cli: Cli) -> None:
    for arguments in (
        ("--expire-idle", "soon"),
        ("--trim-feed", "0"),
        ("--batch", "0"),
        ("--lease", "0"),
        ("--on-error", "skip"),
        ("--module", "mine"),
    ):
        assert cli.run("projections", "run", *arguments).exit_code == 2


def test_feeds_are_trimmed_when_that_is_asked_for(cli: Cli) -> None:
    for number in range(4):
        say(cli, "a", f"{number}")
    cli.out("projections", "run", "usage", "--once")
    done = cli.run("projections", "run", "usage", "--once", "--trim-feed", "1")
    assert (done.exit_code, "INFO 3 entries trimmed from the feeds\n" in done.stderr) == (0, True), done.stderr


def test_idle_conversations_expire_when_that_is_asked_for(cli: Cli) -> None:
    say(cli, "a", "one")
    cli.out("projections", "run", "directory", "--once")
    assert "expired" not in cli.run("projections", "run", "directory", "--once", "--expire-idle", "1h").stderr
    deadline = time.monotonic() + PATIENCE
    while "INFO 1 idle conversation expired" not in (
        cli.run("projections", "run", "directory", "--once", "--expire-idle", "1s").stderr
    ):
        assert time.monotonic() < deadline
    cli.out("projections", "run", "directory", "--once")
    assert cli.json("conversations", "default")["items"] == []


@pytest.mark.anyio
async def test_house_is_kept_while_views_are(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = anyio.Event()

    async def one_round(*_: object) -> None:
        rounds.set()

    monkeypatch.setattr("gateway.command.projecting.keep_house", one_round)
    how = Keeping("stop", 100, 1.0, once=False, trim=5)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep, log, BUILT_IN[:1], how)
            await rounds.wait()
            tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_no_house_is_kept_unless_that_is_asked_for(log: EventLog) -> None:
    await log.tenant("blue").conversation("a").add(user("one"))
    await keep_house(log, Keeping("stop", 100, 1.0, once=False))
    assert (await log.tenant("blue").conversation("a").head()).last.version == 1


def test_steps_are_told_together(caplog: pytest.LogCaptureFixture) -> None:
    clock = [100.0]
    caplog.set_level("INFO", "eventlog.command")
    steps, view = Steps(lambda: clock[0]), ViewId("usage", 3)
    for events in (2_000, 0, 1_000):
        steps.take(Told("committed", view, 0, 1, events))
    steps.take(Told("acquired", view, 0))
    steps.take(Told("fetched", view, 0, 1, 7))
    clock[0] += 10
    steps.tell()
    steps.tell()
    assert [one.getMessage() for one in caplog.records] == [
        "view usage.3: 1 partition taken over, 3,000 events applied (300/s)"
    ]
