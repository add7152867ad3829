"""An agent whose turn is always the same, so that what one that was killed recorded can be compared.

It asks a scripted model that refuses an invalid request, runs the tools it asks for, and says of
each step that it has come there. ``finish`` goes on from wherever a turn stopped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from eventlog import Conversation, FunctionCall, Message, Run, assistant, tool_call, user
from gateway.demo.validity import problems
from projections import history

STEPS = (
    "started",
    "input added",
    "service call 1 in flight",
    "service call 1 completed",
    "tool a ran",
    "result a recorded",
    "tool b ran",
    "result b recorded",
    "service call 2 in flight",
    "service call 2 completed",
    "tool c ran",
    "result c recorded",
    "service call 3 in flight",
    "service call 3 completed",
)
REPLIES = (
    assistant("I look.", tool_call("a", "look", {"where": "left"}), tool_call("b", "look", {"where": "right"})),
    assistant(tool_call("c", "look", {"where": "behind"})),
    assistant("Nobody is there."),
)
QUESTION = user("Is anybody there?")
RUN = "turn"

Step = Callable[[str], None]


def no_step(_: str) -> None:
    """Go on."""


def run_tool(executions: Path, call: FunctionCall) -> str:
    """The tool: each execution leaves one line in the file."""
    file = os.open(executions, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{call.call_id}\n".encode())
    finally:
        os.close(file)
    return f"nobody ({call.call_id})"


def executed(executions: Path) -> dict[str, int]:
    """How often each tool was run."""
    ran = executions.read_text().split() if executions.exists() else []
    return {call_id: ran.count(call_id) for call_id in ("a", "b", "c")}


def reply(messages: Sequence[Message]) -> Message:
    """What the model says to these messages."""
    assert not problems(messages), problems(messages)
    return REPLIES[sum(message.role == "assistant" for message in messages)]


async def begin(chat: Conversation, mode: str, executions: Path, lease: float, step: Step = no_step) -> None:
    """The whole turn."""
    async with chat.run(mode, agent="watch", lease=lease, operation_id=RUN) as run:
        step("started")
        await run.add(QUESTION, operation_id="question")
        step("input added")
        await finish(run, (), executions, step)


async def finish(run: Run, unanswered: Sequence[FunctionCall], executions: Path, step: Step = no_step) -> None:
    """Answer these calls, and go on to the end of the turn."""
    while True:
        for call in unanswered:
            output = run_tool(executions, call)
            step(f"tool {call.call_id} ran")
            await run.add_result(call, output, operation_id=f"result-{call.call_id}")
            step(f"result {call.call_id} recorded")
        async with run.service_call() as request:
            step(f"service call {request.number} in flight")
            said = reply(await history.for_call(request))
            await request.complete(said, operation_id=f"reply-{said.parts[-1].get('id', 'end')}")
        step(f"service call {request.number} completed")
        unanswered = request.function_calls
        if not unanswered:
            return


async def recover(chat: Conversation, resumed: Run, executions: Path) -> None:
    """Go on with a turn that was taken over, wherever it stopped."""
    progress = resumed.progress  # type: ignore[attr-defined]
    if not progress.unsent and not progress.last_completed:
        await resumed.add(QUESTION, operation_id="question")
    if progress.last_completed and not progress.unanswered and not progress.unsent:
        return  # the model had given its answer: only the commit is missing
    await finish(resumed, list(progress.unanswered.values()), executions)
