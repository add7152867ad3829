"""Ways to harm what is stored, with plain commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.verify.conftest import CHAT, Namespace

Entry = tuple[bytes, dict[bytes, bytes]]


async def entries(namespace: Namespace, key: str | None = None) -> list[Entry]:
    return [tuple(entry) for entry in await namespace.client.xrange(key or namespace.chat.log)]


async def rewrite(namespace: Namespace, change: Callable[[list[Entry]], list[Entry]], key: str | None = None) -> None:
    """Put another stream in place of the chat's log, or of the stream at ``key``."""
    key = key or namespace.chat.log
    changed = change(await entries(namespace, key))
    await namespace.client.delete(key)
    for entry_id, fields in changed:
        await namespace.client.xadd(key, fields, id=entry_id)  # type: ignore[arg-type]


async def edit(namespace: Namespace, version: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the event of one version."""

    def with_change(found: list[Entry]) -> list[Entry]:
        event = json.loads(found[version - 1][1][b"e"])
        change(event)
        found[version - 1] = (found[version - 1][0], {b"e": json.dumps(event, separators=(",", ":")).encode()})
        return found

    await rewrite(namespace, with_change)


async def write(namespace: Namespace, version: int, document: bytes) -> None:
    """Put these bytes where the event of one version stands."""

    def with_document(found: list[Entry]) -> list[Entry]:
        return [*found[: version - 1], (found[version - 1][0], {b"e": document}), *found[version:]]

    await rewrite(namespace, with_document)


async def append(namespace: Namespace, *events: dict[str, Any]) -> None:
    """Append an operation as the script does, whatever its events say: records, head and feed agree with it."""
    client, keys = namespace.client, namespace.chat
    first = int((await client.xrevrange(keys.log, count=1))[0][0].split(b"-")[0]) + 1
    for index, event in enumerate(events):
        envelope = {"id": f"planted-{first}.{index}", "at": "2030-01-02T03:04:05.678901Z", "schema": 1} | event
        await client.xadd(keys.log, {"e": json.dumps(envelope, separators=(",", ":"))}, id=f"{first + index}-77")
    kinds = ",".join(dict.fromkeys(event["type"] for event in events))
    fields = {"c": CHAT.path, "f": first, "n": len(events), "k": kinds, "s": 77}
    await client.hset(keys.ops, f"planted-{first}", f"{first}:{len(events)}:77:{'0' * 40}")
    await client.hset(keys.head, mapping={"last": f"{first + len(events) - 1}-77"})
    await client.execute_command("XADD", keys.feed, "0-*", *(part for pair in fields.items() for part in pair))


async def change_run(namespace: Namespace, field: int, value: str) -> None:
    """Change one field of the open run in the head."""
    packed = (await namespace.client.hget(namespace.chat.head, "run:the-open-run")).split(b"|")  # type: ignore[union-attr,misc]
    packed[field] = value.encode()
    await namespace.client.hset(namespace.chat.head, "run:the-open-run", b"|".join(packed))


async def change_record(namespace: Namespace, operation: str, **changed: int) -> None:
    """Change the record of an operation: first, count or stamp."""
    first, count, stamp, digest = (await namespace.client.hget(namespace.chat.ops, operation)).split(b":")  # type: ignore[union-attr,misc]
    record = {"first": int(first), "count": int(count), "stamp": int(stamp)} | changed
    await namespace.client.hset(
        namespace.chat.ops, operation, f"{record['first']}:{record['count']}:{record['stamp']}:{digest.decode()}"
    )
