"""What recording adds to each service call of a Microsoft Agent Framework agent.

A run of two service calls and a tool, on a model that answers at once, with a history of 10 and of
1,000 messages before it: recorded; with the framework's own in-memory history; and with its Redis history
on the same server. Both load the history once a run. Sessions are made anew before they have grown
much. The figures are a run's, halved.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import redis.asyncio
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

from benchmarks.bench import Bench
from benchmarks.measure import Contender, Operation, latency
from benchmarks.peers import PROVIDER, history_provider
from benchmarks.ratio import Ratio, ratio
from eventlog import Tenant, assistant, tool_call, user
from gateway.adapters.agent_framework import record

LENGTHS = {10: (5, 3), 1_000: (1, 8)}
"""Messages of history -> how often a round makes sessions anew, and the runs in each; a run adds four messages."""
RECORDED, IN_MEMORY = "recorded", "in memory"
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


async def recorded(tenant: Tenant, name: str, length: int) -> Operation:
    """Runs that are recorded, in a conversation whose history is recorded, too."""
    conversation = tenant.conversation(name)
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


async def on_redis(client: redis.asyncio.Redis, name: str, length: int) -> Operation:
    """Runs with the framework's Redis history."""
    provider = history_provider(client, name)
    agent = agent_with(provider)
    session = agent.create_session()
    await provider.save_messages(session.session_id, past(length))
    return _runs(agent, session)


def _runs(agent: Agent[Any], session: AgentSession) -> Operation:
    count = itertools.count()

    async def run() -> object:
        return await agent.run(f"{next(count)}: and now?", session=session)

    return run


async def measure(bench: Bench) -> list[Ratio]:
    """All rows."""
    rows: list[Ratio] = []
    async with bench.log() as log, bench.client(decode_responses=True) as client:
        for whole, (anew, runs) in LENGTHS.items():
            length = bench.size.of(whole, 10)
            found: dict[str, list[float]] = {RECORDED: [], IN_MEMORY: [], PROVIDER: []}
            for _ in range(bench.size.rounds * anew):
                contenders = [
                    Contender(RECORDED, await recorded(log.tenant("bench"), bench.name(), length)),
                    Contender(IN_MEMORY, in_memory(length)),
                    Contender(PROVIDER, await on_redis(client, bench.name(), length)),
                ]
                for name, times in (await latency(contenders, rounds=1, each=runs)).items():
                    found[name] += [one / CALLS for one in times]
            work = f"a service call at {length:,} messages, µs"
            rows += [ratio(work, found, RECORDED, other) for other in (IN_MEMORY, PROVIDER)]
    return rows
