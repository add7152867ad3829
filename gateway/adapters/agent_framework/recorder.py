"""What one run of an agent has in the log: its inputs, service calls and results, known by the objects they came as."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import anyio
from agent_framework import AgentResponse, ChatResponse, Content
from agent_framework import Message as ChatMessage

from eventlog import AlreadyAnswered, Conversation, Draft, FunctionCall, Run
from gateway.adapters.agent_framework.contents import (
    MARK,
    Part,
    document_of,
    is_local_approval,
    part_of,
    record_of,
    result_extra,
)
from gateway.adapters.agent_framework.past import Past
from gateway.adapters.agent_framework.placement import placed
from gateway.adapters.agent_framework.service_request import OpenCall, Request
from projections.repair import NO_RESULT

Outcome = Literal["completed", "terminated", "max-iterations"]


class Asked(NamedTuple):
    """A function call of this run: the content that the framework goes on with, and its event."""

    content: Content
    call: FunctionCall


class Answer(NamedTuple):
    """A recorded result: its version, and the part as it was recorded."""

    version: int
    part: Part


@dataclass(slots=True)
class RunRecorder:
    """Records one run. What the framework hands over is known again by identity, results by the call they answer."""

    conversation: Conversation
    run: Run
    past: Past
    loads_per_call: bool = False
    """The framework asks for the history before each service call, and not once."""
    outcome: Outcome = "completed"
    current: OpenCall | None = None
    calls: int = 0
    """How many service calls were seen."""
    children: int = 0
    """How many runs within this one shared its session."""
    _known: dict[int, tuple[Content, list[int]]] = field(default_factory=dict)
    """By the identity of a content: the content itself, and each event that records it."""
    _decisions: dict[str, int] = field(default_factory=dict)
    """The id of an approval that the provider asked for -> the version of its answer."""
    _asked: list[Asked] = field(default_factory=list)
    _answers: dict[int, Answer] = field(default_factory=dict)
    """Version of a function call -> its recorded result."""
    _outputs: set[int] = field(default_factory=set)
    _carried: list[int] = field(default_factory=list)

    async def begin(self, messages: Sequence[ChatMessage]) -> None:
        """Record what the caller hands over: new messages, results of open calls, decisions on approvals."""
        for message in messages:
            if self._loaded(message) is not None:
                continue
            contents = []
            for content in message.contents:
                call = self._approved(content)
                if call is None:
                    contents.append(content)
                else:
                    decision = "approved" if content.approved else "denied"
                    resolved = Draft("approval-resolved", {"function_call": call, "decision": decision})
                    await self.conversation.append(resolved)
            if contents:
                await self._record(message, contents)
        self._carried = self.past.carried(self._answers)

    def history(self, *, continues: bool) -> list[ChatMessage]:
        """What is sent before the run's own messages, when it is loaded once at the start."""
        return self.past.ahead(self._carried) if continues else self.past.messages(self._carried)

    async def start_call(self, messages: Sequence[ChatMessage], request: Request) -> OpenCall:
        """Record that a service call goes out with these messages; what is new among them is recorded first."""
        carried = [version for version in self._carried if version not in self.run.progress.sent]
        sends = list(carried) if self.loads_per_call and request.continues is None else []
        seen: Counter[int] = Counter()
        for message in messages:
            versions = self._loaded(message)
            if versions is not None:
                sends += [version for version in versions if self._must_send(version, request.continues)]
                continue
            sends += await self._sent_with(message, seen)
        leaving = AsyncExitStack()
        call = await leaving.enter_async_context(
            self.run.service_call(
                sends=list(dict.fromkeys(sends)),
                continues=None if request.continues is None else {"conversation": request.continues},
                model=request.model,
                instructions=request.instructions,
                tools=request.tools,
            )
        )
        self.calls += 1
        self.current = OpenCall(call, leaving, frozenset(carried))
        return self.current

    async def complete_call(self, opened: OpenCall, response: ChatResponse[Any], service: dict[str, str]) -> None:
        """Record the reply, as it is now, and that the call is completed."""
        replies = [(message, record_of(message, output=True)) for message in response.messages]
        appended = await opened.call.complete(
            *(record for _, record in replies),
            finish_reason=response.finish_reason,
            model=response.model,
            usage=_numbers(response.usage_details),
            service=dict(service) or None,
        )
        versions = list(appended.versions[:-1])
        self._outputs.update(versions)
        calls = list(opened.call.function_calls)
        for message, record in replies:
            for content, part, version in placed(message.contents, record.parts, versions):
                self._note(content, version)
                if part["type"] == "tool_call":
                    self._asked.append(Asked(content, calls.pop(0)))
        self.current = None
        await opened.leaving.aclose()

    async def fail_call(
        self, opened: OpenCall, error: str, *, refused: bool = False, partial: Iterable[ChatMessage] = ()
    ) -> None:
        """Record that the call failed, with what had come in of its reply. Nothing when it has ended."""
        if self.current is not opened:
            return
        self.current = None
        parts = [part_of(content) for message in partial for content in message.contents]
        with anyio.CancelScope(shield=True):
            await opened.call.fail(error, outcome="refused" if refused else "unknown", partial=parts)
            await opened.leaving.aclose()

    def properties_of(self, call_id: str, occurrence: str | None) -> dict[str, Any]:
        """The additional properties of a function call of this run, which its result repeats."""
        asked = self._asking(call_id, occurrence)
        return dict(asked.content.additional_properties) if asked is not None else {}

    async def add_result(
        self, content: Content, message: ChatMessage | None = None, *, batch: str | None = None
    ) -> int | None:
        """Record a result; its version. None when the very result is recorded already.

        Those of one ``batch`` make one message: the results of one service call's tools, unless told otherwise.
        """
        batch = batch or f"{self.run.id}.results.{self.calls}"
        call = self._call_of(content)
        part = part_of(content)
        if call is not None and call.version in self._answers:
            answer = self._answers[call.version]
            return None if answer.part == part else await self._correct(call, part, batch)
        extra = part.get("extra") if message is None else result_extra(part, record_of(message, contents=[content]))
        appended = await self.run.add_result(
            call if call is not None else str(content.call_id),
            part["response"],
            is_error=bool(part.get("is_error")),
            message_id=batch,
            extra=extra or None,
        )
        assert appended is not None
        self._note(content, appended.first)
        if call is not None:
            self._answers[call.version] = Answer(appended.first, part)
        return appended.first

    async def commit(self, response: AgentResponse[Any] | None) -> None:
        """End the run: record what the loop made of calls it did not run, and which wait for approval."""
        for message in response.messages if response is not None else ():
            for content in message.contents:
                if content.type == "function_result" and self._unanswered(content):
                    await self.add_result(content)
                elif content.type == "function_approval_request" and is_local_approval(content):
                    await self._request_approval(content)
        usage = _numbers(response.usage_details) if response is not None else None
        await self.run.commit(self.outcome, usage=usage)

    async def leave(self, error: BaseException) -> None:
        """The run is given up: end the call in progress, and answer with a marked synthetic result what nobody will.

        What was on its way when the run was cancelled may still be recorded, and then stands.
        """
        opened, self.current = self.current, None
        with anyio.CancelScope(shield=True):
            if opened is not None:
                await opened.leaving.__aexit__(type(error), error, error.__traceback__)
            for call in list(self.run.progress.unanswered.values()):
                if call.version not in self.run.progress.awaits_approval:
                    with suppress(AlreadyAnswered):
                        await self.run.add_result(call, NO_RESULT, is_error=True, synthetic=True)

    async def infer(self, response: AgentResponse[Any]) -> None:
        """Take the run's service calls from its response: a call is what stands between two batches of results."""
        pending = list(self.run.unsent)
        replies: list[ChatMessage] = []
        carried = [version for version in self._carried if version not in pending]
        for message in [*response.messages, None]:
            if message is not None and message.role == "assistant":
                replies.append(message)
                continue
            if replies:
                async with self.run.service_call(sends=[*carried, *pending]) as call:
                    opened = OpenCall(call, AsyncExitStack())
                    await self.complete_call(opened, ChatResponse(messages=replies), {})
                pending, replies, carried = [], [], []
            if message is not None:
                for content in message.contents:
                    version = await self.add_result(content) if content.type == "function_result" else None
                    pending += [] if version is None else [version]

    def _loaded(self, message: ChatMessage) -> list[int] | None:
        """The versions of a message that was loaded before the run or, of its own events, within it; else None."""
        mark = message.additional_properties.get(MARK)
        if isinstance(mark, dict) and mark.get("run") == self.run.id and isinstance(mark.get("versions"), list):
            return list(mark["versions"])
        return self.past.known(message)

    def _must_send(self, version: int, continues: str | None) -> bool:
        if version in self.run.progress.sent or version in self._outputs:
            return False
        ahead = self.past.view.continuation.ahead if continues is not None else ()
        return version not in self.past.in_view or version in ahead

    async def _sent_with(self, message: ChatMessage, seen: Counter[int]) -> list[int]:
        """The versions of a message that this run made or was given, as far as no completed call has carried them.

        ``seen`` counts how often each content stood in the request: one that was given twice is two inputs.
        """
        sends: list[int] = []
        new: list[Content] = []
        for content in message.contents:
            if is_local_approval(content):
                continue  # between the framework and its caller; no service is told
            version = self._version(content, seen[id(content)])
            seen[id(content)] += 1
            if version is None:
                new.append(content)
            elif version not in self._outputs and version not in self.run.progress.sent:
                sends.append(version)
        if new:
            sends += await self._record(message, new)
        return sends

    async def _record(self, message: ChatMessage, contents: Sequence[Content]) -> list[int]:
        """Record these contents of a message as an input of the run; their versions."""
        if contents and all(content.type == "function_result" for content in contents):
            batch = None if self.calls else f"{self.run.id}.given.{len(self._known)}"
            found = [await self.add_result(content, message, batch=batch) for content in contents]
            return [version for version in found if version is not None]
        record = record_of(message, contents=contents)
        appended = await self.run.add(record)
        assert appended is not None
        for content, _, version in placed(contents, record.parts, list(appended.versions)):
            self._note(content, version)
            if content.type == "function_approval_response" and content.id is not None:
                self._decisions[content.id] = version
        return list(appended.versions)

    async def _correct(self, call: FunctionCall, part: Part, batch: str) -> int:
        """What is sent is not what the tool returned: something in between changed it. Both are in the log."""
        appended = await self.conversation.add_result(
            call,
            part["response"],
            is_error=bool(part.get("is_error")),
            message_id=batch,
            extra=part.get("extra"),
        )
        self._answers[call.version] = Answer(appended.first, part)
        return appended.first

    def _note(self, content: Content, version: int) -> None:
        self._known.setdefault(id(content), (content, []))[1].append(version)

    def _version(self, content: Content, nth: int) -> int | None:
        """The event of a content that this run has seen: the same object, or the result of a call it knows."""
        known = self._known.get(id(content))
        if known is not None:
            return known[1][nth] if nth < len(known[1]) else None
        if content.type == "function_call" and content.id is not None:
            return next((asked.call.version for asked in self._asked if asked.content.id == content.id), None)
        if content.type == "function_approval_response" and content.id is not None:
            return self._decisions.get(content.id)
        if content.type == "function_result":
            call = self._call_of(content)
            answer = self._answers.get(call.version) if call is not None else None
            if answer is not None and answer.part == part_of(content):
                self._note(content, answer.version)
                return answer.version
        return None

    def _asking(self, call_id: str | None, occurrence: str | None) -> Asked | None:
        """The run's call of that occurrence; without one, the oldest of that id without a result, else the newest."""
        if occurrence is not None:
            for asked in self._asked:
                if asked.content.id == occurrence:
                    return asked
        same = [asked for asked in self._asked if asked.call.call_id == call_id]
        unanswered = [asked for asked in same if asked.call.version not in self._answers]
        chosen = unanswered or same[-1:]
        return chosen[0] if chosen else None

    def _call_of(self, content: Content) -> FunctionCall | None:
        """The call that a result answers: one of this run, else one that is open in the view."""
        asked = self._asking(content.call_id, content.id)
        if asked is not None:
            return asked.call
        version = self.past.open_call(content.call_id, content.id)
        return None if version is None else self._past_call(version)

    def _past_call(self, version: int) -> FunctionCall:
        data = self.past.events[version - 1].data
        return FunctionCall(version, data["call_id"], data["name"], data.get("arguments"))

    def _unanswered(self, content: Content) -> bool:
        call = self._call_of(content)
        return call is not None and call.version not in self._answers

    def _approved(self, content: Content) -> int | None:
        """The call that the content decides on, when the application runs it."""
        if content.type != "function_approval_response" or not is_local_approval(content):
            return None
        call = content.function_call
        assert call is not None
        return self.past.requests.get(content.id or "") or self.past.open_call(call.call_id, call.id)

    async def _request_approval(self, content: Content) -> None:
        call = content.function_call
        assert call is not None
        known = self._known.get(id(call))
        asked = self._asking(call.call_id, call.id)
        version = known[1][-1] if known is not None else (asked.call.version if asked is not None else None)
        if version is None or (asked is not None and version in self._answers):
            return
        requested = Draft("approval-requested", {"function_call": version, "request": document_of(content)})
        await self.conversation.append(requested)


def _numbers(usage: Any) -> dict[str, int] | None:
    """The counts of a usage, as far as they are whole numbers."""
    if not usage:
        return None
    return {name: count for name, count in usage.items() if type(count) is int} or None
