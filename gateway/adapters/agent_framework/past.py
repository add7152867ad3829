"""What the log held when a run began, as the framework's messages.

Each carries a mark: the event, version and run that it was read from. By the mark alone it is known
again when it comes back, never by what it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agent_framework import Content
from agent_framework import Message as ChatMessage

from eventlog import Conversation, Event, Message
from gateway.adapters.agent_framework.contents import FIELDS, MARK, chat_messages, is_open_call
from gateway.adapters.agent_framework.nearest import nearest
from projections import history
from projections.assembly import group


class Past:
    """The events up to a run's start, their service view, and what is still open in it."""

    def __init__(self, conversation: Conversation, events: Sequence[Event]) -> None:
        self.events = list(events)
        self.view = history.build(self.events, conversation)
        self._tag = conversation.log.tag
        self.in_view = {version for message in self.view.messages for version in message.versions}
        self.requests: dict[str, int] = {}
        """The id of each request for approval -> the version of its function call."""
        self._asked: dict[int, dict[str, Any]] = {}
        for event in self.events:
            request = event.data.get("request")
            if event.type == "approval-requested" and isinstance(request, dict):
                self.requests[str(request.get("id"))] = event.data["function_call"]
                self._asked[event.data["function_call"]] = request

    @classmethod
    async def read(cls, conversation: Conversation) -> Past:
        """Read the whole log."""
        return cls(conversation, [event async for page in conversation.pages() for event in page])

    def carried(self, answered: Iterable[int] = ()) -> list[int]:
        """The recorded results of calls still open, but for the calls that are answered otherwise."""
        others = set(answered)
        return [
            call.recorded_result
            for call in self.view.open_calls
            if call.recorded_result is not None and call.version not in others
        ]

    def open_call(self, call_id: str | None, occurrence: str | None) -> int | None:
        """The call open in the view that is meant: that of the framework's occurrence, else the newest of its id."""
        if occurrence is not None:
            asked = self.requests.get(occurrence)
            if asked is not None:
                return asked
            for call in self.view.open_calls:
                if self._occurrence(call.version) == occurrence:
                    return call.version
        same = [call.version for call in self.view.open_calls if call.call_id == call_id]
        return same[-1] if same else None

    def known(self, message: ChatMessage) -> list[int] | None:
        """The versions of a message that was loaded from this log, or None."""
        mark = message.additional_properties.get(MARK)
        if not isinstance(mark, dict) or mark.get("log") != self._tag:
            return None
        version, event = mark.get("version"), mark.get("event")
        if type(version) is not int or not 1 <= version <= len(self.events) or self.events[version - 1].id != event:
            return None
        versions = mark.get("versions")
        if not isinstance(versions, list):
            return None
        return [one for one in versions if type(one) is int and 1 <= one <= len(self.events)]

    def messages(self, versions: Sequence[int] = ()) -> list[ChatMessage]:
        """The whole view, and behind it the events of these versions, which are not in it."""
        behind = group([self.events[version - 1] for version in versions], self._tag)
        return self.marked([*self.view.messages, *behind])

    def ahead(self, versions: Sequence[int] = ()) -> list[ChatMessage]:
        """What a request that continues the service's own memory must send first, and then these versions."""
        wanted = [*self.view.continuation.ahead, *versions]
        return self.marked(group([self.events[version - 1] for version in wanted], self._tag))

    def marked(self, messages: Iterable[Message], since: Sequence[Event] | None = None) -> list[ChatMessage]:
        """The framework's messages for these, each with its mark.

        Loaded for a whole run, calls that wait for approval have their requests beside them: so the
        framework knows not to send them. With the events ``since`` the run began it is loaded for one
        service call, where the framework has seen to that.
        """
        log = [*self.events, *(since or ())]
        answers = {call: result for result, call in self.view.pairs.items()}
        waiting = {call.version for call in self.view.open_calls if call.awaits_approval and since is None}
        made = []
        for chat, sources in chat_messages(messages):
            versions = [version for source in sources for version in source.versions]
            if versions:
                first = log[versions[0] - 1]
                chat.additional_properties[MARK] = {
                    "log": self._tag,
                    "event": first.id,
                    "version": first.version,
                    "run": first.run,
                    "versions": versions,
                }
            calls = [version for version in versions if log[version - 1].type == "function-call"]
            contents: list[Content] = []
            for content in chat.contents:
                contents.append(content)
                if not is_open_call(content) or not calls:
                    continue
                call = calls.pop(0)
                if content.id is None:
                    content.id = self._occurrence(answers.get(call, 0))
                if call in waiting and call in self._asked:
                    request = nearest(self._asked[call])
                    content.id = content.id or (request.function_call.id if request.function_call else None)
                    contents.append(request)
            chat.contents = contents
            made.append(chat)
        return made

    def service_ids(self) -> set[str]:
        """Every conversation id that the service ever gave."""
        found = set()
        for event in self.events:
            service = event.data.get("service") if event.type == "service-call-completed" else None
            if isinstance(service, dict) and isinstance(service.get("conversation"), str):
                found.add(service["conversation"])
        return found

    def _occurrence(self, version: int) -> str | None:
        """The framework's id of a recorded call or result."""
        if not 1 <= version <= len(self.events):
            return None
        fields = (self.events[version - 1].data.get("extra") or {}).get(FIELDS)
        found = fields.get("id") if isinstance(fields, dict) else None
        return found if isinstance(found, str) else None
