"""What recording adds to each service call of a Microsoft Agent Framework agent.

    python -m benchmarks.agent_framework [--url URL]

A run of two service calls and a tool, on a model that answers at once, with a history of 10 and of
1,000 messages before it: recorded; with the framework's own in-memory history; and, where
agent-framework-redis is installed, with its Redis history on the same server. Both load the history
once a run. The figures are a run's, halved.
"""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    ContextProvider,
    FunctionInvocationLayer,
    InMemoryHistoryProvider,
    Message,
    tool,
)

from benchmarks.measure import Contender, Operation, Ratio, latency, measured_server, parser, ratio, report
from eventlog import EventLog, assistant, tool_call, user
from eventlog.identity import new_stamp
from gateway.adapters.agent_framework import record

LENGTHS = (10, 1_000)
ROUNDS = 5
EACH = 8
CALLS = 2
"""Service calls a run."""


class Model(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """Asks for a tool, then answers, at once."""

    async def _inner_get_response(self, *, messages: Sequence[Message], **options: Any) -> ChatResponse[Any]:
        if messages[-1].role == "tool":
            return ChatResponse(messages=[Message("assistant", ["3 degrees " * 20])])
        call = Content.from_function_call("c1", "weather", arguments='{"city": "Oslo"}')
        return ChatResponse(messages=[Message("assistant", [call])])


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"3 degrees in {city}"


def agent_with(*providers: ContextProvider) -> Agent[Any]:
    return Agent(Model(), name="bench", tools=[weather], context_providers=list(providers))


def past(length: int) -> list[Message]:
    """A history of so many messages: a question, a call, its result, an answer; and again."""
    made: list[Message] = []
    for turn in itertools.count():
        call = Content.from_function_call(f"p{turn}", "weather", arguments='{"city": "Oslo"}')
        made += [
            Message("user", [f"{turn}: weather? " * 20]),
            Message("assistant", [call]),
            Message("tool", [Content.from_function_result(f"p{turn}", result="3 degrees")]),
            Message("assistant", [f"{turn}: 3 degrees " * 20]),
        ]
        if len(made) >= length:
            return made[:length]
    raise AssertionError


async def recorded(log: EventLog, length: int) -> Operation:
    """Runs that are recorded, each in the same conversation, whose history is recorded, too."""
    tenant = log.tenant("bench")
    conversation = tenant.conversation(f"history-{length}")
    for turn in range(length // 4):
        async with conversation.run(carry="none") as run:
            await run.add(user(f"{turn}: weather? " * 20))
            async with run.service_call() as call:
                await call.complete(assistant(tool_call(f"p{turn}", "weather", '{"city": "Oslo"}')))
            await run.add_result(call.function_calls[0], "3 degrees")
            async with run.service_call() as call:
                await call.complete(assistant(f"{turn}: 3 degrees " * 20))
    agent = record(agent_with(), tenant)
    return _runs(agent, agent.create_session(session_id=conversation.id))


def in_memory(length: int) -> Operation:
    """Runs with the framework's own history, kept in the session."""
    agent = agent_with(InMemoryHistoryProvider())
    session = agent.create_session()
    session.state["in_memory"] = {"messages": past(length)}
    return _runs(agent, session)


async def on_redis(url: str, length: int) -> Operation:
    """Runs with the framework's Redis history."""
    from agent_framework_redis import RedisHistoryProvider  # noqa: PLC0415  only where it is installed

    provider = RedisHistoryProvider(redis_url=url, application_id=f"bench-{new_stamp():x}")
    agent = agent_with(provider)
    session = agent.create_session()
    await provider.save_messages(session.session_id, past(length))
    return _runs(agent, session)


def _runs(agent: Agent[Any], session: AgentSession) -> Operation:
    count = itertools.count()

    async def run() -> object:
        return await agent.run(f"{next(count)}: and now?", session=session)

    return run


async def measure(url: str) -> list[Ratio]:
    """All rows."""
    rows: list[Ratio] = []
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(EventLog.open(url, namespace=f"bench-{new_stamp():x}"))
        for length in LENGTHS:
            contenders = [
                Contender("recorded", await recorded(log, length)),
                Contender("in memory", in_memory(length)),
            ]
            if importlib.util.find_spec("agent_framework_redis") is not None:
                contenders.append(Contender("agent-framework-redis", await on_redis(url, length)))
            times = await latency(contenders, rounds=ROUNDS, each=EACH)
            a_call = {name: [one / CALLS for one in found] for name, found in times.items()}
            name = f"a service call at {length:,} messages, µs"
            rows += [ratio(name, a_call, "recorded", other.name) for other in contenders[1:]]
    return rows


async def main() -> None:
    async with measured_server(parser(__doc__).parse_args().url) as (url, server):
        report(await measure(url), "agent_framework", server)


if __name__ == "__main__":
    asyncio.run(main())
