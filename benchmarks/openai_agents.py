"""A session of the OpenAI Agents SDK in the log, against the SDK's own RedisSession.

Both add items of about 500 bytes to new sessions and to one of 1,000 items, and load 1,000 items: as a session that was
made just now, as one that has loaded before, and the newest 50.
"""

from __future__ import annotations

import secrets
from typing import Any

import redis.asyncio
from agents.extensions.memory import RedisSession

from benchmarks.bench import Bench
from benchmarks.measure import Contender, Operation, latency
from benchmarks.peers import SESSION as THEIRS
from benchmarks.peers import redis_session
from benchmarks.ratio import Ratio, ratio
from eventlog import Tenant
from gateway.adapters.openai_agents import EventLogSession

OURS = "EventLogSession"
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


async def filled(session: EventLogSession | RedisSession, items: int) -> None:
    """Put so many items into a session, turn by turn."""
    for _ in range(items // 4):
        await session.add_items(turn())


ADDS = {"the question": slice(0, 1), "a call and its result": slice(1, 3), "four items": slice(0, 4)}
"""What the SDK adds at once: the input of a run, then each turn; and a whole turn, for what an application moves in."""


async def appends(
    bench: Bench, tenant: Tenant, client: redis.asyncio.Redis, items: slice, full: int
) -> dict[str, list[float]]:
    """Adding items to a session that is in use and full of so many; or, as a run begins, loading a new one first."""
    ours = EventLogSession(bench.name(), tenant=tenant)
    theirs = redis_session(client, bench.name())
    if full:
        await filled(ours, full)
        await filled(theirs, full)

    async def add_to_ours() -> None:
        session = ours
        if not full:
            session = EventLogSession(bench.name(), tenant=tenant)
            await session.get_items()
        await session.add_items(turn()[items])

    async def add_to_theirs() -> None:
        session = theirs
        if not full:
            session = redis_session(client, bench.name())
            await session.get_items()
        await session.add_items(turn()[items])

    contenders = [Contender(OURS, add_to_ours), Contender(THEIRS, add_to_theirs)]
    return await latency(contenders, rounds=bench.size.rounds, each=bench.size.of(60, 10))


async def loads(bench: Bench, tenant: Tenant, client: redis.asyncio.Redis, items: int) -> list[Ratio]:
    """Loading a session of so many items."""
    loaded = EventLogSession("loaded", tenant=tenant)
    theirs = redis_session(client, bench.name())
    await filled(loaded, items)
    await filled(theirs, items)
    assert len(await loaded.get_items()) == len(await theirs.get_items()) == items

    async def anew() -> object:
        return await EventLogSession("loaded", tenant=tenant).get_items()

    async def again() -> object:
        return await loaded.get_items()

    async def newest() -> object:
        return await EventLogSession("loaded", tenant=tenant).get_items(50)

    rows = []
    ways: list[tuple[str, Operation, int | None]] = [
        (f"load {items:,} items, session made just now, µs", anew, None),
        (f"load {items:,} items, session that loaded before, µs", again, None),
        (f"load the newest 50 of {items:,} items, session made just now, µs", newest, 50),
    ]
    for name, operation, limit in ways:

        async def load(limit: int | None = limit) -> object:
            return await theirs.get_items(limit)

        contenders = [Contender(OURS, operation), Contender(THEIRS, load)]
        times = await latency(contenders, rounds=bench.size.rounds, each=bench.size.of(20, 3))
        rows.append(ratio(name, times, OURS, THEIRS, at_most=1))
    return rows


async def measure(bench: Bench) -> list[Ratio]:
    """All rows."""
    items = bench.size.of(ITEMS, 60)
    async with bench.log() as log, bench.client() as client:
        tenant = log.tenant("bench")
        rows = []
        for full in (0, items):
            for what, some in ADDS.items():
                times = await appends(bench, tenant, client, some, full)
                name = f"add {what} at {items:,} items, µs" if full else f"load a new session and add {what}, µs"
                rows.append(ratio(name, times, OURS, THEIRS, at_most=0.5))
        return rows + await loads(bench, tenant, client, items)
