"""The commands for groups and what they parked."""

from __future__ import annotations

import asyncio
import json
from uuid import uuid4

import pytest
import typer
from typer.testing import CliRunner

from eventlog import EventLog
from eventlog.delivery import Delivery
from eventlog.store.conformance.suite import notes
from gateway.command.groups import groups_app, parked_app
from tests.groups.running import consuming, passed, until

GROUP = "billing *"


class Command:
    """The commands on one server in a namespace of its own."""

    def __init__(self, url: str) -> None:
        self.url, self.namespace = url, f"t{uuid4().hex[:12]}"
        self._app = typer.Typer()
        self._app.add_typer(groups_app, name="groups")
        self._app.add_typer(parked_app, name="parked")

    def run(self, *arguments: str, code: int = 0) -> str:
        env = {"EVENTLOG_URL": self.url, "EVENTLOG_NAMESPACE": self.namespace}
        result = CliRunner().invoke(self._app, [*arguments], env=env)
        assert result.exit_code == code, result.output
        return result.output

    def play(self, *, mended: bool) -> None:
        """Two conversations; the second event of each is poison, or no more; until nothing more happens."""

        async def playing() -> None:
            async with EventLog.open(self.url, namespace=self.namespace) as log:
                if not mended:
                    for name in ("a", "b"):
                        await log.tenant("blue").conversation(name).append(*notes(1, 2, 3))

                async def handle(delivery: Delivery) -> None:
                    if delivery.version == 2 and not mended:
                        raise ValueError("it cannot be read")

                group = log.group(GROUP)
                async with consuming(group, handle, max_deliveries=2):
                    await passed(group)
                    if mended:
                        await until(lambda: _none(group))

        asyncio.run(playing())


async def _none(group) -> bool:  # type: ignore[no-untyped-def]
    return not [one async for one in group.parked()]


@pytest.fixture
def command(server: str) -> Command:
    played = Command(server)
    played.play(mended=False)
    return played


def test_groups_are_listed_with_lag_and_parked(command: Command) -> None:
    assert command.run("groups") == f"{GROUP}\t-\t0\t0\t0\t2\tidle\n"
    [group] = json.loads(command.run("groups", "--json"))
    assert (group["group"], group["lag"], group["parked"], group["members"]) == (GROUP, 0, 2, [])
    assert sum(one["end"] for one in group["partitions"]) == 2


def test_one_group_is_shown_partition_by_partition(command: Command) -> None:
    lines = command.run("groups", "show", GROUP).splitlines()
    assert [line.split("\t")[0] for line in lines] == [str(number) for number in range(16)]
    assert json.loads(command.run("groups", "show", GROUP, "--json"))["group"] == GROUP


def test_a_group_is_paused_and_resumed(command: Command) -> None:
    command.run("groups", "pause", GROUP)
    assert command.run("groups").endswith("\tpaused\n")
    command.run("groups", "resume", GROUP)
    assert command.run("groups").endswith("\tidle\n")


def test_parked_events_are_listed_and_shown(command: Command) -> None:
    rows = [line.split("\t") for line in command.run("parked", "list", GROUP).splitlines()]
    assert sorted((row[0], row[1], row[2], row[3], row[6]) for row in rows) == [
        ("blue", name, "2", "2", "ValueError: it cannot be read") for name in ("a", "b")
    ]
    shown = command.run("parked", "show", GROUP, "-v", "2", "-c", "a", "--tenant", "blue")
    assert "delivered 2 times" in shown
    assert "Traceback" in shown
    assert len(json.loads(command.run("parked", "list", GROUP, "--json"))) == 2


def test_parked_events_are_replayed_and_dropped(command: Command) -> None:
    command.run("parked", "drop", GROUP, "-v", "2", "-c", "a", "--tenant", "blue")
    command.run("parked", "replay", GROUP, "-v", "2", "-c", "b", "--tenant", "blue")
    command.play(mended=True)
    assert command.run("parked", "list", GROUP) == ""


def test_all_parked_events_are_replayed_at_once(command: Command) -> None:
    assert command.run("parked", "replay", GROUP, "--all").startswith("2 to be delivered again")
    command.play(mended=True)
    assert command.run("parked", "list", GROUP) == ""


def test_what_is_not_there_is_said(command: Command) -> None:
    assert "no group 'other'" in command.run("groups", "show", "other", code=1)
    assert "no group 'other'" in command.run("groups", "pause", "other", code=1)
    assert "no group 'other'" in command.run("parked", "list", "other", code=1)
    for ask in ("show", "replay", "drop"):
        said = command.run("parked", ask, GROUP, "-v", "1", "-c", "a", "--tenant", "blue", code=1)
        assert "has not parked version 1 of 'a' of 'blue'" in said
    command.run("parked", "replay", GROUP, code=2)
    command.run("parked", "drop", GROUP, "--all", "-v", "2", code=2)
