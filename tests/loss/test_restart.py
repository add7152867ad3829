"""A server that comes back with all it acknowledged disturbs nobody; one that lost something is found out.

A server that is killed has lost nothing only with appendfsync ``always``. With ``everysec`` it puts writing off while
an fsync runs, and has by then acknowledged what is not yet in its file.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from eventlog import Appended, Conversation, Event, EventLog, LogLost
from eventlog.server.embedded import EmbeddedServer, Fsync
from tests.loss.log import add, chat, events, opened, operations
from tests.loss.server import Server, kill

pytestmark = pytest.mark.anyio

WRITERS, CONVERSATIONS = 50, 5


class Load:
    """Fifty writers on five conversations, ten sharing each handle, until they are told to stop.

    Whoever is told of a loss opens the conversation anew, for all ten.
    """

    def __init__(self, log: EventLog) -> None:
        self.outcomes: list[dict[str, Appended]] = [{} for _ in range(WRITERS)]
        self.given: dict[Conversation, list[Appended]] = defaultdict(list)
        """What each handle was given."""
        self.told: set[Conversation] = set()
        """The handles that were told of a loss."""
        self.is_over = False
        self._log = log
        self._handles = [chat(log, name) for name in map(str, range(CONVERSATIONS))]

    async def write(self, writer: int) -> None:
        at, mine = writer % CONVERSATIONS, self.outcomes[writer]
        number = 0
        while not self.is_over:
            number, handle = number + 1, self._handles[at]
            try:
                outcome = await add(handle, f"{writer}-{number}")
            except LogLost:
                self.told.add(handle)
                if self._handles[at] is handle:
                    self._handles[at] = chat(self._log, str(at))
            else:
                mine[outcome.operation_id] = outcome
                self.given[handle].append(outcome)

    async def goes_on(self, more: int = 3) -> None:
        """Wait until every writer has appended some more."""
        wanted = [len(mine) + more for mine in self.outcomes]
        with anyio.fail_after(30):
            while any(len(mine) < enough for mine, enough in zip(self.outcomes, wanted, strict=True)):
                await anyio.sleep(0.005)

    async def check(self) -> None:
        """Each acknowledged operation is there once, in its caller's order, and nothing else is."""
        for number in range(CONVERSATIONS):
            there = await self._whole(number)
            at = {event.operation_id: (event.version, event.stamp) for event in there}
            for writer in range(number, WRITERS, CONVERSATIONS):
                mine = self.outcomes[writer]
                own = [operation for operation in operations(there) if operation.startswith(f"{writer}-")]
                assert own == list(mine)
                assert all(outcome.cursor[:2] == at[operation] for operation, outcome in mine.items())

    async def check_that_losses_were_told(self) -> None:
        """What is there is whole; a handle that was given something that is not there was told, or is now."""
        for number in range(CONVERSATIONS):
            there = {(event.version, event.stamp) for event in await self._whole(number)}
            for handle, given in self.given.items():
                if handle.id == str(number) and handle not in self.told:
                    lost = [outcome for outcome in given if outcome.cursor[:2] not in there]
                    try:
                        await add(handle, f"probe-{number}")
                    except LogLost:
                        assert lost, "a handle that lost nothing was disturbed"
                    else:
                        assert not lost, f"nobody was told that {len(lost)} acknowledged operations are gone"

    async def _whole(self, number: int) -> list[Event]:
        handle = chat(self._log, str(number))
        there = await events(handle)
        assert [event.version for event in there] == list(range(1, len(there) + 1))
        assert (await handle.head()).last[:2] == (there[-1].version, there[-1].stamp)
        assert len(set(operations(there))) == len(there), "an operation is there twice"
        for writer in range(number, WRITERS, CONVERSATIONS):
            own = [int(name.partition("-")[2]) for name in operations(there) if name.startswith(f"{writer}-")]
            assert own == sorted(own), "not in its caller's order"
        return there


@pytest.mark.parametrize("how", ["in order", "killed"])
async def test_no_writer_sees_a_restart(executable: str, how: str) -> None:
    fsync = "always" if how == "killed" else "everysec"
    async with Server(executable, fsync=fsync) as server, opened(server.url, deadline=30) as log:
        load = Load(log)
        async with anyio.create_task_group() as writers:
            for writer in range(WRITERS):
                writers.start_soon(load.write, writer)
            for _ in range(3):
                await load.goes_on()
                if how == "killed":
                    server.kill()
                else:
                    await server.stop()
                await server.start()
            await load.goes_on()
            load.is_over = True
        await load.check()


async def test_no_reader_or_idle_writer_sees_a_restart(executable: str) -> None:
    async with Server(executable, fsync="always") as server, opened(server.url, deadline=30) as log:
        handle, idle = chat(log), chat(log)
        await add(idle, "a")
        last = await add(handle, "b", "c")
        for is_killed in (False, True):
            if is_killed:
                server.kill()
            else:
                await server.stop()
            await server.start()
            assert await events(chat(log), last.cursor) == []
        assert (await add(handle, "d")).first == 4
        assert (await add(idle, "e")).first == 5


async def kill_twenty_times(load: Load, data: Path, executable: str, fsync: Fsync, server: EmbeddedServer) -> None:
    """Put the load on the embedded server of ``data``, and kill that again and again."""
    async with AsyncExitStack() as users, anyio.create_task_group() as writers:
        for writer in range(WRITERS):
            writers.start_soon(load.write, writer)
        for _ in range(20):
            await load.goes_on(1)
            kill(server.pid)
            former, server = server, await EmbeddedServer.open(data, executable=executable, fsync=fsync)
            users.push_async_callback(server.close)
            assert server.url == former.url
            assert server.pid != former.pid
        await load.goes_on()
        load.is_over = True


@pytest.fixture
async def data() -> AsyncIterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="killed"))
    yield home
    shutil.rmtree(home)


async def test_an_embedded_server_that_writes_always_loses_and_doubles_nothing_when_killed(
    executable: str, data: Path
) -> None:
    server = await EmbeddedServer.open(data, executable=executable, fsync="always")
    async with server, opened(server.url, deadline=30) as log:
        load = Load(log)
        await kill_twenty_times(load, data, executable, "always", server)
        async with await EmbeddedServer.open(data, executable=executable):
            await load.check()
        assert not load.told


async def test_what_an_embedded_server_that_writes_every_second_loses_when_killed_is_told(
    executable: str, data: Path
) -> None:
    server = await EmbeddedServer.open(data, executable=executable)
    async with server, opened(server.url, deadline=30) as log:
        load = Load(log)
        await kill_twenty_times(load, data, executable, "everysec", server)
        async with await EmbeddedServer.open(data, executable=executable):
            await load.check_that_losses_were_told()
