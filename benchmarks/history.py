"""Loading a history of 1,000 messages by folding the log.

    python -m benchmarks.history [--url URL]

The bare contender keeps the same messages in a list: LRANGE and orjson.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AsyncExitStack

import orjson
import redis.asyncio

from benchmarks.measure import Contender, Ratio, latency, measured_server, parser, ratio, report
from eventlog import Conversation, EventLog, assistant, tool_call, user
from eventlog.identity import new_stamp
from projections import history

TURNS = 250


async def record(conversation: Conversation, turns: int = TURNS, size: int = 500) -> None:
    """Four messages a turn, of about ``size`` bytes each: a question, a tool call, its result, an answer."""
    half = size // 2
    for turn in range(turns):
        async with conversation.run(carry="none") as run:
            await run.add(user(secrets.token_hex(half)))
            async with run.service_call() as call:
                key = {"key": secrets.token_hex(half - 50)}
                await call.complete(assistant(tool_call(f"call-{turn}", "look_up", key)))
            await run.add_result(call.function_calls[0], secrets.token_hex(half))
            async with run.service_call() as call:
                await call.complete(assistant(secrets.token_hex(half)))


async def measure(url: str) -> list[Ratio]:
    """All rows."""
    namespace = f"bench-{new_stamp():x}"
    key = f"{{{namespace}}}:list"
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(EventLog.open(url, namespace=namespace))
        client = redis.asyncio.Redis.from_url(url)
        stack.push_async_callback(client.aclose)
        conversation = log.tenant("bench").conversation("loaded")
        await record(conversation)
        messages = (await history.load(conversation)).messages
        await client.rpush(key, *(orjson.dumps(message.as_json()) for message in messages))

        async def bare() -> list[object]:
            return [orjson.loads(document) for document in await client.lrange(key, 0, -1)]

        async def fold() -> object:
            return await history.load(conversation)

        ours = Contender("history.load by the fold", fold)
        theirs = Contender("bare LRANGE + orjson", bare)
        times = await latency([ours, theirs], rounds=7, each=20)
    name = f"load {len(messages):,} messages, µs"
    return [ratio(name, times, ours.name, theirs.name, at_most=4)]


async def main() -> None:
    async with measured_server(parser(__doc__).parse_args().url) as (url, server):
        report(await measure(url), "history", server)


if __name__ == "__main__":
    asyncio.run(main())
