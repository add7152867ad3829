"""A namespace that holds one of everything, and ways to look at it and to harm it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import uuid4

import pytest
from redis.asyncio import Redis, from_url

from eventlog import Draft, EventLog, LogId, Mode, assistant, tool_call, user
from eventlog.store.redis.audit import Audit
from eventlog.store.redis.keys import Keys, LogKeys
from eventlog.store.redis.verification import Verification
from eventlog.verify import Fault

CHAT = LogId("blue", "chat")
OTHER = LogId("blue", "other one/ü")
LONG = LogId("red", "long")
PARTITIONS = 2


@dataclass(frozen=True)
class Namespace:
    """The namespace, a plain client of its server, and what verification says of it."""

    url: str
    keys: Keys
    client: Redis

    @property
    def chat(self) -> LogKeys:
        return self.keys.of_log(CHAT)

    async def faults(self, conversation: LogId | None = None) -> list[Fault]:
        async with Audit.open(self.url, self.keys.namespace) as audit:
            return [fault async for fault in Verification(audit).faults(conversation)]

    async def texts(self, conversation: LogId | None = None) -> list[str]:
        return [str(fault) for fault in await self.faults(conversation)]


async def record_chat(log: EventLog, conversation: LogId) -> None:
    """Finished runs of both modes, results, a failure, an approval, a take-over, edits; last a run that stays open."""
    chat = log.tenant(conversation.tenant).conversation(conversation.conversation)
    await chat.add(user("hello"), user("again"))  # versions 1 and 2
    async with chat.run(agent="weather") as run:  # 3
        await run.add(user("weather?"))  # 4
        async with run.service_call(model="m") as call:  # 5
            await call.complete(assistant("let me see", tool_call("c1", "look", {"at": "sky"})))  # 6, 7, 8
        await run.add_result(call.function_calls[0], "fine")  # 9
        async with run.service_call() as call:  # 10
            await call.fail("time-out")  # 11
        async with run.service_call() as call:  # 12
            await call.complete(assistant("it is fine"))  # 13, 14
    # 15: committed
    end = (await chat.head()).last
    await chat.rewind(2, expected=end)  # 16
    await chat.rewind(15, expected=(await chat.head()).last)  # 17
    await chat.compact(2, [user("greetings")], expected=(await chat.head()).last)  # 18
    async with chat.run(Mode.PER_RUN, operation_id="the-per-run") as run:  # 19
        await run.add(user("and tomorrow?"))  # 20
        async with run.service_call() as call:  # 21
            await call.complete(assistant(tool_call("c1", "look")))  # 22, 23
    # 24
    await chat.append(Draft("approval-requested", {"function_call": 22}), operation_id="the-request")  # 25
    await chat.append(Draft("conversation-annotated", {"title": "weather"}), Draft("note", {}))  # 26, 27
    left = chat.run(operation_id="the-open-run")  # 28
    await left._open()
    await left.add(user("one more"))  # 29
    async with left.service_call() as call:  # 30
        await call.complete(assistant(tool_call("c2", "look"), tool_call("c3", "look")))  # 31, 32, 33
    await left.add_result(call.function_calls[0], {"seen": [1, 2]}, operation_id="the-result")  # 34
    again = chat.resume("the-open-run", force=True)  # 35
    await again._open()
    await again.service_call().__aenter__()  # 36
    await again.add(user("nearly"), operation_id="the-last")  # 37


@pytest.fixture
async def namespace(server: str) -> AsyncIterator[Namespace]:
    """A namespace with two conversations of everything and one with more operations than are remembered."""
    name = f"t{uuid4().hex[:12]}"
    async with EventLog.open(server, namespace=name, partitions=PARTITIONS) as log, from_url(server) as client:
        await record_chat(log, CHAT)
        await record_chat(log, OTHER)
        yield Namespace(server, Keys(name, PARTITIONS), client)
