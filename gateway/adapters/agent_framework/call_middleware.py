"""The chat middleware around each service call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agent_framework import (
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    ChatResponseUpdate,
    MiddlewareTermination,
    ResponseStream,
)
from agent_framework.exceptions import ChatClientInvalidAuthException, ChatClientInvalidRequestException

from eventlog.steps import told
from gateway.adapters.agent_framework.errors import RecordingFailed
from gateway.adapters.agent_framework.service_request import LOCAL_CONVERSATION, OpenCall, request_of
from gateway.adapters.agent_framework.settings import active
from gateway.adapters.agent_framework.streams import followed
from gateway.adapters.agent_framework.watch import Watch

_SEEN = "agent_eventlog_recorded"
_REFUSED = (ChatClientInvalidRequestException, ChatClientInvalidAuthException)
"""Errors after which the service certainly kept nothing."""


class ServiceCallRecorder(ChatMiddleware):
    """Records each service call of a recorded run, with exactly what it carries.

    ``record`` puts one next to the service. A chat client stack of your own can hold one itself,
    as near to the service as it can; outside recorded runs it does nothing.
    """

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Record the start, let the call go out, record its end."""
        watch = active(context.session)
        if watch is None or watch.recorder is None or _SEEN in context.metadata:
            await call_next()
            return
        options = context.options or {}
        if options.get("tool_choice") == "none" and watch.recorder.calls:
            watch.recorder.outcome = "max-iterations"
        opened = await watch.keep("a service call", watch.recorder.start_call(context.messages, request_of(options)))
        if opened is None:
            await call_next()
            return
        context.metadata[_SEEN] = True
        try:
            await call_next()
        except MiddlewareTermination:
            await self._ended_early(watch, opened, context.result)
            raise
        except BaseException as error:
            await self._failed(watch, opened, error, ())
            raise
        finally:
            context.metadata.pop(_SEEN, None)  # whoever retries comes here again
        result = context.result
        if isinstance(result, ResponseStream):
            context.result = self._follow(watch, opened, result)
        elif isinstance(result, ChatResponse):
            await self._completed(watch, opened, result)
        else:
            await self._ended_early(watch, opened, None)

    def _follow(
        self, watch: Watch, opened: OpenCall, stream: ResponseStream[ChatResponseUpdate, ChatResponse[Any]]
    ) -> ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        async def ended(response: ChatResponse[Any]) -> None:
            await self._completed(watch, opened, response)

        async def failed(error: BaseException, seen: Sequence[ChatResponseUpdate]) -> None:
            await self._failed(watch, opened, error, seen)

        return followed(stream, ended=ended, failed=failed)

    async def _completed(self, watch: Watch, opened: OpenCall, response: ChatResponse[Any]) -> None:
        if watch.recorder is None:
            return
        conversation = None if response.conversation_id == LOCAL_CONVERSATION else response.conversation_id
        given = {"response": response.response_id, "conversation": conversation}
        service = {name: value for name, value in given.items() if value}
        await watch.keep("a service's reply", watch.recorder.complete_call(opened, response, service))
        if conversation:
            watch.accepted = conversation

    async def _failed(
        self, watch: Watch, opened: OpenCall, error: BaseException, seen: Sequence[ChatResponseUpdate]
    ) -> None:
        if watch.recorder is None:
            return
        partial = ChatResponse.from_updates(seen).messages if seen else []
        refused = isinstance(error, _REFUSED)
        failing = watch.recorder.fail_call(opened, told(error), refused=refused, partial=partial)
        try:
            await watch.keep("a failed service call", failing)
        except RecordingFailed as problem:
            error.add_note(str(problem))  # what went wrong first is what the caller is told

    async def _ended_early(self, watch: Watch, opened: OpenCall, result: object) -> None:
        """Middleware ended the call; without a response it never reached the service."""
        if isinstance(result, ChatResponse):
            await self._completed(watch, opened, result)
        elif watch.recorder is not None:
            failing = watch.recorder.fail_call(opened, "middleware ended it before it was sent", refused=True)
            await watch.keep("a service call that was not made", failing)
