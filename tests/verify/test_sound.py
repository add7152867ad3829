"""What the product itself wrote is never called a fault."""

from __future__ import annotations

import json

import anyio
import pytest
from redis.asyncio import from_url

from eventlog import Draft, EventLog, user
from eventlog.housekeeping import trim_feeds
from eventlog.identity import partition_of
from eventlog.store.beside import readers_beside
from eventlog.store.port import OPERATION_WINDOW
from eventlog.store.readers import Hold
from eventlog.store.redis.audit import Audit
from eventlog.store.redis.store import RedisStore
from eventlog.store.redis.verification import Verification
from tests.conftest import CASES
from tests.history import scenario
from tests.history.test_golden import OWN
from tests.verify.conftest import CHAT, LONG, OTHER, PARTITIONS, Namespace

pytestmark = pytest.mark.anyio


async def test_a_namespace_with_one_of_everything_is_sound(namespace: Namespace) -> None:
    async with Audit.open(namespace.url, namespace.keys.namespace) as audit:
        verification = Verification(audit)
        assert [str(fault) async for fault in verification.faults()] == []
    assert (verification.conversations, verification.events) == (2, 74)
    for log in (CHAT, OTHER):
        assert await namespace.texts(log) == []


async def test_every_golden_scenario_is_sound(served: EventLog, server: str, pytestconfig: pytest.Config) -> None:
    paths = pytestconfig.getoption("cases") or [path for path in (CASES, OWN) if path.exists()]
    cases = [case for path in paths for case in json.loads(path.read_text())]
    for case in cases:
        await scenario.play(served.tenant("golden").conversation(case["id"]), case["steps"])
    assert isinstance(served.store, RedisStore)
    async with Audit.open(server, served.store._keys.namespace) as audit:
        verification = Verification(audit)
        assert [str(fault) async for fault in verification.faults()] == []
    assert verification.conversations == len(cases) > 0


async def test_an_empty_namespace_is_sound(server: str) -> None:
    async with Audit.open(server, "nobody-was-here") as audit:
        assert [fault async for fault in Verification(audit).faults()] == []


async def test_operations_that_were_forgotten_are_no_fault(namespace: Namespace) -> None:
    async with EventLog.open(namespace.url, namespace=namespace.keys.namespace) as log:
        long = log.tenant(LONG.tenant).conversation(LONG.conversation)
        for number in range(2 * OPERATION_WINDOW + 20):
            await long.append(*[Draft("note", {"n": number})] * (number % 3 + 1))
    assert await namespace.client.hlen(namespace.keys.of_log(LONG).ops) == 20
    assert await namespace.texts() == []


async def test_a_log_whose_beginning_was_trimmed_is_sound(namespace: Namespace) -> None:
    for version in range(1, 14):
        entry = (await namespace.client.xrange(namespace.chat.log, version, version))[0][0]
        await namespace.client.xdel(namespace.chat.log, entry)
        await namespace.client.hset(namespace.chat.head, "base", entry)
        assert await namespace.texts(CHAT) == [], version


async def test_a_log_that_was_trimmed_to_nothing_is_sound(namespace: Namespace) -> None:
    last = await namespace.client.hget(namespace.chat.head, "last")  # type: ignore[misc]
    await namespace.client.xtrim(namespace.chat.log, maxlen=0, approximate=False)
    await namespace.client.hset(namespace.chat.head, "base", last)  # type: ignore[misc]
    assert await namespace.texts() == []


async def test_a_deleted_conversation_is_sound_without_its_log(namespace: Namespace) -> None:
    async with EventLog.open(namespace.url, namespace=namespace.keys.namespace) as log:
        assert await log.store.delete(CHAT, force=True)
    assert await namespace.client.exists(namespace.chat.log, namespace.chat.ops, namespace.chat.old_ops) == 0
    assert await namespace.texts() == []
    assert await namespace.texts(CHAT) == []
    await namespace.client.hset(namespace.chat.head, "confirmed", "delete")  # type: ignore[misc]
    assert await namespace.texts() == []


