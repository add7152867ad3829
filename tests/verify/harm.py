"""Harms that a test names: each is done to the chat of a namespace; then verification must say so."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from eventlog.identity import LogId, partition_of
from tests.verify import plant
from tests.verify.conftest import CHAT, OTHER, PARTITIONS, Namespace

Plant = Callable[[Namespace], Awaitable[object]]

IN_RUN = {"run": "the-open-run"}
NOTE = {"type": "note", "data": {}}
OUTPUT = {"type": "message-added", "data": {"message_id": "m", "role": "assistant", "parts": []}, **IN_RUN}
CALL = {"type": "function-call", "data": {"message_id": "m", "call_id": "c", "name": "n"}}
COMPLETED = {"type": "service-call-completed", "data": {}, **IN_RUN}
STARTED = {"type": "service-call-started", "data": {"sends": [], "continues": None}, **IN_RUN}


def result(answers: int) -> dict[str, Any]:
    return {"type": "function-result", "data": {"message_id": "m", "call_id": "c", "output": 1, "answers": answers}}


def approval(call: int) -> dict[str, Any]:
    return {"type": "approval-requested", "data": {"function_call": call}}


def drop(*versions: int) -> Plant:
    return lambda ns: plant.rewrite(
        ns, lambda found: [entry for number, entry in enumerate(found, 1) if number not in versions]
    )


def rename(version: int, new_id: str) -> Plant:
    def renamed(found: list[plant.Entry]) -> list[plant.Entry]:
        return [*found[: version - 1], (new_id.encode(), found[version - 1][1]), *found[version:]]

    return lambda ns: plant.rewrite(ns, renamed)


def edit(version: int, **changed: Any) -> Plant:
    return lambda ns: plant.edit(ns, version, lambda event: event.update(changed))


def edit_data(version: int, **changed: Any) -> Plant:
    return lambda ns: plant.edit(ns, version, lambda event: event["data"].update(changed))


def append(*events: dict[str, Any]) -> Plant:
    return lambda ns: plant.append(ns, *events)


def head(**fields: str | int) -> Plant:
    return lambda ns: ns.client.hset(ns.chat.head, mapping=fields)


def no_head(field: str) -> Plant:
    return lambda ns: ns.client.hdel(ns.chat.head, field)


async def append_each(namespace: Namespace, *events: dict[str, Any]) -> None:
    for event in events:
        await plant.append(namespace, event)


def path_beside(log: LogId) -> str:
    """A path of the same partition that nobody wrote to."""
    partition = partition_of(log.path, PARTITIONS)
    return next(path for n in range(99) if partition_of(path := f"blue/x{n}", PARTITIONS) == partition)


async def check(namespace: Namespace, harm: Plant, expected: str) -> list[str]:
    await harm(namespace)
    told = await namespace.texts()
    assert any(re.search(expected, text) for text in told), "\n".join(told) or "no fault was found"
    return told


async def check_chat(namespace: Namespace, harm: Plant, expected: str) -> None:
    """The fault is named with the chat, alone and among all; the other conversation stays without one."""
    told = await check(namespace, harm, f"^conversation 'chat' of 'blue', .*{expected}")
    assert not any("'other one" in text for text in told), "\n".join(told)
    assert await namespace.texts(OTHER) == []
    assert any(re.search(expected, text) for text in await namespace.texts(CHAT))
