"""How a command ends: exit codes, what it says, and where."""

from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from typer.testing import CliRunner

from eventlog.server.binary import find
from gateway.command import app
from gateway.command.summary import plain
from tests.doctor.conftest import answers, running
from tests.gateway.cli import Cli

SHORT = {"id": "c", "messages": [{"role": "assistant", "content": "x"}]}
COMMANDS = (
    "demo",
    "import",
    "export",
    "append",
    "log",
    "follow",
    "history",
    "explain",
    "runs",
    "recover",
    "verify",
    "doctor",
    "rewind",
    "compact",
)
READING = ("log", "history", "explain", "runs")
LINE = json.dumps(
    {"id": "c", "messages": [{"role": "user", "content": "🌍"}, {"role": "assistant", "content": "x" * 5000}]}
)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from gateway.command import main; main()", *arguments]


def environment(cli: Cli | None = None, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    return {**kept, **(cli.env if cli else {}), **more}


OWN_CODES = {
    "import": ["0    done", "3    some lines were refused, the others imported"],
    "export": ["0    done", "1    an error, or a conversation was left out"],
    "recover": ["0    nothing is open, or something was done", "3    open runs were found, nothing was done"],
    "verify": ["0    no fault", "1    a fault was found; or an error"],
    "doctor": [
        "0    done",
        "1    the server is unreachable or unfit; or an error",
        "2    wrong usage; with --strict:",
    ],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_states_its_own_exit_codes_alone(name: str) -> None:
    result = CliRunner().invoke(app, [name, "--help"], terminal_width=200)
    assert result.exit_code == 0
    for option in ("--url", "--data", "--durability", "EVENTLOG_DURABILITY"):
        assert option in result.stdout
    codes = result.stdout.split("Exit codes:\n")[1]
    for line in ("2    wrong usage", "130  interrupted", *OWN_CODES.get(name, ["0    done", "1    an error, told on"])):
        assert line in codes
    numbers = [int(line.split()[0]) for line in codes.splitlines() if line.strip()]
    assert numbers == [0, 1, 2, *([3] if name in ("import", "recover") else []), 130]
    assert ("--json" in result.stdout) == (name not in ("demo", "export"))


def test_the_list_of_commands_says_each_in_a_whole_sentence_at_80_columns() -> None:
    lines = CliRunner().invoke(app, ["--help"], terminal_width=80, env={"COLUMNS": "80"}).stdout.splitlines()
    listed = {line.split()[0]: line for line in lines if line.startswith("  ") and line.strip()}
    assert all(listed[name].endswith(".") and not listed[name].endswith("...") for name in COMMANDS)
    assert max(map(len, lines)) <= 80


def test_the_help_of_log_names_the_columns_of_a_pipe() -> None:
    shown = " ".join(CliRunner().invoke(app, ["log", "--help"]).stdout.split())
    assert "parted by tabs: version, cursor, time, type, run, what it says" in shown


def test_the_version_is_that_of_the_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", {"agent-eventlog": "1.2.3"}.__getitem__)
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, "eventlog 1.2.3\n")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Connect call failed.. See its URL", "Connect call failed. See its URL"),
        ("Connect call failed..", "Connect call failed."),
        ("Authentication required.; write them", "Authentication required; write them"),
        ("wait...", "wait..."),
        ("../data: no such directory", "../data: no such directory"),
        ("events[0].data: Value error, must be text", "events[0].data: must be text"),
    ],
)
def test_what_libraries_put_into_a_problem_is_left_out(said: str, shown: str) -> None:
    assert plain(said) == shown


def test_a_server_that_does_not_answer_is_told_in_whole_sentences() -> None:
    result = CliRunner().invoke(app, ["history", "-c", "c", "--url", "redis://127.0.0.1:1"])
    assert result.exit_code == 1
    assert ".." not in result.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_knows_the_durabilities(name: str) -> None:
    for how in ({"args": ["--durability", "soon"]}, {"env": {"EVENTLOG_DURABILITY": "soon"}}):
        args = {"import": "- --format openai-chat --mode per-run", "rewind": "-c c --to 0", "demo": "", "export": ""}
        given = args.get(name, "-c c --through 1 --message m" if name == "compact" else "")
        if name in ("append", "log", "follow", "history", "explain", "runs"):
            given = "-c c"
        result = CliRunner().invoke(app, [name, *given.split(), *how.get("args", [])], env=how.get("env", {}))
        assert result.exit_code == 2
        assert "'soon' is not a durability" in " ".join(result.stderr.split())