async def test_a_trimmed_feed_is_sound(namespace: Namespace) -> None:
    partition = partition_of(CHAT.path, PARTITIONS)
    async with EventLog.open(namespace.url, namespace=namespace.keys.namespace) as log:
        store = log.store
        assert isinstance(store, RedisStore)
        ends = await store.feed_ends()
        await log.tenant("red").conversation("new").add(user("hello"))
        for below in range(2, ends[partition] + 1, 3):
            await store.trim_feed(partition, below)
            assert await namespace.texts() == [], below
            assert await namespace.texts(CHAT) == [], below
        await store.delete(OTHER, force=True)
        await store.trim_feed(partition, 10_000)
        assert await namespace.texts() == []


async def test_a_group_that_begins_where_the_feed_was_trimmed_is_sound(namespace: Namespace) -> None:
    async with EventLog.open(namespace.url, namespace=namespace.keys.namespace) as log:
        store, open_readers = readers_beside(log.store)
        await log.group("late", start="now").create()
        await log.group("new").create()
        for partition, end in enumerate(await store.feed_ends()):
            await store.trim_feed(partition, end)
        assert await namespace.texts() == []
        await open_readers().acquire(Hold("new", 0, "aa"), "me", 60_000)
        assert await namespace.texts() == []


async def test_trimming_and_deleting_beside_it_give_no_false_alarm(namespace: Namespace) -> None:
    over = False

    async def write(log: EventLog) -> None:
        turn = 0
        while not over:
            chat = log.tenant("w").conversation(f"c{turn}")
            for _ in range(3):
                await chat.add(user("?"), user("!"))
            if turn % 2:
                await log.tenant("w").conversation(f"c{turn - 1}").delete()
            turn += 1

    async def trim(log: EventLog) -> None:
        store, open_readers = readers_beside(log.store)
        while not over:
            await trim_feeds(store, open_readers(), keep=5)
            await anyio.sleep(0.002)

    async with (
        EventLog.open(namespace.url, namespace=namespace.keys.namespace) as log,
        anyio.create_task_group() as group,
    ):
        group.start_soon(write, log)
        group.start_soon(trim, log)
        for _ in range(6):
            assert await namespace.texts() == []
        over = True
    assert await namespace.texts() == []


async def test_writers_beside_it_give_no_false_alarm(namespace: Namespace) -> None:
    over = False

    async def write(log: EventLog, number: int) -> None:
        turn = 0
        while not over:
            chat = log.tenant(f"w{number}").conversation(f"c{turn // 3}")
            async with chat.run() as run:
                await run.add(user("?"))
                async with run.service_call() as call:
                    await call.complete()
            turn += 1

    async with (
        EventLog.open(namespace.url, namespace=namespace.keys.namespace) as log,
        anyio.create_task_group() as group,
    ):
        for number in range(4):
            group.start_soon(write, log, number)
        seen = []
        while len(seen) < 8 or seen[-1] < 150:
            async with Audit.open(namespace.url, namespace.keys.namespace) as audit:
                verification = Verification(audit)
                assert [str(fault) async for fault in verification.faults()] == []
                seen.append(verification.events)
        over = True
    assert seen == sorted(seen)
    assert await namespace.texts() == []


async def test_a_user_that_may_only_read_can_verify(namespace: Namespace) -> None:
    name = namespace.keys.namespace
    rules = [f"%R~{name}:*", f"%R~{{{name}:*}}:*", "-@all", "+@read", "+@transaction", "+scan", "+info"]
    await namespace.client.execute_command("ACL", "SETUSER", f"r-{name}", "on", ">word", *rules)
    url = f"{namespace.url}?username=r-{name}&password=word"
    async with from_url(url) as reader:
        with pytest.raises(Exception, match="permission"):
            await reader.hset(namespace.chat.head, "open", 0)
        with pytest.raises(Exception, match="permission"):
            await reader.eval("return 1", 1, namespace.chat.head)
    async with Audit.open(url, name) as audit:
        assert [str(fault) async for fault in Verification(audit).faults()] == []
    await namespace.client.acl_deluser(f"r-{name}")
