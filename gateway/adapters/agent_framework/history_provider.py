"""The framework's way to load a history: what the model service itself would remember."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_framework import AgentSession, HistoryProvider, SessionContext, SupportsAgentRun
from agent_framework import Message as ChatMessage

from eventlog import InvalidInput, Tenant
from gateway.adapters.agent_framework.call_middleware import ServiceCallRecorder
from gateway.adapters.agent_framework.contents import record_of
from gateway.adapters.agent_framework.past import Past
from gateway.adapters.agent_framework.recorder import RunRecorder
from gateway.adapters.agent_framework.service_request import OpenCall
from gateway.adapters.agent_framework.settings import active
from projections import history

SOURCE = "agent_eventlog"


class EventLogHistory(HistoryProvider):
    """Loads the service view of a session's conversation. What is to be stored, the recorder has stored already."""

    def __init__(self, tenant: Tenant, *, injects: bool = True) -> None:
        super().__init__(SOURCE, store_inputs=False, store_outputs=False)
        self._tenant = tenant
        self._recorder = ServiceCallRecorder() if injects else None

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[ChatMessage]:
        """The service view, each message with its mark."""
        past = await Past.read(self._tenant.conversation(_named(session_id)))
        return past.messages()

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[ChatMessage],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Post messages outside any run. Those that were loaded from this log are known, and left out.

        No run needs it: they are recorded as they happen.
        """
        conversation = self._tenant.conversation(_named(session_id))
        past = await Past.read(conversation)
        new = [record_of(message) for message in messages if past.known(message) is None]
        if new:
            await conversation.add(*new)

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Load the history: once for the run, or before each service call where the framework asks for it then."""
        watch = active(session)
        if watch is None:
            raise InvalidInput(
                f"agent {agent.name or agent.id!r} was run past its recorder: call run() of the agent that was recorded"
            )
        recorder = watch.recorder
        if recorder is None:
            return
        if not recorder.loads_per_call:
            if self._recorder is not None:
                # The last of the providers' middleware is the one next to the service.
                context.extend_middleware(self.source_id, self._recorder)
            self._put_first(context, recorder.history(continues=context.service_session_id is not None))
            return
        if recorder.current is None:
            raise InvalidInput(
                f"agent {watch.agent!r} keeps its history per service call, and nothing watches its service calls: "
                "put a ServiceCallRecorder into its chat client's stack, or leave own_stack out"
            )
        self._put_first(context, await watch.keep("the history", _for_call(recorder, recorder.current)) or [])

    def _put_first(self, context: SessionContext, messages: Sequence[ChatMessage]) -> None:
        """What other providers add is new, and stands behind the history as it will in the next one.

        What is there already was loaded for an attempt that failed.
        """
        context.context_messages.pop(self.source_id, None)
        context.extend_messages(self, messages)
        others = {source: added for source, added in context.context_messages.items() if source != self.source_id}
        context.context_messages = {self.source_id: context.context_messages[self.source_id], **others}

    async def after_run(self, **kwargs: Any) -> None:
        """Nothing is left to store."""


async def _for_call(recorder: RunRecorder, opened: OpenCall) -> list[ChatMessage]:
    """What the open service call sends, but for the inputs that the framework adds itself."""
    past = recorder.past
    own = set(opened.call.sends) - opened.carried
    sent = await history.for_call(opened.call)
    messages = [message for message in sent if not own.issuperset(message.versions)]
    since = [event async for page in recorder.conversation.pages(past.view.cursor) for event in page]
    return past.marked(messages, since)


def _named(session_id: str | None) -> str:
    if session_id is None:
        raise InvalidInput("a history is loaded by the id of a session: pass session_id")
    return session_id
