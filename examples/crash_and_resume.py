"""Crash and resume: an agent is killed after a tool with a side effect, and the effect happens once.

Twice an agent charges a card and is killed with SIGKILL, so that nothing of it can tidy up: once when the tool's
result is recorded, and once in the moment before. Another process takes the run over. The log tells it which tools
have no result. In the first case there is none. In the second it must run the tool again, for nobody can know how far
it came; there the charge's own operation id, made of the run and the call, lets it happen once.

python examples/crash_and_resume.py
"""

import os
import signal
import sys
import tempfile

import anyio

from eventlog import Conversation, Draft, EventLog, FunctionCall, Message, Run, Tenant, assistant, tool_call, user
from projections import history, recovery


async def model(messages: list[Message]) -> Message:
    """Stands for a model service."""
    if messages[-1].role == "tool":
        return assistant("Your card was charged.")
    return assistant(tool_call("c1", "charge", {"euro": 12}))


async def charge(tenant: Tenant, run: Run, call: FunctionCall) -> str:
    """A tool with a side effect: here an append, elsewhere the payment service's own idempotency key."""
    charged = Draft("card-charged", {"euro": call.arguments["euro"]})
    outcome = await tenant.conversation("payments").append(charged, operation_id=f"{run.id}/{call.version}")
    return "was charged before" if outcome.duplicate else "charged"


async def go_on(tenant: Tenant, chat: Conversation, run: Run, dies: str = "") -> None:
    """The agent loop, from wherever the run stands."""
    while True:
        for waiting in run.progress.unanswered.values():
            output = await charge(tenant, run, waiting)
            print(f"  the tool ran: {output}", flush=True)
            if dies == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            await run.add_result(waiting, output)
            if dies == "after":
                os.kill(os.getpid(), signal.SIGKILL)
        async with run.service_call() as call:
            await call.complete(await model(await history.for_call(call)))
        if not call.function_calls:
            return


async def agent(data: str, dies: str) -> None:
    """The agent that is killed before, or after, its tool's result is recorded."""
    async with EventLog.open(data=data) as log:
        tenant = log.tenant("blue")
        chat = tenant.conversation(f"killed-{dies}")
        async with chat.run(agent="cashier") as run:
            await run.add(user("Charge my card 12 euro"))
            await go_on(tenant, chat, run, dies)


async def main(data: str) -> None:
    async with EventLog.open(data=data) as log:
        tenant = log.tenant("blue")
        for dies in ("after", "before"):
            print(f"Killed {dies} the result was recorded", flush=True)
            child = await anyio.run_process([sys.executable, __file__, data, dies], stdout=None, check=False)
            print(f"  the agent died of signal {-child.returncode}")
            chat = tenant.conversation(f"killed-{dies}")
            [left] = (await recovery.inspect(chat)).runs
            # It is known to be dead; else wait until its lease has run out.
            async with recovery.resume(chat, left.run, force=True) as run:
                print(f"  taken over: {len(run.progress.unanswered)} call without a result")
                await go_on(tenant, chat, run)
            print(f"  answer: {(await history.load(chat)).messages[-1].text}")
            payments = [event async for event in tenant.conversation("payments").read()]
            charges = [event for event in payments if event.operation_id.startswith(f"{left.run}/")]
            print(f"  charges of this run: {len(charges)}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        anyio.run(agent, *sys.argv[1:])
    else:
        with tempfile.TemporaryDirectory() as directory:
            anyio.run(main, directory)
