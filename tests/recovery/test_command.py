"""The command ``eventlog recover``: what it shows, what it ends, and how it ends itself."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import anyio
import pytest
import typer
from typer.testing import CliRunner, Result

from eventlog import EventLog, Tenant
from gateway.command.recover import LEFT_OPEN, recover
from projections.repair import NO_RESULT
from tests.recovery.left import events_of, expired, left, opened

APP = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
APP.command()(recover)
NOTHING_OPEN = "no run is open\n"


@dataclass(frozen=True)
class Shell:
    """The command on one server, in a namespace of its own."""

    url: str
    namespace: str

    def run(self, *arguments: str) -> Result:
        environment = {"EVENTLOG_URL": self.url, "EVENTLOG_NAMESPACE": self.namespace}
        result = CliRunner().invoke(APP, list(arguments), env=environment, terminal_width=200)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def json(self, code: int, *arguments: str) -> Any:
        result = self.run(*arguments, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    def on(self, work: Callable[[Tenant], Awaitable[Any]]) -> Any:
        """What ``work`` makes of the tenant ``default``."""

        async def with_tenant() -> Any:
            async with EventLog.open(self.url, namespace=self.namespace) as log:
                return await work(log.tenant("default"))

        return anyio.run(with_tenant)


@pytest.fixture
def shell(server: str) -> Shell:
    return Shell(server, f"t{uuid4().hex[:12]}")


@pytest.fixture
def lost(shell: Shell) -> str:
    """The expired run of the conversation ``lost``."""

    async def work(tenant: Tenant) -> str:
        run, _ = await left(tenant.conversation("lost"))
        await expired(tenant.conversation("lost"), run.id)
        return run.id

    return str(shell.on(work))


@pytest.fixture
def alive(shell: Shell) -> str:
    """The held run of the conversation ``alive``."""

    async def work(tenant: Tenant) -> str:
        return (await opened(tenant.conversation("alive"), lease=60)).id

    return str(shell.on(work))


def types_in(shell: Shell, conversation: str) -> list[str]:
    events = shell.on(lambda tenant: events_of(tenant.conversation(conversation)))
    return [event.type for event in events]


def test_nothing_open_ends_with_0(shell: Shell) -> None:
    result = shell.run()
    assert (result.exit_code, result.stdout) == (0, NOTHING_OPEN)
    assert shell.json(0) == []


def test_a_conversation_without_events_is_said_to_have_none(shell: Shell) -> None:
    result = shell.run("-c", "mispelt")
    assert (result.exit_code, result.stdout) == (0, NOTHING_OPEN)
    assert result.stderr == "eventlog: conversation 'mispelt' of 'default' has no events\n"


def test_open_runs_are_listed_and_end_with_3(shell: Shell, lost: str, alive: str) -> None:
    result = shell.run()
    assert result.exit_code == LEFT_OPEN == 3
    out = result.stdout
    assert f"  run {lost} from version 1: per-service-call, agent watch, expired\n" in out
    assert f"  run {alive} from version 1: per-service-call, agent watch, held\n" in out
    for line in (
        *("conversation lost, version 10\n", "conversation alive, version 1\n"),
        *("    last completed service call: 1\n", "    last completed service call: none\n"),
        "    in doubt: service call 2, started at version 10\n",
        "    no result: call b look({}) at version 5\n",
        "    waits for approval: call c look({}) at version 6\n",
        "    not sent yet: the result at version 8, which answers the call at version 4\n",
    ):
        assert line in out, out
    assert out.count("    held by ") == 2


def test_only_the_conversation_or_the_run_that_is_named_is_shown(shell: Shell, lost: str, alive: str) -> None:
    assert [one["conversation"] for one in shell.json(3, "-c", "alive")] == ["alive"]
    (one,) = shell.json(3, "-c", "lost", "--run", lost)
    assert [run["run"] for run in one["found"]["runs"]] == [lost]
    assert shell.json(0, "-c", "lost", "--run", alive) == []


def test_json_holds_all_that_is_known(shell: Shell, lost: str) -> None:
    (one,) = shell.json(3)
    (run,) = one["found"]["runs"]
    assert (one["conversation"], one["done"], one["problem"]) == ("lost", [], None)
    assert (run["run"], run["expired"], run["last_completed"], run["approvals"]) == (lost, True, 1, [6])
    assert run["in_doubt"] == [{"number": 2, "started": 10}]
    assert [(call["call_id"], call["awaits_approval"]) for call in run["unanswered"]] == [("b", False), ("c", True)]
    assert run["unsent_results"] == [{"version": 8, "answers": 4}]


@pytest.mark.parametrize("where", [(), ("-c", "lost")], ids=["all of the tenant's", "one conversation"])
def test_abort_ends_expired_runs_and_leaves_held_ones(
    shell: Shell, lost: str, alive: str, where: tuple[str, ...]
) -> None:
    result = shell.run("--abort", *where)
    assert result.exit_code == 0
    assert "    aborted: expired, at version 11\n" in result.stdout
    assert types_in(shell, "lost")[-1] == "run-aborted"
    assert types_in(shell, "alive") == ["run-started"]
    assert shell.run("-c", "lost").exit_code == 0
    assert [one["conversation"] for one in shell.json(3)] == ["alive"]


def test_seal_tells_how_each_call_that_stays_open_is_answered(shell: Shell, lost: str) -> None:
    out = shell.run("--seal").stdout
    for line in (
        "    sealed at version 11\n",
        "    still open: call a at version 4, its result is recorded: the next run sends it\n",
        "    still open: call b at version 5, a marked result is recorded: the next run sends it\n",
        "    still open: call c at version 6, waits for approval\n",
    ):
        assert line in out, out
    answer = shell.on(lambda tenant: events_of(tenant.conversation("lost")))[-1]
    assert (answer.run, answer.data["output"], answer.data["synthetic"]) == (None, NO_RESULT, True)


def test_seal_in_json(shell: Shell, lost: str) -> None:
    (one,) = shell.json(0, "--seal", "-c", "lost")
    (done,) = one["done"]
    assert (done["run"], done["reason"], done["version"]) == (lost, "sealed", 11)
    assert {call["call_id"]: call["why"] for call in done["open_calls"]} == {
        "a": "recorded",
        "b": "sealed",
        "c": "approval",
    }


@pytest.mark.parametrize("action", ["--abort", "--seal"])
def test_where_only_held_runs_are_found_nothing_is_done_and_it_ends_with_3(
    shell: Shell, alive: str, action: str
) -> None:
    for where in ((), ("-c", "alive")):
        assert shell.run(action, *where).exit_code == 3
    assert types_in(shell, "alive") == ["run-started"]


@pytest.mark.parametrize("action", ["--abort", "--seal"])
def test_a_held_run_that_is_named_is_refused_and_forced(shell: Shell, alive: str, action: str) -> None:
    result = shell.run("-c", "alive", "--run", alive, action)
    assert result.exit_code == 1
    assert "its lease runs until" in result.stderr
    assert shell.run("-c", "alive", "--run", alive, action, "--force").exit_code == 0
    assert types_in(shell, "alive") == ["run-started", "run-aborted"]


def test_a_run_that_is_named_and_not_open_is_an_error(shell: Shell, lost: str) -> None:
    shell.run("--abort")
    result = shell.run("-c", "lost", "--run", lost, "--abort")
    assert result.exit_code == 1
    assert "is not open" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        "--abort --seal",
        "--run r",
        "--force",
        "--force --abort",
        "-c c --force --abort",
        "-c c --run r --force",
        "--nonsense",
    ],
)
def test_wrong_usage_ends_with_2(shell: Shell, arguments: str) -> None:
    assert shell.run(*arguments.split()).exit_code == 2


def test_what_a_terminal_would_obey_is_not_written(shell: Shell) -> None:
    async def work(tenant: Tenant) -> None:
        await opened(tenant.conversation("evil\x1b[31m\nname"), operation_id="run\x1b[0m")

    shell.on(work)
    out = shell.run().stdout
    assert "\x1b" not in out
    assert "conversation evil\\x1b[31m name, version 1\n" in out
