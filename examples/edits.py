"""Edits: a rewind and a compaction change what is history. Nothing is deleted, and a rewind can undo both.

python examples/edits.py
"""

import tempfile

import anyio

from eventlog import Conversation, EventLog, assistant, user
from projections import history


async def turn(chat: Conversation, question: str, answer: str) -> int:
    """One run with a scripted answer. Returns the version after it."""
    async with chat.run(agent="guide") as run:
        await run.add(user(question))
        async with run.service_call() as call:
            await call.complete(assistant(answer))
    return (await chat.head()).last.version


async def show(chat: Conversation, what: str) -> None:
    view = await history.load(chat)
    print(f"{what}: the log has {view.version} events, the history {len(view.messages)} messages")
    for message in view.messages:
        print(f"  {message.role}: {message.text}")
    for fate in await history.explain(chat):
        if fate.fate != "in-view":
            print(f"  ({fate.fate}: {fate.what})")


async def main(data: str) -> None:
    async with EventLog.open(data=data) as log:
        chat = log.tenant("blue").conversation("trip")
        good = await turn(chat, "A name for a boat?", "Petrel.")
        await turn(chat, "Another?", "Boaty.")
        await show(chat, "Two turns")

        # Each edit names the exact cursor it was decided at: had anybody appended since, it would be refused.
        await chat.rewind(good, expected=(await chat.head()).last)
        await show(chat, "\nRewound to after the first turn")

        await turn(chat, "A longer one?", "Storm Petrel.")
        before = (await chat.head()).last
        await chat.compact(before.version, [user("We looked for a boat's name: Storm Petrel.")], expected=before)
        await show(chat, "\nCompacted to a summary")

        await chat.rewind(before.version, expected=(await chat.head()).last)
        await show(chat, "\nRewound to before the compaction")

        print("\nAny version can be read as it was:")
        for version in (good, before.version):
            print(f"  at version {version}: {len((await history.load(chat, at=version)).messages)} messages")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        anyio.run(main, directory)
