"""The agent middleware around a run: it starts and ends it in the log."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from agent_framework import (
    AgentContext,
    AgentMiddleware,
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    MiddlewareTermination,
    ResponseStream,
)

from eventlog import ConversationBusy, EventLogError, InvalidInput, Mode, RunClosed, RunRefused
from eventlog.errors import ConversationDeleted
from gateway.adapters.agent_framework.call_middleware import ServiceCallRecorder
from gateway.adapters.agent_framework.errors import PersistenceWarning, RecordingFailed
from gateway.adapters.agent_framework.past import Past
from gateway.adapters.agent_framework.recorder import RunRecorder
from gateway.adapters.agent_framework.settings import Settings, enclosing, enter, innermost, leave
from gateway.adapters.agent_framework.streams import followed
from gateway.adapters.agent_framework.tool_middleware import ToolResultRecorder
from gateway.adapters.agent_framework.watch import STATE, Watch, gap_event, gap_of
from projections import recovery


class AgentRunRecorder(AgentMiddleware):
    """Starts a run in the log when the agent is run, and commits or aborts it as the run ends."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def process(self, context: AgentContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Record the run, whether it streams or not."""
        watch = await self._start(context)
        enter(watch)
        if not self._settings.own_stack:
            self._inject(context)
        try:
            await call_next()
        except MiddlewareTermination:
            if watch.recorder is not None:
                watch.recorder.outcome = "terminated"
            await self._ended(watch, context.result if isinstance(context.result, AgentResponse) else None)
            raise
        except BaseException as error:
            await self._failed(watch, error)
            raise
        result = context.result
        if isinstance(result, ResponseStream):
            context.result = self._follow(watch, result)
        else:
            await self._ended(watch, result)

    def _follow(
        self, watch: Watch, stream: ResponseStream[AgentResponseUpdate, AgentResponse[Any]]
    ) -> ResponseStream[AgentResponseUpdate, AgentResponse[Any]]:
        async def ended(response: AgentResponse[Any]) -> None:
            await self._ended(watch, response)

        async def failed(error: BaseException, seen: Sequence[AgentResponseUpdate]) -> None:
            await self._failed(watch, error)

        return followed(stream, ended=ended, failed=failed)

    async def _start(self, context: AgentContext) -> Watch:
        agent, session = context.agent, context.session
        name = agent.name or agent.id
        if session is None:
            raise InvalidInput(
                f"agent {name!r} is recorded, and its session is the conversation: pass "
                "session=agent.create_session(session_id=…)"
            )
        parent = enclosing.get()
        conversation = _conversation_id(session, parent)
        shares = conversation != session.session_id
        watch = Watch(name, session, conversation, None, self._settings.on_failure == "stop")
        watch.accepted, watch.parent = session.service_session_id, parent
        other = innermost(session)
        if other is not None and other is not parent and (other.recorder is None or shares):
            busy = InvalidInput(
                f"agent {name!r}: the session {session.session_id!r} is in another run just now, of agent "
                f"{other.agent!r}, and whose a service call is could not be told: give this run a session of its own"
            )
            if watch.stops or other.recorder is not None:
                raise busy
            watch.give_up("the start of the run", busy)  # as the one that it would meet
            return watch
        if shares:
            enter(watch)  # before the first step, so that no other comes in between
        recorder = None
        try:
            recorder = await self._open(name, conversation, session, parent)
            watch.recorder = recorder
            recorder.loads_per_call = bool(getattr(agent, "require_per_service_call_history_persistence", False))
            _restore(agent, context, recorder.past, watch)
            await recorder.begin(context.messages)
        except BaseException as error:
            if recorder is not None:
                await self._failed(watch, error)
            leave(watch)
            refused = isinstance(error, (InvalidInput, RunRefused, ConversationDeleted))
            if watch.stops or refused or not isinstance(error, EventLogError):
                raise
            watch.give_up("the start of the run", error)
        return watch

    async def _open(self, name: str, conversation_id: str, session: AgentSession, parent: Watch | None) -> RunRecorder:
        settings = self._settings
        conversation = settings.tenant.conversation(conversation_id)
        gap = gap_of(session)
        above = parent.recorder if parent is not None else None
        while True:
            run = conversation.run(
                settings.mode,
                agent=name,
                carry="none",
                labels=settings.labels or None,
                parent=None if above is None else (above.conversation.id, above.run.id),
                lease=settings.lease,
            )
            try:
                await run.__aenter__()
            except ConversationBusy as busy:
                if not busy.expired and (gap is None or busy.run != gap.get("run")):
                    raise
                with suppress(RunClosed):  # another process was here first
                    await recovery.seal(conversation, busy.run, force=not busy.expired)
                continue
            break
        try:
            if gap is not None:
                await conversation.append(gap_event(gap))
                session.state.pop(STATE, None)
            return RunRecorder(conversation, run, await Past.read(conversation))
        except BaseException as error:
            await run.__aexit__(type(error), error, error.__traceback__)
            raise

    def _inject(self, context: AgentContext) -> None:
        """Put the other recorders into the chat client's stack, for this run."""
        client = getattr(context.agent, "client", None)
        detailed = getattr(client, "function_invocation_configuration", {}).get("include_detailed_errors", False)
        middleware: list[Any] = [ToolResultRecorder(detailed_errors=bool(detailed))]
        middleware += context.client_kwargs.get("middleware") or []
        if getattr(context.agent, "require_per_service_call_history_persistence", False):
            middleware.append(ServiceCallRecorder())
        context.client_kwargs["middleware"] = middleware

    async def _ended(self, watch: Watch, response: AgentResponse[Any] | None) -> None:
        leave(watch)
        recorder = watch.recorder
        if recorder is not None and self._settings.own_stack and not recorder.calls and response is not None:
            await self._unwatched(watch, recorder, response)
        if watch.recorder is not None:
            try:
                await watch.keep("the end of the run", watch.recorder.commit(response))
            except RecordingFailed as error:
                await _close(watch.recorder, error)
                raise
        if watch.recorder is not None:
            await watch.recorder.run.__aexit__(None, None, None)
        await _let_go(watch)

    async def _unwatched(self, watch: Watch, recorder: RunRecorder, response: AgentResponse[Any]) -> None:
        """The user's own stack holds no recorder of ours: per call that is the user's affair, per run it is told."""
        if self._settings.mode != Mode.PER_RUN or not response.messages:
            return
        warnings.warn(
            f"agent {watch.agent!r} has a chat client stack of its own without a ServiceCallRecorder: its run is "
            "recorded from its end. Which of its tool results were sent, which service calls failed and what they "
            "carried cannot be known; put a ServiceCallRecorder into the stack next to the service.",
            PersistenceWarning,
            stacklevel=2,
        )
        await watch.keep("the run", recorder.infer(response))

    async def _failed(self, watch: Watch, error: BaseException) -> None:
        leave(watch)
        if watch.recorder is not None:
            watch.session.service_session_id = watch.accepted
            try:
                await watch.recorder.leave(error)
            except EventLogError as problem:
                error.add_note(f"what the run left could not be recorded: {problem}")
            await _close(watch.recorder, error)
        await _let_go(watch)


