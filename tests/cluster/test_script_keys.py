"""Every script is given keys of one slot. That it touches no others is read in its text, with the layout's tests."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest

from eventlog import EventLog, user
from eventlog.delivery import Delivery
from eventlog.housekeeping import trim_feeds
from eventlog.store.beside import readers_beside
from eventlog.store.redis import script, views
from eventlog.store.redis.routing import slot_of
from eventlog.store.redis.script import Script
from eventlog.store.redis.wire import Packed, pack
from projections import BUILT_IN, Projector, Verifying, history
from projections.live import Live
from projections.status import drop, forget, retry, rollback
from tests.groups.running import consuming, passed, until

pytestmark = pytest.mark.anyio
SCRIPTS = {
    Script.load(path.name).sha: path.name
    for path in files("eventlog.store.redis").iterdir()
    if path.name.endswith(".lua")
}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[tuple[str, ...]]]:
    """Script -> the keys of each time that it was run."""
    found: dict[str, list[tuple[str, ...]]] = {}

    def recorded(command: str, *arguments: Any) -> Packed:
        if command.startswith("EVALSHA"):
            sha, count, *rest = arguments
            found.setdefault(SCRIPTS[sha], []).append(tuple(map(str, rest[: int(count)])))
        return pack(command, *arguments)

    for module in (script, views):
        monkeypatch.setattr(module, "pack", recorded)
    return found


async def nothing(delivery: Delivery) -> None:
    pass


async def refuse(delivery: Delivery) -> None:
    raise ValueError


async def test_all_keys_that_any_script_is_given_are_in_one_slot(
    one: EventLog, sent: dict[str, list[tuple[str, ...]]]
) -> None:
    await use_everything(one, sent)
    assert set(sent) == set(SCRIPTS.values()), "a script was not run: this test proves nothing for it"
    for name, calls in sent.items():
        for keys in calls:
            assert keys, f"{name} was run without a key: any node would do"
            assert len({slot_of(key.encode()) for key in keys}) == 1, f"{name}: {keys}"


async def use_everything(log: EventLog, sent: dict[str, list[tuple[str, ...]]]) -> None:
    tenant = log.tenant("a/b")
    chats = [tenant.conversation(f"c{{{number}}}") for number in range(4)]
    for chat in chats:
        async with chat.run() as run:
            await run.add(user("hello"))
            await run.renew()

    _, open_readers = readers_beside(log.store)
    readers = open_readers()
    group, strict = log.group("workers"), log.group("strict")

    async def has_renewed() -> bool:
        return "reader_renew.lua" in sent

    async with consuming(group, nothing, lease=0.5):
        await passed(group)
        await until(has_renewed)
        await group.pause()
        await group.resume()
    async with consuming(strict, refuse, max_deliveries=1):

        async def parked() -> bool:
            return (await strict.status()).parked > 0

        await until(parked)
        async for event in strict.parked():
            log_id = tenant.conversation(event.conversation).log
            assert await strict.replay(log_id, event.version)
            break

    projector, live = Projector(log, BUILT_IN, poll=0.05), Live.of(log.store)
    await projector.catch_up()
    await projector.rebuild("history")
    await rollback(live, "history")
    await retry(live, "history")
    for chat in chats:
        await history.load(chat)
    for projection in BUILT_IN:
        assert [found async for found in Verifying(live, projection, await live.view(projection)).differences()] == []
    await drop(live, "history")
    await chats[0].delete()
    await forget(live, chats[0].log)
    await strict.remove()
    await trim_feeds(log.store, readers, keep=1)
    await readers.close()