@pytest.fixture
def forgetful() -> Iterator[str]:
    """The URL of a server that keeps nothing on disk."""
    with running(str(find().path), "--appendonly", "no", ready=answers) as port:
        yield f"redis://127.0.0.1:{port}"


def test_a_server_that_keeps_nothing_is_used_where_the_durability_says_so(forgetful: str) -> None:
    def code(arguments: str, durability: str) -> int:
        env = {"EVENTLOG_URL": forgetful, "EVENTLOG_DURABILITY": durability}
        return CliRunner().invoke(app, arguments.split(), env=env).exit_code

    for arguments in ("append -c c --message m", "log -c c", "export", "recover", "doctor", "demo"):
        assert code(arguments, "") == 1
        assert code(arguments, "memory") == 0
    assert code("doctor --durability always", "memory") == 1
    assert code("verify", "") == 0


def test_the_demo_checks_the_server_before_it_says_anything() -> None:
    result = CliRunner().invoke(app, ["demo", "--url", "redis://127.0.0.1:1"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "the server does not answer" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        "nonsense",
        "log",
        "history -c c --view all",
        "history -c c --last 0",
        "history -c c --at -1",
        "history -c c --repair --view everything",
        "explain -c c --view everything",
        "log -c c --limit 0",
        "import nowhere.jsonl --format openai-chat --mode per-run",
        "import . --format openai-chat --mode per-run",
        "import - --format openai-chat",
        "import - --format other --mode per-run",
        "import - --format openai-chat --mode per-day",
        "append -c c nowhere.json",
        "append -c c --message=",
        "compact -c c --through 1 --message=",
        "rewind -c c",
        "rewind -c c --to -1",
        "compact -c c --through 0 --message m",
        "compact -c c --through 1",
        "compact -c c --through 1 --message m --file -",
        "runs -c c --color",
    ],
)
def test_wrong_usage_ends_with_2_and_touches_no_server(arguments: str) -> None:
    result = CliRunner().invoke(app, arguments.split(), env={"EVENTLOG_URL": "redis://127.0.0.1:1"})
    assert result.exit_code == 2
    assert "Usage:" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["log", "-c", "c", "--after", "7"], "'7' is not a cursor"),
        (["log", "-c", "c", "--after", "0-0~00000000"], "is of another conversation or tenant"),
        (["history", "-c", ""], "conversation '' has 0 bytes"),
        (["history", "-c", "x" * 1001], "has 1,001 bytes"),
        (["history", "-c", "c", "--at", "9"], "at=9: the log of conversation 'c' ends at version 0"),
        (["runs", "-c", "c", "--tenant", ""], "tenant '' has 0 bytes"),
        (["runs", "-c", "c", "--namespace", "a b"], "namespace 'a b'"),
        (["runs", "-c", "c", "--url", "http://localhost"], "not the URL of a server"),
        (["runs", "-c", "c", "--url", "redis://127.0.0.1:1"], "the server does not answer"),
        (["append", "-c", "c", "--message", "m", "--expected", "soon"], "'soon' is not a cursor"),
        (["append", "-c", "c", "--message", "\ud800"], "lone surrogate"),
        (["rewind", "-c", "c", "--to", "1"], "cannot rewind to version 1"),
        (["compact", "-c", "c", "--through", "1", "--message", "m"], "cannot compact through version 1"),
        (["export", "--output", "/nowhere/at/all"], "the directory '/nowhere/at' does not exist: make it"),
        (["append", "-c", "c"], "nothing on stdin: give FILE or --message"),
        (["compact", "-c", "c", "--through", "1", "--file", "-"], "nothing on stdin: give a JSON list of messages"),
    ],
)
def test_an_error_ends_with_1_and_one_line_on_stderr(cli: Cli, arguments: list[str], problem: str) -> None:
    result = cli.run(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert problem in result.stderr
    assert result.stderr.startswith("eventlog: ")
    assert len(result.stderr.splitlines()) == 1


def test_the_process_ends_with_the_same_codes_and_no_traceback(cli: Cli) -> None:
    def code(*arguments: str, stdin: str = "") -> int:
        done = subprocess.run(
            command(*arguments), env=environment(cli), input=stdin, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr
        return done.returncode

    importing = ("import", "-", "--format", "openai-chat", "--mode", "per-run")
    assert code(*importing, stdin=LINE) == 0
    assert code(*importing, stdin="{") == 3
    assert code("log", "-c", "c", "--after", "x") == 1
    assert code("log") == 2
    assert code("history", "-c", b"\xff".decode(errors="surrogateescape")) == 1


def test_a_pipe_that_is_closed_early_leaves_no_traceback(cli: Cli) -> None:
    cli.import_lines(*(json.dumps({**json.loads(LINE), "id": f"c{number}"}) for number in range(40)))
    pipe = subprocess.PIPE
    with subprocess.Popen(command("export"), env=environment(cli), stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


IMPORT = "import - --format openai-chat --mode per-service-call"
WRITERS = (
    "history -c c",
    "log -c c --json",
    "runs -c c",
    "export",
    IMPORT,
    "doctor --json",
    "demo",
    "--help",
)


def shell(cli: Cli, arguments: str, redirection: str) -> subprocess.CompletedProcess[str]:
    """The command as a shell starts it, with its streams redirected."""
    line = f"{shlex.join(command(*arguments.split()))} {redirection}"
    return subprocess.run(
        line, shell=True, env=environment(cli), input=LINE, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("arguments", WRITERS)
def test_a_closed_stdout_ends_as_a_broken_pipe_does(cli: Cli, arguments: str) -> None:
    cli.import_lines(LINE)
    done = shell(cli, arguments, ">&-")
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("arguments", WRITERS)
def test_a_full_stdout_is_an_error_of_one_line(cli: Cli, arguments: str) -> None:
    cli.import_lines(LINE)
    done = shell(cli, arguments, "> /dev/full")
    assert done.returncode == 1
    assert done.stderr.startswith("eventlog: [Errno 28] No space left on device")
    assert len(done.stderr.splitlines()) == 1


def test_what_was_to_be_appended_is_there_though_the_command_could_not_say_so(cli: Cli) -> None:
    for redirection in (">&-", "> /dev/full", "0>&- >&- 2>&-"):
        assert shell(cli, "append -c c --message kept", redirection).returncode == 1
    assert [message["parts"][0]["content"] for message in cli.json("history", "-c", "c")["messages"]] == ["kept"] * 3


@pytest.mark.parametrize("redirection", ["2>&-", "2> /dev/full"])
def test_without_stderr_the_output_is_the_same_and_an_error_still_one(cli: Cli, redirection: str) -> None:
    cli.import_lines(LINE)
    done = shell(cli, "history -c c --json", redirection)
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["messages"]) == 2
    done = shell(cli, "history -c c --at 99", redirection)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    done = shell(cli, "history", redirection)
    assert done.returncode in {1, 2}
    assert (done.stdout, done.stderr) == ("", "")


def test_a_closed_stdin_is_empty(cli: Cli) -> None:
    done = shell(cli, "append -c c", "<&-")
    assert done.returncode == 1
    assert done.stderr == "eventlog: nothing on stdin: give FILE or --message\n"


@pytest.fixture
def guest(cli: Cli) -> Iterator[Cli]:
    """The command as a user who may not see the server's settings."""
    with Redis.from_url(cli.url) as client:
        name = cli.namespace
        client.acl_setuser(name, enabled=True, passwords="+word", keys="*", commands=["+@all", "-config"])
        yield Cli(f"{cli.url}?username={name}&password=word", cli.namespace)
        client.acl_deluser(name)


@pytest.mark.parametrize("arguments", ["history -c c --json", "log -c c --json", "export", "runs -c c", IMPORT])
def test_what_the_server_warns_of_is_said_on_stderr_and_leaves_the_output_alone(
    cli: Cli, guest: Cli, arguments: str
) -> None:
    cli.import_lines(LINE)
    quiet, told = (one.run(*arguments.split(), stdin=LINE) for one in (cli, guest))
    assert (quiet.stderr, quiet.exit_code, told.exit_code) == ("", 0, 0)
    assert told.stdout == quiet.stdout
    assert told.stdout
    assert told.stderr.startswith("eventlog: warning: CONFIG is forbidden (")
    assert len(told.stderr.splitlines()) == 1


def test_a_server_that_wants_a_password_ends_with_1_and_says_where_to_give_it(cli: Cli) -> None:
    result = Cli(f"{cli.url}?username=nobody&password=wrong", cli.namespace).run("history", "-c", "c")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "redis://USER:PASSWORD@HOST" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_what_the_output_cannot_encode_is_shown_by_its_number(cli: Cli) -> None:
    cli.import_lines(LINE)
    done = subprocess.run(
        command("history", "-c", "c"),
        env=environment(cli, PYTHONIOENCODING="latin-1"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "\n  \\U0001f30d\n" in done.stdout


def test_an_import_that_is_interrupted_while_it_writes_ends_with_130(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text("\n".join(json.dumps({**SHORT, "id": f"c{number}"}) for number in range(20_000)))
    with importing(cli, str(file)) as process:
        deadline = time.monotonic() + 60
        while not cli.exported():
            assert process.poll() is None
            assert time.monotonic() < deadline
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert all(line == {**SHORT, "id": line["id"]} for line in cli.exported())


def test_an_import_that_is_interrupted_while_it_reads_ends_with_130(cli: Cli) -> None:
    with importing(cli, "-") as process:
        assert process.stdin is not None
        # More than a pipe holds: when all is written, the command is reading.
        process.stdin.write(b" " * 1_000_000)
        process.stdin.flush()
        # The interpreter misses a signal that comes in the instant before it begins to wait: a person does it again.
        for _ in range(6):
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
                break
        assert process.stderr is not None
        assert (process.returncode, process.stderr.read()) == (130, b"")
        with suppress(BrokenPipeError):
            process.stdin.close()


@contextmanager
def importing(cli: Cli, source: str) -> Iterator[subprocess.Popen[bytes]]:
    """An import in a process of its own, which does not outlive the test."""
    pipe = subprocess.PIPE
    arguments = command("import", source, "--format", "openai-chat", "--mode", "per-run")
    with subprocess.Popen(arguments, env=environment(cli), stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


def test_without_a_url_the_embedded_server_keeps_its_files_in_the_data_directory(tmp_path: Path) -> None:
    env = {"EVENTLOG_URL": "", "EVENTLOG_DATA": str(tmp_path / "data")}
    first = CliRunner().invoke(app, ["append", "-c", "c", "--message", "kept"], env=env)
    assert (first.exit_code, first.stderr) == (0, "")
    shown = CliRunner().invoke(app, ["history", "-c", "c", "--data", str(tmp_path / "data")], env={"EVENTLOG_URL": ""})
    assert "  kept\n" in shown.stdout
    other = CliRunner().invoke(app, ["history", "-c", "c", "--data", str(tmp_path / "other")], env=env)
    assert "kept" not in other.stdout


def test_tenants_do_not_see_each_other(cli: Cli) -> None:
    cli.out("append", "-c", "b/c", "--tenant", "a", "--message", "secret")
    assert cli.json("history", "-c", "c", "--tenant", "a/b")["messages"] == []
    assert cli.exported("--tenant", "a/b") == []
    assert len(cli.exported("--tenant", "a")) == 1


def test_the_demo_is_called_with_where_to_play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Any] = []

    async def demo(*arguments: Any) -> None:
        asked.append(arguments)

    monkeypatch.setattr("gateway.demo.demo", demo)
    result = CliRunner().invoke(app, ["demo", "--data", str(tmp_path)], env={"EVENTLOG_URL": "unix:///x"})
    assert result.exit_code == 0
    [(url, data, console, durability)] = asked
    assert (url, data, durability) == ("unix:///x", tmp_path, "everysec")
    assert not console.is_terminal


def test_a_terminal_gets_a_table_and_a_pipe_plain_lines(cli: Cli) -> None:
    cli.import_lines(LINE)
    ours, theirs = pty.openpty()
    done = subprocess.run(command("runs", "-c", "c"), env=environment(cli, TERM="xterm"), stdout=theirs, check=True)
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert done.returncode == 0
    assert "completed" in shown
    plain = cli.out("runs", "-c", "c")
    assert "\x1b" not in plain
    assert plain.count("\n") == 1
    assert len(plain.split("\t")) == 10
