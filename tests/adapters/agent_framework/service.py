"""A scripted model service that keeps conversations itself and refuses invalid requests. It knows of no log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_framework import (
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)
from agent_framework.exceptions import ChatClientException, ChatClientInvalidRequestException

Spoken = tuple[str, tuple[Any, ...]]
"""A role, and what was said under it: ``("user", ("text", "Hello"))``."""


class InvalidRequest(ChatClientInvalidRequestException):
    """The service answers 400."""


class Broken(ChatClientException):
    """The connection broke: what the service holds is not known."""


@dataclass
class Breaks:
    """A reply of which only these contents come through."""

    contents: Sequence[Content]


@dataclass
class Hangs:
    """A reply of which only these contents come through, and then nothing."""

    contents: Sequence[Content] = ()


CONTROLS = ("function_approval_request", "function_approval_response")
Reply = Sequence[Content] | Exception | Breaks | Hangs


def call(call_id: str, name: str, arguments: str = "{}") -> Content:
    return Content.from_function_call(call_id, name, arguments=arguments)


def text(content: str) -> Content:
    return Content.from_text(content)


def said(message: Message) -> list[Spoken]:
    """What a service reads of a message. Approvals of the application's own tools are none of its business."""
    return [(message.role, _read(content)) for content in message.contents if not _is_local_approval(content)]


def _is_local_approval(content: Content) -> bool:
    return content.type in CONTROLS and content.function_call is not None and not content.function_call.hosted


def plain(spoken: Sequence[Spoken]) -> list[Spoken]:
    """Without approvals, which the framework leaves out once they are answered."""
    return [one for one in spoken if one[1][0] not in CONTROLS]


def _read(content: Content) -> tuple[Any, ...]:
    if content.type == "text":
        return ("text", content.text)
    if content.type == "text_reasoning":
        return ("reasoning", content.text)
    if content.type == "function_call" and not content.hosted and not content.informational_only:
        return ("call", content.call_id, content.name, content.arguments)
    if content.type == "function_result":
        return ("result", content.call_id, content.result)
    if content.type in ("data", "uri"):
        return (content.type, content.uri)
    if content.type in CONTROLS:
        return (content.type, content.id)
    return (content.type,)


def check(spoken: Sequence[Spoken]) -> str | None:
    """What a strict service objects to in a whole conversation, or None."""
    waiting: list[str] = []
    for role, (kind, *rest) in spoken:
        if kind == "result":
            if rest[0] not in waiting:
                return f"the result of {rest[0]} answers no open call"
            waiting.remove(rest[0])
        elif role != "assistant" and waiting:
            return f"{role} speaks while {waiting} are open"
        elif kind == "call":
            if rest[0] in waiting:
                return f"{rest[0]} is open twice"
            waiting.append(rest[0])
    return f"{waiting} are open" if waiting else None


class Service(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """Replies by a script. ``stores``: it keeps conversations and gives each a new id with every reply.

    ``held`` is what it remembers of the newest conversation: what it was sent, and its replies.
    """

    def __init__(self, script: Sequence[Reply], *, stores: bool = False, strict: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.STORES_BY_DEFAULT = stores
        self.script = list(script)
        self.strict = strict
        self.held: list[Spoken] = []
        self.conversations: dict[str, list[Spoken]] = {}
        self.requests: list[list[Spoken]] = []
        self.continued: list[str | None] = []
        self.types: list[list[str]] = []
        """Of each request, the types of all its contents, whether it reads them or not."""
        self.faults: list[str] = []
        self.reached = asyncio.Event()
        """Set when a reply hangs."""

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse[Any]] | ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        if stream:
            return self._build_response_stream(self._stream(messages, options))
        return self._reply(messages, options)

    async def _reply(self, messages: Sequence[Message], options: Mapping[str, Any]) -> ChatResponse[Any]:
        whole, reply = self._receive(messages, options)
        if isinstance(reply, Breaks):
            raise Broken("the connection broke")
        if isinstance(reply, Hangs):
            self.reached.set()
            await asyncio.Event().wait()
        assert not isinstance(reply, (Exception, Hangs))
        message = Message("assistant", list(reply)) if reply else None
        return ChatResponse(
            messages=[message] if message else [],
            response_id=f"response-{len(self.requests)}",
            conversation_id=self._accept(whole, reply),
            finish_reason="stop",
            model="scripted",
            usage_details={"input_token_count": 2, "output_token_count": 1},
        )

    async def _stream(
        self, messages: Sequence[Message], options: Mapping[str, Any]
    ) -> AsyncIterator[ChatResponseUpdate]:
        whole, reply = self._receive(messages, options)
        identity = f"response-{len(self.requests)}"
        partial = isinstance(reply, (Breaks, Hangs))
        contents = reply.contents if isinstance(reply, (Breaks, Hangs)) else reply
        conversation = f"conversation-{len(self.requests)}" if self.STORES_BY_DEFAULT else None
        assert not isinstance(contents, Exception)
        for content in contents:
            yield ChatResponseUpdate(
                role="assistant", contents=[content], response_id=identity, conversation_id=conversation
            )
        if isinstance(reply, Breaks):
            raise Broken("the connection broke")
        if isinstance(reply, Hangs):
            self.reached.set()
            await asyncio.Event().wait()
        assert not partial
        self._accept(whole, contents)
        usage = Content.from_usage({"input_token_count": 2, "output_token_count": 1})
        yield ChatResponseUpdate(
            contents=[usage], finish_reason="stop", response_id=identity, conversation_id=conversation
        )

    def _receive(self, messages: Sequence[Message], options: Mapping[str, Any]) -> tuple[list[Spoken], Reply]:
        """The whole conversation as the service sees it, and the scripted reply."""
        sent = [spoken for message in messages for spoken in said(message)]
        conversation = options.get("conversation_id")
        self.requests.append(sent)
        self.types.append([content.type for message in messages for content in message.contents])
        self.continued.append(conversation)
        before: list[Spoken] = []
        if conversation is not None:
            if conversation not in self.conversations:
                raise self._fault(f"{conversation} is not known")
            before = self.conversations[conversation]
        whole = [*before, *sent]
        problem = check(whole)
        held = plain(self.held)
        if problem is None and self.strict:
            if whole[: len(self.held)] != self.held and whole[: len(held)] == held:
                whole = [*self.held, *whole[len(held) :]]
            if whole[: len(self.held)] != self.held:
                problem = f"{whole} does not continue {self.held}"
        if problem is not None and self.strict:
            raise self._fault(problem)
        reply = self.script.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return whole, reply

    def _fault(self, problem: str) -> InvalidRequest:
        self.faults.append(problem)
        return InvalidRequest(problem)

    def _accept(self, whole: list[Spoken], reply: Sequence[Content]) -> str | None:
        self.held = [*whole, *(("assistant", _read(content)) for content in reply)]
        if not self.STORES_BY_DEFAULT:
            return None
        conversation = f"conversation-{len(self.requests)}"
        self.conversations[conversation] = self.held
        return conversation
