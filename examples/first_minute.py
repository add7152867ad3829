"""The first minute: open a log, record one turn of an agent, load the history.

python examples/first_minute.py
"""

import tempfile

import anyio

from eventlog import EventLog, Message, assistant, user
from projections import history


async def model(messages: list[Message]) -> Message:
    """Stands for a model service: it is sent messages and replies with one."""
    return assistant(f"You said: {messages[-1].text}")


async def main(data: str) -> None:
    # No URL: the embedded server. Its files are in `data`; it ends with its last user.
    async with EventLog.open(data=data) as log:
        chat = log.tenant("blue").conversation("hello-1")

        async with chat.run(agent="echo") as run:  # one turn; leaving the block commits it
            await run.add(user("Good morning"))  # an input: recorded, not yet sent
            async with run.service_call() as call:  # fixes what is sent
                reply = await model(await history.for_call(call))
                await call.complete(reply)  # the reply, and that the call is completed: one append

        print("The log:")
        async for event in chat.read():
            print(f"  {event.version} {event.type}")

        view = await history.load(chat)
        print(f"The history at version {view.version}:")
        for message in view.messages:
            print(f"  {message.role}: {message.text}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        anyio.run(main, directory)
