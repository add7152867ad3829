"""The agent loop: service call, tools in parallel, service call, … until there is an answer.

Each tool's result is recorded the moment it returns, so that it outlives whatever happens to the
others. The loop is run in both persistence modes, and the history is looked at before the answer.

python examples/agent_loop.py
"""

import tempfile

import anyio

from eventlog import Conversation, EventLog, FunctionCall, Message, Mode, Run, assistant, tool_call, user
from projections import history

DELAYS = {"temperature": 0.05, "wind": 0.0}  # seconds: the tool called second is the faster one
READINGS = {"temperature": "4 C", "wind": "calm"}


async def model(messages: list[Message]) -> Message:
    """Stands for a model service: asks for two readings, then answers from their results."""
    results = {part["id"]: part["response"] for message in messages for part in message.parts if "response" in part}
    if not results:
        return assistant(tool_call("c1", "temperature"), tool_call("c2", "wind"))
    return assistant(f"In Oslo it is {results['c1']} and {results['c2']}.")


async def run_tool(run: Run, call: FunctionCall) -> None:
    await anyio.sleep(DELAYS[call.name])
    await run.add_result(call, READINGS[call.name])


async def turn(chat: Conversation, mode: Mode) -> None:
    async with chat.run(mode, agent="weather") as run:  # an exception or a cancellation aborts, with the reason
        await run.add(user("Weather in Oslo?"))
        while True:
            async with run.service_call() as call:  # leaving it uncompleted records a failure
                await call.complete(await model(await history.for_call(call)))
            if not call.function_calls:
                break
            async with anyio.create_task_group() as tools:
                for function_call in call.function_calls:
                    tools.start_soon(run_tool, run, function_call)
            await show(chat, "before the answer")
    await show(chat, "after the run")


async def show(chat: Conversation, when: str) -> None:
    """What the service would remember now, and what is recorded and not part of that."""
    fates = await history.explain(chat)
    kept = [f"{fate.kind} {fate.version}" for fate in fates if fate.fate == "in-view"]
    left = [f"{fate.kind} {fate.version} ({fate.fate})" for fate in fates if fate.fate != "in-view"]
    print(f"  {when}")
    print(f"    in history:     {', '.join(kept) or 'nothing'}")
    print(f"    not in history: {', '.join(left) or 'nothing'}")


async def main(data: str) -> None:
    async with EventLog.open(data=data) as log:
        for mode in Mode:
            print(mode)
            chat = log.tenant("blue").conversation(f"weather-{mode}")
            await turn(chat, mode)
            print("  results in the order they came:", end="")
            async for event in chat.read(types=["function-result"]):
                print(f" {event.data['output']}", end="")
            print(f"\n  answer: {(await history.load(chat)).messages[-1].text}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        anyio.run(main, directory)
