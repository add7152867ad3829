"""The rights that docs/acl.md grants are enough for each kind of user, and no more."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import anyio
import pytest
import redis.exceptions
from redis.asyncio import Redis, from_url

from eventlog import Conversation, EventLog, LogId, Mode, ServerUnfit, assistant, tool_call, user
from eventlog.store.redis.audit import Audit
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.verification import Verification
from projections import Projector, history, maintained, status
from projections.live import Live
from projections.verifying import Verifying
from projections.views.built_in import BUILT_IN
from projections.views.history import HISTORY
from tests.doctor.conftest import Start, diagnosis

pytestmark = pytest.mark.anyio

CHAT = LogId("t", "chat")
DOCS = Path(__file__).parents[2] / "docs" / "acl.md"
LINES = {line.split()[2]: line for line in re.findall(r"^ACL SETUSER .*$", DOCS.read_text(), re.MULTILINE)}


class Users:
    """The users of the page on one server, in a namespace of their own."""

    def __init__(self, port: int, admin: Redis, namespace: str) -> None:
        self.port = port
        self.admin = admin
        self.namespace = namespace
        self.keys = Keys(namespace, 16)

    def url(self, name: str | None) -> str:
        login = f"{name}:PASSWORD@" if name else ""
        return f"redis://{login}127.0.0.1:{self.port}"

    async def record(self, name: str | None, conversation: str = "chat") -> None:
        async with EventLog.open(self.url(name), namespace=self.namespace) as log:
            await record(log.tenant("t").conversation(conversation))

    async def refused(self, name: str, *command: str) -> None:
        async with from_url(self.url(name)) as client:
            with pytest.raises(redis.exceptions.NoPermissionError):
                await client.execute_command(*command)


@pytest.fixture
async def users(start: Start) -> AsyncIterator[Users]:
    port = start("--appendonly", "yes", "--aof-load-truncated", "no")
    namespace = f"t{uuid4().hex[:12]}"
    async with Redis(port=port) as admin:
        for line in LINES.values():
            await admin.execute_command(*line.replace("eventlog:", f"{namespace}:").split(" "))
        yield Users(port, admin, namespace)


async def record(chat: Conversation) -> None:
    """All that an agent does, more often than operations are remembered."""
    for mode in Mode:
        async with chat.run(mode) as run:
            await run.add(user("?"))
            async with run.service_call() as call:
                await history.for_call(call)
                await call.complete(assistant(tool_call("c", "look")))
            await run.add_result(call.function_calls[0], 1)
            await run.renew()
    left = chat.run(operation_id="left", lease=0.01)
    await left._open()
    await chat.abort_run("left", force=True)
    await chat.rewind(2, expected=(await chat.head()).last)
    for number in range(520):
        await chat.add(user(str(number)))
    await history.load(chat)


def test_the_docs_name_five_users() -> None:
    assert list(LINES) == ["appender", "reader", "consumer", "projector", "operator"]


async def test_the_projector_keeps_every_view_and_writes_to_no_log(users: Users) -> None:
    await users.record("appender")
    async with EventLog.open(users.url("projector"), namespace=users.namespace) as log:
        live, projector = Live.of(log.store), Projector(log, BUILT_IN)
        await projector.catch_up()
        for projection in BUILT_IN:
            await projector.rebuild(projection.name)
            verifying = Verifying(live, projection, await live.view(projection))
            assert [one async for one in verifying.differences()] == []
        await status.rollback(live, "usage")
        await status.drop(live, "usage", 2)
        with pytest.raises(ServerUnfit, match="the user may not do this"):
            await log.tenant("t").conversation("chat").add(user("not mine to write"))
    log_keys = users.keys.of_log(CHAT)
    await users.refused("projector", "XADD", log_keys.log, "*", "e", "x")
    await users.refused("projector", "XTRIM", log_keys.feed, "MAXLEN", "0")
    await users.refused("projector", "HSET", log_keys.head, "last", "1-1")
    await users.refused("projector", "ZADD", log_keys.conversations, "1", "x")
    for key in log_keys:
        await users.refused("projector", "DEL", key)


async def test_the_consumer_handles_events_and_writes_to_no_log(users: Users) -> None:
    await users.record("appender")
    async with EventLog.open(users.url("consumer"), namespace=users.namespace) as log:
        handled = []
        async with log.group("indexer").deliveries() as deliveries:
            async for delivery in deliveries:
                handled.append(delivery.version)
                await delivery.ack()
                if len(handled) == 5:
                    break
        assert handled == [1, 2, 3, 4, 5]
        with pytest.raises(ServerUnfit, match="the user may not do this"):
            await log.tenant("t").conversation("chat").add(user("not mine to write"))
    log_keys = users.keys.of_log(CHAT)
    await users.refused("consumer", "XADD", log_keys.log, "*", "e", "x")
    await users.refused("consumer", "XADD", log_keys.feed, "*", "e", "x")
    await users.refused("consumer", "HSET", log_keys.head, "last", "1-1")
    await users.refused("consumer", "DEL", log_keys.log)


async def test_the_appender_records_runs_and_loads_history(users: Users) -> None:
    await users.record("appender")
    async with EventLog.open(users.url("appender"), namespace=users.namespace) as log:
        chat = log.tenant("t").conversation("chat")
        assert (await history.load(chat)).messages[-1].text == "519"
        assert [name async for name in log.tenant("t").conversations()] == ["chat"]
        assert [warning for warning in log.notes if "CONFIG" in warning] == []
    async with Audit.open(users.url(None), users.namespace) as audit:
        assert [str(fault) async for fault in Verification(audit).faults()] == []


@pytest.mark.parametrize("name", ["appender", "reader", "consumer"])
async def test_whoever_reads_loads_a_history_from_its_view(users: Users, name: str) -> None:
    await users.record("appender")
    async with EventLog.open(users.url(None), namespace=users.namespace) as log:
        await Projector(log, [HISTORY]).catch_up()
    async with EventLog.open(users.url(name), namespace=users.namespace) as log:
        chat = log.tenant("t").conversation("chat")
        from_view = await maintained.load(chat, None)
        assert from_view is not None
        assert from_view == await history.load(chat, at=from_view.version)


async def test_who_may_run_no_script_loads_a_history_from_the_log(users: Users) -> None:
    await users.record("appender")
    async with EventLog.open(users.url(None), namespace=users.namespace) as log:
        await Projector(log, [HISTORY]).catch_up()
    await users.admin.execute_command("ACL", "SETUSER", "reader", "-eval_ro", "-evalsha_ro")
    async with EventLog.open(users.url("reader"), namespace=users.namespace) as log:
        chat = log.tenant("t").conversation("chat")
        assert await maintained.load(chat, None) is None
        assert (await history.load(chat)).messages[-1].text == "519"


async def test_the_appender_cannot_delete(users: Users) -> None:
    await users.record("appender")
    keys = users.keys.of_log(CHAT)
    for command in (
        ("DEL", keys.log),
        ("UNLINK", keys.log),
        ("EXPIRE", keys.log, "1"),
        ("XTRIM", keys.log, "MAXLEN", "0"),
        ("XDEL", keys.log, "1-1"),
        ("RENAME", keys.ops, keys.log),
        ("RENAME", keys.log, keys.old_ops),
        ("HSET", keys.log, "a", "b"),
        ("HDEL", users.keys.meta, "layout"),
        ("ZREM", keys.conversations, "t/chat"),
        ("SET", keys.log, "x"),
        ("FLUSHALL",),
        ("FLUSHDB",),
        ("CONFIG", "SET", "appendonly", "no"),
        ("SHUTDOWN",),
        ("HGETALL", "other:meta"),
        ("XADD", "{other:0}:log:a/b", "*", "e", "1"),
    ):
        await users.refused("appender", *command)
    async with from_url(users.url("appender")) as client:
        with pytest.raises(redis.exceptions.ResponseError, match=r"(?i)permission|can't run this command"):
            await client.eval("return redis.call('DEL', KEYS[1])", 1, keys.log)
    assert await users.admin.exists(*keys) == len(keys)


async def test_the_reader_reads_loads_explains_and_verifies(users: Users) -> None:
    await users.record(None)
    async with EventLog.open(users.url("reader"), namespace=users.namespace) as log:
        chat = log.tenant("t").conversation("chat")
        assert (await history.load(chat)).messages[-1].text == "519"
        assert [fate for fate in await history.explain(chat) if fate.fate != "in-view"]
        assert len([event async for event in chat.read()]) > 520
        assert [name async for name in log.tenant("t").conversations()] == ["chat"]


async def test_the_reader_verifies_and_looks_at_the_server(users: Users) -> None:
    await users.record(None)
    async with Audit.open(users.url("reader"), users.namespace) as audit:
        assert [str(fault) async for fault in Verification(audit).faults()] == []
        assert [str(fault) async for fault in Verification(audit).faults(CHAT)] == []
    told = await anyio.to_thread.run_sync(diagnosis, users.url("reader"), "--namespace", users.namespace)
    assert told["findings"] == []


async def test_the_reader_cannot_write_anything(users: Users) -> None:
    await users.record(None)
    keys = users.keys.of_log(CHAT)
    before = [await users.admin.dump(key) for key in keys]
    for command in (
        ("DEL", keys.log),
        ("XADD", keys.log, "*", "e", "1"),
        ("HSET", keys.head, "open", "0"),
        ("HSETNX", users.keys.meta, "odd", "1"),
        ("EVAL", "return 1", "1", keys.log),
        ("FLUSHALL",),
        ("XTRIM", keys.log, "MAXLEN", "0"),
        ("CONFIG", "SET", "appendonly", "no"),
        ("HGETALL", "other:meta"),
    ):
        await users.refused("reader", *command)
    assert [await users.admin.dump(key) for key in keys] == before


async def test_what_the_reader_tries_to_append_is_refused_with_the_way_out(users: Users) -> None:
    await users.record(None)
    async with EventLog.open(users.url("reader"), namespace=users.namespace) as log:
        with pytest.raises(ServerUnfit, match="grant it the commands and keys it needs"):
            await log.tenant("t").conversation("chat").add(user("no"))


async def test_the_operator_does_all_of_ours_and_nothing_beside(users: Users) -> None:
    await users.record("operator")
    async with EventLog.open(users.url("operator"), namespace=users.namespace) as log:
        await history.explain(log.tenant("t").conversation("chat"))
    async with Audit.open(users.url("operator"), users.namespace) as audit:
        assert [str(fault) async for fault in Verification(audit).faults()] == []
    told = await anyio.to_thread.run_sync(diagnosis, users.url("operator"), "--namespace", users.namespace)
    assert told["findings"] == []
    keys = users.keys.of_log(CHAT)
    for command in (
        ("FLUSHALL",),
        ("FLUSHDB",),
        ("CONFIG", "SET", "appendonly", "no"),
        ("SET", "other", "1"),
        ("SHUTDOWN",),
    ):
        await users.refused("operator", *command)
    async with from_url(users.url("operator")) as client:
        assert await client.delete(keys.log) == 1
        assert await client.xtrim(keys.feed, maxlen=0) > 0