async def _close(recorder: RunRecorder, error: BaseException) -> None:
    """Abort the run for this error, which is told when that fails. A consumer that leaves a stream cancels it."""
    reason = asyncio.CancelledError() if isinstance(error, GeneratorExit) else error
    await recorder.run.__aexit__(type(reason), reason, reason.__traceback__)


async def _let_go(watch: Watch) -> None:
    """Hold a run no longer that went on unrecorded; if the log can be written again, answer its calls and abort it."""
    if watch.lost is not None:
        unrecorded = RuntimeError("it went on unrecorded")
        with suppress(EventLogError):  # else whoever runs next seals it
            await watch.lost.leave(unrecorded)
        await _close(watch.lost, unrecorded)


def _conversation_id(session: AgentSession, parent: Watch | None) -> str:
    """The session's id; for an agent that works within a run of the very conversation, one of its own."""
    if parent is None or parent.over or parent.recorder is None or parent.conversation != session.session_id:
        return session.session_id
    parent.recorder.children += 1
    return f"{parent.recorder.run.id}.{parent.recorder.children}"


def _restore(agent: Any, context: AgentContext, past: Past, watch: Watch) -> None:
    """After a crash, go on with the conversation that the service keeps where the log last saw it."""
    options = {**(getattr(agent, "default_options", None) or {}), **(context.options or {})}
    stores = options.get("store")
    if stores is None:
        stores = getattr(getattr(agent, "client", None), "STORES_BY_DEFAULT", False)
    continuation = past.view.continuation
    latest = (continuation.service or {}).get("conversation")
    if not stores or not continuation.in_step or not isinstance(latest, str) or options.get("conversation_id"):
        return
    given = watch.session.service_session_id
    if given is None or (given != latest and given in past.service_ids()):
        watch.session.service_session_id = watch.accepted = latest
