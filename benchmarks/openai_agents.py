"""A session of the OpenAI Agents SDK in the log, against the SDK's own RedisSession.

    python -m benchmarks.openai_agents [--url URL]

Both add items of about 500 bytes to new sessions and to one of 1,000 items, and load 1,000 items: as a session that was
made just now, as one that has loaded before, and the newest 50.
Needs ``openai-agents[redis]``.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AsyncExitStack
from typing import Any

import redis.asyncio
from agents.extensions.memory import RedisSession

from benchmarks.measure import Contender, Operation, Ratio, latency, measured_server, parser, ratio, report
from eventlog import EventLog, Tenant
from eventlog.identity import new_stamp
from gateway.adapters.openai_agents import EventLogSession

OURS, THEIRS = "EventLogSession", "RedisSession"
ITEMS = 1_000


def turn() -> list[Any]:
    """A question, a tool call, its result, an answer."""
    call_id = secrets.token_hex(8)
    return [
        {"role": "user", "content": secrets.token_hex(250)},
        {"type": "function_call", "call_id": call_id, "name": "look_up", "arguments": secrets.token_hex(220)},
        {"type": "function_call_output", "call_id": call_id, "output": secrets.token_hex(230)},
        {
            "type": "message",
            "id": f"msg_{call_id}",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": secrets.token_hex(200), "annotations": []}],
        },
    ]


async def filled(session: EventLogSession | RedisSession) -> None:
    """Put 1,000 items into a session, turn by turn."""
    for _ in range(ITEMS // 4):
        await session.add_items(turn())


ADDS = {"the question": slice(0, 1), "a call and its result": slice(1, 3), "four items": slice(0, 4)}
"""What the SDK adds at once: the input of a run, then each turn; and a whole turn, for what an application moves in."""


async def appends(tenant: Tenant, client: redis.asyncio.Redis, items: slice, *, full: bool) -> dict[str, list[float]]:
    """Adding items to a session of 1,000 that is in use; or, as a run begins, loading a new one and adding to it."""
    ours = EventLogSession(secrets.token_hex(8), tenant=tenant)
    theirs = RedisSession(ours.session_id, redis_client=client)
    if full:
        await filled(ours)
        await filled(theirs)

    async def add_to_ours() -> None:
        session = ours
        if not full:
            session = EventLogSession(secrets.token_hex(8), tenant=tenant)
            await session.get_items()
        await session.add_items(turn()[items])

    async def add_to_theirs() -> None:
        session = theirs
        if not full:
            session = RedisSession(secrets.token_hex(8), redis_client=client)
            await session.get_items()
        await session.add_items(turn()[items])

    return await latency([Contender(OURS, add_to_ours), Contender(THEIRS, add_to_theirs)], rounds=7, each=60)


async def loads(tenant: Tenant, client: redis.asyncio.Redis) -> list[Ratio]:
    """Loading a session of 1,000 items."""
    loaded = EventLogSession("loaded", tenant=tenant)
    theirs = RedisSession("loaded", redis_client=client)
    await filled(loaded)
    await filled(theirs)
    assert len(await loaded.get_items()) == len(await theirs.get_items()) == ITEMS

    async def anew() -> object:
        return await EventLogSession("loaded", tenant=tenant).get_items()

    async def again() -> object:
        return await loaded.get_items()

    async def newest() -> object:
        return await EventLogSession("loaded", tenant=tenant).get_items(50)

    rows = []
    ways: list[tuple[str, Operation, int | None]] = [
        (f"load {ITEMS:,} items, session made just now, µs", anew, None),
        (f"load {ITEMS:,} items, session that loaded before, µs", again, None),
        (f"load the newest 50 of {ITEMS:,}, session made just now, µs", newest, 50),
    ]
    for name, operation, limit in ways:

        async def load(limit: int | None = limit) -> object:
            return await theirs.get_items(limit)

        times = await latency([Contender(OURS, operation), Contender(THEIRS, load)], rounds=7, each=20)
        rows.append(ratio(name, times, OURS, THEIRS, at_most=1))
    return rows


async def measure(url: str) -> list[Ratio]:
    """All rows."""
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(EventLog.open(url, namespace=f"bench-{new_stamp():x}"))
        client = redis.asyncio.Redis.from_url(url)
        stack.push_async_callback(client.aclose)
        tenant = log.tenant("bench")
        rows = []
        for full in (False, True):
            for what, items in ADDS.items():
                times = await appends(tenant, client, items, full=full)
                name = f"add {what} at {ITEMS:,}, µs" if full else f"load a new session and add {what}, µs"
                rows.append(ratio(name, times, OURS, THEIRS, at_most=0.5))
        return rows + await loads(tenant, client)


async def main() -> None:
    async with measured_server(parser(__doc__).parse_args().url) as (url, server):
        report(await measure(url), "openai_agents", server)


if __name__ == "__main__":
    asyncio.run(main())
