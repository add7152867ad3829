"""The scripted conversation: a guide plans a trip to a mountain hut. No model service is needed.

``Model`` stands for the service. It answers from what it is sent and from nothing else, refuses
what a real service would refuse, and breaks off one stream so that a call fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from eventlog import Message, assistant, tool_call
from gateway.demo.validity import problems

HIKE = "Can we hike to Larch Hut on Saturday?"
BUS = "Which bus takes us to the trailhead?"
BEDS = "Fine. Book us two beds for Saturday night."

PARTIAL = "Yes: Saturday is dry"
"""What streams in before the stream breaks."""

ENDING_TOOLS = frozenset({"book_beds"})
"""A filter of the application ends the loop after these: nothing is left to say."""


class StreamBroken(Exception):
    """The reply broke off. ``partial`` is the text that had come in."""

    def __init__(self, partial: str) -> None:
        super().__init__("the stream broke off")
        self.partial = partial


class RequestRefused(Exception):
    """The request is not a valid history."""


class Model:
    """Called with the messages of one request, returns the reply. ``requests`` keeps each request that it took."""

    def __init__(self) -> None:
        self.requests: list[list[Message]] = []
        self._breaks = True

    async def __call__(self, messages: Sequence[Message]) -> Message:
        """Raises ``RequestRefused``, and once ``StreamBroken``."""
        wrong = problems(messages)
        if wrong:
            raise RequestRefused("; ".join(wrong))
        self.requests.append(list(messages))
        asked = max(index for index, message in enumerate(messages) if message.role == "user")
        question, since = messages[asked].text, messages[asked + 1 :]
        if question == HIKE and since and self._breaks:
            self._breaks = False
            raise StreamBroken(PARTIAL)
        return _answer(question, bool(since)) if question != BEDS else _booking(messages)


def _answer(question: str, has_results: bool) -> Message:
    if question == HIKE:
        if has_results:
            return assistant("Yes: Saturday is dry until evening, and the hut has 4 free beds.")
        return assistant(
            tool_call("call_1", "forecast", {"day": "Saturday"}),
            tool_call("call_2", "free_beds", {"day": "Saturday"}),
        )
    if question == BUS:
        if has_results:
            return assistant("The 07:15 bus.")
        return assistant(tool_call("call_3", "next_bus", {"day": "Saturday"}))
    raise RequestRefused(f"the script knows no answer to {question!r}")


def _booking(messages: Sequence[Message]) -> Message:
    """The guide mentions the bus only when the history that it was sent tells of it."""
    knows_bus = any(part.get("id") == "call_3" for message in messages for part in message.parts)
    said = "The 07:15 bus is in time. I book the beds." if knows_bus else "I book the beds."
    return assistant(said, tool_call("call_4", "book_beds", {"beds": 2}))
