"""Three layers on the log: the application's own objects, an adapter to the log, and a service that uses them.

An application that keeps chats for its users has objects of its own and does not want to know of events. What it
asks for is small: start a chat, add messages, end the round, load it again, list a user's chats by page, delete one.

python examples/three_layers.py
"""

import tempfile
from dataclasses import dataclass, field

import anyio

from eventlog import Conversation, ConversationDeleted, Draft, EventLog, Message, assistant, user
from projections import history, listing
from projections.projector import Projector
from projections.views.directory import DIRECTORY

# 1. The application's objects.


@dataclass
class Chat:
    id: str
    owner: str
    app: str
    model: str
    lines: list[tuple[str, str]] = field(default_factory=list)  # who said what


# 2. The adapter: between those objects and conversations.


class Chats:
    """Each user is a tenant: nobody lists or loads another's chats."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    async def start(self, chat: Chat) -> None:
        labels = {"app": chat.app, "model": chat.model}
        await self._of(chat).append(Draft("conversation-annotated", {"title": chat.id, "labels": labels}))

    async def record_round(self, chat: Chat, question: str, answer: str) -> None:
        """A round is a run: it stands when it is committed, and what the model said is told as its reply."""
        async with self._of(chat).run("per-run", agent=chat.app) as run:
            await run.add(user(question))
            async with run.service_call(model=chat.model) as call:
                await call.complete(assistant(answer))

    async def load(self, owner: str, chat_id: str) -> Chat:
        conversation = self._log.tenant(owner).conversation(chat_id)
        labels: dict[str, str] = {}
        async for event in conversation.read(types=["conversation-annotated"]):
            labels |= event.data.get("labels", {})
        messages = (await history.load(conversation)).messages
        return Chat(chat_id, owner, labels["app"], labels["model"], [self._line(message) for message in messages])

    async def page(self, owner: str, size: int, after: str | None) -> tuple[list[str], str | None]:
        """Ids of the owner's chats, the one that was active last first, and where the next page begins."""
        found = await listing.conversations(self._log.tenant(owner), limit=size, after=after)
        return [entry.conversation for entry in found.items], found.next

    async def delete(self, owner: str, chat_id: str) -> bool:
        return await self._log.tenant(owner).conversation(chat_id).delete()

    def _of(self, chat: Chat) -> Conversation:
        return self._log.tenant(chat.owner).conversation(chat.id)

    @staticmethod
    def _line(message: Message) -> tuple[str, str]:
        return message.role, message.text


# 3. The service: what the application's pages call.


class ChatService:
    def __init__(self, chats: Chats) -> None:
        self._chats = chats

    async def open(self, chat_id: str, owner: str) -> Chat:
        chat = Chat(chat_id, owner, app="helpdesk", model="small-1")
        await self._chats.start(chat)
        return chat

    async def ask(self, chat: Chat, question: str) -> str:
        answer = f"You asked: {question}"  # stands for a model service
        await self._chats.record_round(chat, question, answer)
        return answer


async def main(data: str) -> None:
    async with EventLog.open(data=data) as log:
        chats = Chats(log)
        service = ChatService(chats)
        for number in range(1, 6):
            chat = await service.open(f"chat-{number}", owner="ada")
            await service.ask(chat, f"question {number}")
        await service.ask(await chats.load("ada", "chat-2"), "and then?")

        loaded = await chats.load("ada", "chat-2")
        print(f"{loaded.id} of {loaded.owner}, {loaded.app}, {loaded.model}")
        for who, said in loaded.lines:
            print(f"  {who}: {said}")

        projector = Projector(log, [DIRECTORY])  # elsewhere a process of its own, that runs
        await projector.catch_up()
        await show_pages(chats)
        print(f"chat-3 deleted: {await chats.delete('ada', 'chat-3')}")
        try:
            await chats.load("ada", "chat-3")
        except ConversationDeleted:
            print("nothing of it can be loaded")
        await projector.catch_up()
        await show_pages(chats)
        print(f"bob's chats: {(await chats.page('bob', 2, None))[0]}")


async def show_pages(chats: Chats) -> None:
    after: str | None = None
    while True:
        ids, after = await chats.page("ada", 2, after)
        print(f"  page: {', '.join(ids)}")
        if after is None:
            return


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        anyio.run(main, directory)
