"""Parallel writers: expected versions, retries that are safe, and one run at a time.

python examples/parallel_writers.py
"""

import tempfile

import anyio

from eventlog import (
    NONE,
    Conversation,
    ConversationBusy,
    EventLog,
    OperationReused,
    Tenant,
    VersionConflict,
    user,
)
from projections import history


async def create_once(tenant: Tenant) -> None:
    """Many start the conversation at once; expecting that nothing is there lets one of them win."""
    won = []

    async def start(name: str) -> None:
        try:
            await tenant.conversation("team").add(user(f"{name} opened this"), expected=NONE)
            won.append(name)
        except VersionConflict:
            pass

    async with anyio.create_task_group() as writers:
        for name in ("Ada", "Bo", "Cy", "Di"):
            writers.start_soon(start, name)
    print(f"4 tried to open the conversation, {len(won)} did")


async def count_together(chat: Conversation) -> None:
    """Each reads, decides, and appends on condition that nothing has changed; else it reads again."""
    conflicts = 0

    async def add_next() -> None:
        nonlocal conflicts
        while True:
            view = await history.load(chat)
            try:
                await chat.add(user(f"number {len(view.messages)}"), expected=view.cursor)
                return
            except VersionConflict:
                conflicts += 1

    async with anyio.create_task_group() as writers:
        for _ in range(5):
            writers.start_soon(add_next)
    numbers = [message.text for message in (await history.load(chat)).messages[1:]]
    print(f"5 counted at once: {', '.join(numbers)}")
    print(f"conflicts met and retried: {'some' if conflicts else 'none'}")


async def retry(chat: Conversation) -> None:
    """With an operation id of one's own, sending again is safe; three equal messages are still three."""
    first = await chat.add(user("yes"), operation_id="order-17")
    again = await chat.add(user("yes"), operation_id="order-17")
    print(
        f"first: duplicate={first.duplicate}; again: duplicate={again.duplicate}, same={first.cursor == again.cursor}"
    )
    await chat.add(user("yes"))
    await chat.add(user("yes"))
    same = [message for message in (await history.load(chat)).messages if message.text == "yes"]
    print(f"equal messages: {len(same)}")
    try:
        await chat.add(user("no"), operation_id="order-17")
    except OperationReused:
        print("the same operation id with other content is refused")


async def one_at_a_time(chat: Conversation) -> None:
    """Two agents on one conversation: the second is told, and nothing interleaves."""
    async with chat.run(agent="first"):
        try:
            async with chat.run(agent="second"):
                pass
        except ConversationBusy:
            print("a second run has to wait until the first has ended")


async def main(data: str) -> None:
    async with EventLog.open(data=data) as log:
        tenant = log.tenant("blue")
        await create_once(tenant)
        chat = tenant.conversation("team")
        await count_together(chat)
        await retry(chat)
        await one_at_a_time(chat)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        anyio.run(main, directory)
